//! The same scripts, or transactions, and nothing around them.

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use leader_core::store::{LockCommand, LockOp, LockOwner};
use leader_core::testing::redis_script::{LOCK_TEXT, lock_arguments};
use leader_core::{Candidate, Incarnation, InstanceId, LockKey, Term};
use rusqlite::{Connection, TransactionBehavior};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

use super::hand_over::SETTLE;
use crate::redis::Client;

/// What a place in a queue lasts at most.
const TTL: Duration = Duration::from_secs(10);
const LOCK_PREFIX: &str = "_lock:";
const PREFIX: &str = "leader:";

/// A blocking connection that executes lock commands by the store's own script.
struct Bare {
    client: Client,
    digest: String,
    key: LockKey,
    candidate: Candidate,
}

impl Bare {
    fn open(server: SocketAddr, key: &str) -> Result<Self, Box<dyn Error>> {
        let mut client = Client::open(server, None)?;
        let digest = client.command(&["SCRIPT", "LOAD", LOCK_TEXT])?;
        let candidate = Candidate { id: InstanceId::new("bare")?, incarnation: Incarnation::random() };
        Ok(Self { client, digest, key: LockKey::new(key)?, candidate })
    }

    fn owner(&self) -> LockOwner {
        LockOwner::new(self.candidate.clone())
    }

    /// Whether it was answered as is expected.
    fn call(&mut self, owner: &LockOwner, op: LockOp, expected: &str) {
        let command = LockCommand { key: self.key.clone(), owner: owner.clone(), ttl: TTL, op };
        let arguments = lock_arguments(&[command], LOCK_PREFIX, PREFIX);
        let mut parts = vec!["EVALSHA", &self.digest];
        parts.extend(arguments.iter().map(String::as_str));
        let answers: Vec<Vec<redis::Value>> = self.client.command(&parts).expect("the server answers");
        let kind: String = redis::from_redis_value(answers[0][0].clone()).expect("it is a text");
        assert_eq!(kind, expected);
    }

    fn acquire(&mut self, owner: &LockOwner) {
        self.call(owner, LockOp::Acquire { floor: Term::default(), queue: None, once: false }, "won");
    }

    fn begin_to_wait(&mut self, owner: &LockOwner) {
        self.call(owner, LockOp::Acquire { floor: Term::default(), queue: Some(TTL), once: false }, "busy");
    }

    fn release(&mut self, owner: &LockOwner) {
        self.call(owner, LockOp::Release { token: None }, "released");
    }
}

/// Takes a lock and gives it back: two round trips, and nobody is woken for them but this thread.
pub(super) fn scripts(server: SocketAddr) -> Result<impl FnMut() + 'static, Box<dyn Error>> {
    let mut bare = Bare::open(server, "bare")?;
    Ok(move || {
        let owner = bare.owner();
        bare.acquire(&owner);
        bare.release(&owner);
    })
}

/// The same, asked for by a thread that sleeps meanwhile, of another one that has a runtime: what no lock can do without
/// that is renewed by a thread of its own.
pub(super) fn scripts_in_a_thread(server: SocketAddr) -> Result<impl FnMut() + 'static, Box<dyn Error>> {
    let mut bare = Bare::open(server, "bare in a thread")?;
    let (ask, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let driver = Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        driver.block_on(async move {
            let mut held = None;
            while let Some(reply) = asked.recv().await {
                if let Some(owner) = held.take() {
                    bare.release(&owner);
                } else {
                    let owner = held.insert(bare.owner());
                    bare.acquire(owner);
                }
                // Whoever asked waits.
                let _ = reply.send(());
            }
        });
    });
    let caller = Builder::new_current_thread().build()?;
    Ok(move || {
        for _ in 0..2 {
            let (reply, answer) = oneshot::channel();
            ask.send(reply).expect("the thread lives as long as this");
            caller.block_on(answer).expect("it answers");
        }
    })
}

/// One thread gives the lock back, and another one, which waits for the message of that, takes it: two round trips, three
/// with the message, and each of three threads is woken for them.
pub(super) fn hand_over(server: SocketAddr) -> Result<impl FnMut() -> Duration + 'static, Box<dyn Error>> {
    let (mut holds, mut waits) = (Bare::open(server, "bare hand-over")?, Bare::open(server, "bare hand-over")?);
    let mut subscriber = redis::Client::open(format!("redis://{server}"))?.get_connection()?;
    let (begin, begun) = channel::<()>();
    let (tell, told) = channel();
    let (ready, is_ready) = channel();
    let channel = format!("{PREFIX}wake:{}", waits.candidate.incarnation);
    std::thread::spawn(move || {
        let mut messages = subscriber.as_pubsub();
        messages.subscribe(channel).expect("the server answers");
        while begun.recv().is_ok() {
            let owner = waits.owner();
            waits.begin_to_wait(&owner);
            // Nobody hears it at the end.
            let _ = ready.send(());
            messages.get_message().expect("the server tells");
            waits.acquire(&owner);
            let _ = tell.send(Instant::now());
            waits.release(&owner);
            let _ = tell.send(Instant::now());
        }
    });
    Ok(move || {
        let owner = holds.owner();
        holds.acquire(&owner);
        begin.send(()).expect("the thread lives as long as this");
        is_ready.recv().expect("it begins to wait");
        std::thread::sleep(SETTLE);
        let released = Instant::now();
        holds.release(&owner);
        let took = told.recv().expect("it takes the lock").saturating_duration_since(released);
        told.recv().expect("it gives the lock back");
        took
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
