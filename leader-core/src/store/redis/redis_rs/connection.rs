//! One connection.

use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Value};

use super::super::address::Address;
use super::super::client::failure::{closed, of_server};
use super::super::client::life::Life;
use super::super::connection::{Failure, Reply, Request};
use super::socket::Socket;
use super::{failure, said_all};

/// So many calls wait for one connection at most; the store puts a hundred groups into each.
const CALLS: usize = 1024;

pub(in super::super) struct Connection {
    connection: MultiplexedConnection,
    address: Arc<Address>,
    life: Life,
}

impl Connection {
    /// Over a socket on which all was said that comes before commands.
    pub(super) async fn over(socket: Socket, address: &Arc<Address>) -> Result<Self, Failure> {
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(CALLS);
        let made = MultiplexedConnection::new_with_config(&said_all(), socket, config).await;
        let (connection, driver) = made.map_err(|error| failure::of(&error, address))?;
        let course = {
            let address = Arc::clone(address);
            // Why, it tells only the call that waits for the next answer.
            async move {
                driver.await;
                closed(&address)
            }
        };
        let life = Life::begin(Arc::clone(address), course, Vec::new());
        Ok(Self { connection, address: Arc::clone(address), life })
    }

    /// Sends one command and waits for its reply, which may be an error of the server's. See [`Life::call`].
    ///
    /// A call whose future is dropped, as by a time-out, before the connection has taken it up is not sent.
    pub(super) async fn call(&self, request: Request, timeout: Duration) -> Result<Value, Failure> {
        let sending = async {
            let mut command = ::redis::cmd(request.name);
            for argument in &request.arguments {
                command.arg(&argument[..]);
            }
            // It is a handle, and each call needs its own.
            let mut connection = self.connection.clone();
            match tokio::time::timeout(timeout, connection.send_packed_command(&command)).await {
                Ok(answer) => answer.map_err(|error| failure::of(&error, &self.address)),
                Err(_) => Err(Failure::TimedOut),
            }
        };
        self.life.call(timeout, sending).await
    }

    pub(super) fn has_ended(&self) -> bool {
        self.life.has_ended()
    }
}

/// What the server answered, if it is no error.
pub(super) fn reply(value: Value) -> Result<Reply, Failure> {
    Ok(match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Integer(number),
        Value::BulkString(bytes) => Reply::Text(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) => Reply::Text(text),
        Value::Okay => Reply::Text("OK".to_owned()),
        Value::Array(values) => Reply::List(values.into_iter().map(reply).collect::<Result<_, _>>()?),
        Value::ServerError(error) => return Err(of_server(&failure::text(&error))),
        // Version 2 of the protocol, which was asked for, has no others.
        _ => return Err(Failure::Unreachable("an answer of a kind that does not exist".to_owned())),
    })
}

/// The same, with its strings as they are, and the errors inside of it.
pub(super) fn verbatim(value: Value) -> Result<Reply, Failure> {
    let inside = |value| match value {
        Value::ServerError(error) => Ok(Reply::Error(failure::text(&error))),
        value => verbatim(value),
    };
    match value {
        Value::BulkString(bytes) => Ok(Reply::Bytes(bytes)),
        Value::Array(values) => Ok(Reply::List(values.into_iter().map(inside).collect::<Result<_, _>>()?)),
        value => reply(value),
    }
}
