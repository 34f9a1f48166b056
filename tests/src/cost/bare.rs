//! The same scripts, or transactions, and nothing around them.

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use leader_core::store::{LockCommand, LockOp, LockOwner};
use leader_core::testing::redis_script::{LOCK_TEXT, lock_arguments};
use leader_core::{Candidate, Incarnation, InstanceId, LockKey, Term};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::redis::Client;

const TTL: Duration = Duration::from_secs(10);

/// Takes a lock and gives it back by the store's own script, over a blocking connection: two round trips, and nobody is
/// woken for them but this thread.
pub(super) fn scripts(server: SocketAddr) -> Result<impl FnMut() + Send + 'static, Box<dyn Error>> {
    let mut client = Client::open(server, None)?;
    let digest: String = client.command(&["SCRIPT", "LOAD", LOCK_TEXT])?;
    let key = LockKey::new("bare")?;
    let candidate = Candidate { id: InstanceId::new("bare")?, incarnation: Incarnation::random() };
    Ok(move || {
        let owner = LockOwner::new(candidate.clone());
        let mut call = |op| {
            let command = LockCommand { key: key.clone(), owner: owner.clone(), ttl: TTL, op };
            let arguments = lock_arguments(&[command], "_lock:", "leader:");
            let mut parts = vec!["EVALSHA", &digest];
            parts.extend(arguments.iter().map(String::as_str));
            let answers: Vec<Vec<redis::Value>> = client.command(&parts).expect("the server answers");
            answers
        };
        let won = call(LockOp::Acquire { floor: Term::default(), queue: None, once: false });
        let [kind, token] = won[0].as_slice() else { panic!("it is not won: {won:?}") };
        assert_eq!(text(kind), "won");
        let token = Term::new(text(token).parse().expect("a token is a number"));
        let released = call(LockOp::Release { token: Some(token) });
        assert_eq!(text(&released[0][0]), "released");
    })
}

fn text(value: &redis::Value) -> String {
    redis::from_redis_value(value.clone()).expect("it is a text")
}

/// The same, asked for by a thread that sleeps meanwhile, of another one that has a runtime: what no lock can do without
/// that is renewed by a thread of its own.
pub(super) fn scripts_in_a_thread(server: SocketAddr) -> Result<impl FnMut() + 'static, Box<dyn Error>> {
    let mut bare = scripts_in_steps(server)?;
    let (ask, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        driver.block_on(async move {
            while let Some(reply) = asked.recv().await {
                bare();
                // Whoever asked waits.
                let _ = reply.send(());
            }
        });
    });
    let caller = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(move || {
        for _ in 0..2 {
            let (reply, answer) = oneshot::channel();
            ask.send(reply).expect("the thread lives as long as this");
            caller.block_on(answer).expect("it answers");
        }
    })
}

/// Takes the lock at one call, and gives it back at the next.
fn scripts_in_steps(server: SocketAddr) -> Result<impl FnMut() + Send + 'static, Box<dyn Error>> {
    let mut client = Client::open(server, None)?;
    let digest: String = client.command(&["SCRIPT", "LOAD", LOCK_TEXT])?;
    let key = LockKey::new("bare in a thread")?;
    let candidate = Candidate { id: InstanceId::new("bare")?, incarnation: Incarnation::random() };
    let mut held = None;
    Ok(move || {
        let (owner, op) = match held.take() {
            None => {
                let owner = LockOwner::new(candidate.clone());
                held = Some(owner.clone());
                (owner, LockOp::Acquire { floor: Term::default(), queue: None, once: false })
            }
            Some(owner) => (owner, LockOp::Release { token: None }),
        };
        let command = LockCommand { key: key.clone(), owner, ttl: TTL, op };
        let arguments = lock_arguments(&[command], "_lock:", "leader:");
        let mut parts = vec!["EVALSHA", &digest];
        parts.extend(arguments.iter().map(String::as_str));
        let _: redis::Value = client.command(&parts).expect("the server answers");
    })
}

/// Two transactions that write a row and delete it, the first synced and the second not, as the store has it.
pub(super) fn transactions(file: &Path) -> Result<impl FnMut() + 'static, Box<dyn Error>> {
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.execute_batch("CREATE TABLE IF NOT EXISTS locks (key TEXT PRIMARY KEY, owner TEXT) WITHOUT ROWID")?;
    Ok(move || {
        let mut write = |synced: &str, statement: &str| {
            connection.pragma_update(None, "synchronous", synced).expect("it is not in a transaction");
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.prepare_cached(statement)?.execute(["bare"])?;
            transaction.commit()
        };
        write("full", "INSERT INTO locks VALUES (?1, 'bare')").expect("nobody else writes");
        write("normal", "DELETE FROM locks WHERE key = ?1").expect("nobody else writes");
    })
}
