//! Somebody who calls a store all the time, whatever becomes of the calls.

use std::error::Error;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use leader_core::store::{LeaseStore, LockAnswer, LockBatch, LockCommand, LockKey, LockOp, LockOwner, RedisStore};
use leader_core::testing::Listener;
use leader_core::{Candidate, FreshStore, Incarnation, InstanceId, RedisClient, Term};
use tokio::task::JoinSet;

/// From one call to the next.
const EVERY: Duration = Duration::from_millis(10);
/// How long each may take.
const TIMEOUT: Duration = Duration::from_millis(300);
/// No lock ends by itself meanwhile: its key says that the call was executed.
const TTL: Duration = Duration::from_secs(3600);

/// Makes a store for a caller, and connects it.
pub(super) async fn connected(client: RedisClient, url: &str) -> Result<(RedisStore, Candidate), Box<dyn Error>> {
    let store = RedisStore::new(url)?.client(client)?.fresh_store(FreshStore::Trust);
    let candidate = Candidate { id: InstanceId::new(client.to_string())?, incarnation: Incarnation::random() };
    let (mut session, _) = Listener::new(candidate.clone(), []);
    session.timeout = TIMEOUT;
    store.connect(session).await?;
    Ok((store, candidate))
}

/// Each call takes a lock of its own: calls that overlap, a new one each 10 ms. It is over when this is dropped or ended.
pub(super) struct Caller {
    calls: Arc<Mutex<Vec<Outcome>>>,
    end: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What became of a call.
#[derive(Debug, Clone)]
struct Outcome {
    key: String,
    ended: Instant,
    won: bool,
}

/// What a caller has seen of a fault.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// From the end of the fault to the first call that succeeded.
    pub(super) back: Duration,
    /// Calls that failed.
    pub(super) failed: usize,
    /// Those of them that were executed all the same.
    pub(super) executed: usize,
}

impl Caller {
    /// Begins, and returns when the first call has succeeded. `keys`: the names of the locks, one after the other.
    pub(super) fn begin(
        client: RedisClient,
        url: &str,
        keys: impl FnMut() -> String + Send + 'static,
    ) -> Result<Self, Box<dyn Error>> {
        let calls: Arc<Mutex<Vec<Outcome>>> = Arc::default();
        let (end, ended) = tokio::sync::oneshot::channel();
        let (tell, told) = channel::<Result<(), String>>();
        let thread = std::thread::spawn({
            let (calls, url) = (Arc::clone(&calls), url.to_owned());
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let outcome = runtime.map_err(Box::from).and_then(|runtime| {
                    runtime.block_on(async {
                        let (store, candidate) = connected(client, &url).await?;
                        let calling = call_on(&store, &candidate, keys, &calls, || drop(tell.send(Ok(()))));
                        tokio::select! {
                            called = calling => called,
                            _ = ended => Ok(()),
                        }
                    })
                });
                if let Err(error) = outcome {
                    // Whoever began may have gone.
                    let _ = tell.send(Err(error.to_string()));
                }
            }
        });
        let this = Self { calls, end: Some(end), thread: Some(thread) };
        first(&told)?;
        Ok(this)
    }

    /// Whether a call has succeeded that ended at this instant or later.
    pub(super) fn is_back(&self, since: Instant) -> bool {
        self.calls().iter().any(|call| call.won && call.ended >= since)
    }

    fn calls(&self) -> Vec<Outcome> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it: what it has seen of a fault that ended at this instant, where `executed` says whether a lock was taken.
    pub(super) fn end(mut self, fault: Instant, mut executed: impl FnMut(&str) -> bool) -> Seen {
        self.stop();
        let calls = self.calls();
        let back = calls.iter().filter(|call| call.won && call.ended >= fault).map(|call| call.ended).min();
        let failed: Vec<&Outcome> = calls.iter().filter(|call| !call.won).collect();
        Seen {
            back: back.map_or(Duration::MAX, |back| back - fault),
            failed: failed.len(),
            executed: failed.iter().filter(|call| executed(&call.key)).count(),
        }
    }

    fn stop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it does not panic");
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.stop();
    }
}

fn first(told: &Receiver<Result<(), String>>) -> Result<(), Box<dyn Error>> {
    Ok(told.recv()??)
}

async fn call_on(
    store: &RedisStore,
    candidate: &Candidate,
    mut keys: impl FnMut() -> String,
    calls: &Arc<Mutex<Vec<Outcome>>>,
    mut succeeded: impl FnMut(),
) -> Result<(), Box<dyn Error>> {
    let mut under_way = JoinSet::new();
    let mut has_succeeded = false;
    let mut next = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            _ = next.tick() => {
                let (store, key) = (store.clone(), keys());
                let op = LockOp::Acquire { floor: Term::default(), queue: None, once: false };
                let owner = LockOwner::new(candidate.clone());
                let commands = vec![LockCommand { key: LockKey::new(&key)?, owner, ttl: TTL, op }];
                under_way.spawn(async move {
                    let call = store.execute_locks(LockBatch { commands, timeout: TIMEOUT });
                    // As the driver does it.
                    let answer = tokio::time::timeout(TIMEOUT, call).await;
                    let won = matches!(answer, Ok(Ok(answers)) if matches!(answers[..], [Ok(LockAnswer::Won { .. })]));
                    Outcome { key, ended: Instant::now(), won }
                });
            }
            Some(done) = under_way.join_next() => {
                let outcome = done?;
                if outcome.won && !std::mem::replace(&mut has_succeeded, true) {
                    succeeded();
                }
                calls.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
            }
        }
    }
}
