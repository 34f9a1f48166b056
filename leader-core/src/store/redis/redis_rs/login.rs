//! Who we are, said before the crate gets the socket: of a refusal it would keep only that it was one.

use ::redis::{Cmd, Value, cmd, parse_redis_value_async};
use tokio::io::AsyncWriteExt;

use super::super::address::{Access, Address};
use super::super::client::failure::{hide, is_of_the_moment, no_redis, of_server};
use super::super::connection::Failure;
use super::failure;
use super::socket::Socket;

/// Logs in, selects the database, and asks once whether the server answers: all in one go.
pub(super) async fn log_in(mut socket: Socket, address: &Address) -> Result<Socket, Failure> {
    let questions = questions(&address.access);
    let packed: Vec<u8> = questions.iter().flat_map(|question| question.command.get_packed_command()).collect();
    // If it fails, what there is to read says why: a server that takes no more clients does not read what they say.
    let _ = socket.write_all(&packed).await;
    let _ = socket.flush().await;
    let mut read = Default::default();
    for question in &questions {
        let answer = parse_redis_value_async(&mut read, &mut socket).await;
        match answer.map_err(|error| failure::of(&error, address))? {
            Value::ServerError(error) => {
                let error = failure::text(&error);
                if !(question.forgives)(&error) {
                    return Err(of_server(&hide(&error, address)));
                }
            }
            Value::Okay | Value::SimpleString(_) => {}
            _ => return Err(no_redis(address)),
        }
    }
    // An answer to nothing that was asked.
    if read.buffer().is_empty() { Ok(socket) } else { Err(no_redis(address)) }
}

struct Question {
    command: Cmd,
    /// Refusals that keep nobody out.
    forgives: fn(&str) -> bool,
}

fn questions(access: &Access) -> Vec<Question> {
    let mut questions = Vec::new();
    if let Some(password) = &access.password {
        let mut auth = cmd("AUTH");
        auth.arg(&access.user).arg(password);
        // A server that asks nobody for a password.
        questions.push(Question { command: auth, forgives: |error| error.contains("without any password configured") });
    }
    // A user may be allowed no SELECT, and where no database is named none is needed.
    if access.database > 0 {
        let mut select = cmd("SELECT");
        select.arg(access.database);
        // Or what follows would be done in another one.
        questions.push(Question { command: select, forgives: |_| false });
    }
    // It is there, whatever else it can do now: that is for the commands to find out.
    questions.push(Question { command: cmd("PING"), forgives: is_of_the_moment });
    questions
}
