//! An elector and its store, for tests of work under locks: both by clocks that pass by hand, and the store fails on command.

use std::time::Duration;

use leader_core::store::{LockCommand, LockOp, MemoryStore};
use leader_core::testing::{FaultyStore, ManualClock};
use leader_core::{Config, Elector, StoreError};

/// Longer than anything that has to happen in it takes, though time passes in big steps.
pub(crate) const TTL: Duration = Duration::from_secs(600);
/// For what has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) elector: Elector,
    pub(crate) store: FaultyStore,
    pub(crate) clock: ManualClock,
    memory: MemoryStore,
    stores_clock: ManualClock,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let (clock, stores_clock) = (ManualClock::new(), ManualClock::new());
        let memory = MemoryStore::with_clock(stores_clock.clone());
        let store = FaultyStore::new(memory.clone());
        let config = Config::with_store(store.clone()).ttl(TTL).operation_timeout(Duration::from_secs(1));
        let elector = Elector::start(config.manual_clock(clock.clone())).await.unwrap();
        Self { elector, store, clock, memory, stores_clock }
    }

    /// Another elector on the same store.
    pub(crate) async fn another(&self) -> Elector {
        Elector::start(Config::with_store(self.memory.clone()).ttl(TTL)).await.unwrap()
    }

    /// Runs something whose annotated functions ask this elector.
    pub(crate) async fn scope<F: Future>(&self, future: F) -> F::Output {
        within(self.elector.scope(future)).await
    }

    /// Both clocks.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.stores_clock.advance(by);
    }

    /// Nobody has the lock.
    pub(crate) async fn assert_free(&self, key: &str) {
        self.another().await.lock(key).acquire().await.unwrap().release().await.unwrap();
    }

    /// Nobody has the lock, once what is on its way has arrived.
    pub(crate) async fn until_free(&self, key: &str) {
        let other = self.another().await;
        let guard = within(async {
            loop {
                match other.lock(key).acquire().await {
                    Ok(guard) => return guard,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        });
        guard.await.release().await.unwrap();
    }
}

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it did not happen")
}

pub(crate) fn plug_pulled() -> StoreError {
    StoreError::Unavailable { attempted: "a test".to_owned(), cause: "somebody pulled the plug".to_owned() }
}

pub(crate) fn acquires(command: &LockCommand) -> bool {
    matches!(command.op, LockOp::Acquire { .. })
}

pub(crate) fn renews(command: &LockCommand) -> bool {
    matches!(command.op, LockOp::Renew { .. })
}
