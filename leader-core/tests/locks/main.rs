//! Locks, as their users see them, on a store in memory that fails on command.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod ending;
mod faults;
mod held;
mod holding;
mod once;
mod waiting;

use std::time::Duration;

use leader_core::store::{
    Answers, Batch, Guarantees, LeaseStore, LockAnswer, LockBatch, LockCommand, LockKey, LockOp, LockOwner,
    MemoryStore, Session, StoreFuture,
};
use leader_core::testing::ManualClock;
use leader_core::{Candidate, Config, Elector, Incarnation, InstanceId, StoreError, Term};

/// Of electors and locks; none runs out during a test whose time passes by itself.
const TTL: Duration = Duration::from_secs(30);
/// For what has to happen.
const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "billing:charge-run";

async fn start(store: impl LeaseStore) -> Elector {
    Elector::start(Config::with_store(store).ttl(TTL)).await.unwrap()
}

/// One whose time passes by hand, on a store whose time passes by the same clock.
async fn by_hand() -> (Elector, MemoryStore, ManualClock) {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let config = Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone());
    (Elector::start(config).await.unwrap(), store, clock)
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it did not happen")
}

/// Asks the store itself for the lock, for one of its own.
async fn asked_of(store: &MemoryStore, queue: Option<Duration>) -> LockAnswer {
    tell(store, LockOp::Acquire { floor: Term::default(), queue, once: false }).await
}

async fn tell(store: &MemoryStore, op: LockOp) -> LockAnswer {
    let candidate = Candidate { id: InstanceId::new("stranger").unwrap(), incarnation: Incarnation::from_u128(7) };
    let owner = LockOwner { candidate, nonce: 7 };
    let command = LockCommand { key: LockKey::new(KEY).unwrap(), owner, ttl: TTL, op };
    let answers = store.execute_locks(LockBatch { commands: vec![command], timeout: PATIENCE }).await.unwrap();
    answers.into_iter().next().unwrap().unwrap()
}

/// Somebody has the lock.
async fn until_taken(store: &MemoryStore) {
    within(async {
        while let LockAnswer::Won { token } = asked_of(store, None).await {
            tell(store, LockOp::Release { token: Some(token) }).await;
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Nobody holds the lock, or waits for it, once what is on its way has arrived.
async fn until_free(store: &MemoryStore) {
    within(async {
        while !matches!(asked_of(store, None).await, LockAnswer::Won { .. }) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn plug_pulled() -> StoreError {
    StoreError::Unavailable { attempted: "a test".to_owned(), cause: "somebody pulled the plug".to_owned() }
}

/// A store that knows nothing of locks, as one that was written before there were any.
#[derive(Debug, Default)]
struct WithoutLocks(MemoryStore);

impl LeaseStore for WithoutLocks {
    fn address(&self) -> String {
        "one without locks".to_owned()
    }

    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn connect(&self, session: Session) -> StoreFuture<'_, ()> {
        self.0.connect(session)
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        self.0.execute(batch)
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        self.0.disconnect(incarnation)
    }
}
