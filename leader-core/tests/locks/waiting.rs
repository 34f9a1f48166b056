//! Waiting for a lock that another one has.

use std::sync::Arc;
use std::sync::Mutex;

use leader_core::LockError;
use leader_core::store::{Announcer, LockAnswers};
use leader_core::testing::FaultyStore;
use tokio::task::JoinSet;

use super::*;

/// Waits until so many stand before one who asks the store itself.
async fn until_ahead(store: &MemoryStore, waiting: u32) {
    within(async {
        loop {
            match asked_of(store, None).await {
                LockAnswer::Busy(busy) if busy.ahead == waiting => return,
                LockAnswer::Busy(_) => tokio::task::yield_now().await,
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn those_who_wait_are_served_in_the_order_in_which_they_came() {
    const WAITING: u32 = 10;
    let store = MemoryStore::new();
    // Half of them on each.
    let electors = [start(store.clone()).await, start(store.clone()).await];
    let first = electors[0].lock(KEY).acquire().await.unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = JoinSet::new();
    for n in 0..WAITING {
        let (elector, served) = (electors[n as usize % 2].clone(), Arc::clone(&served));
        waiting.spawn(async move {
            let guard = elector.lock(KEY).wait(PATIENCE).acquire().await.unwrap();
            served.lock().unwrap().push(n);
            guard.release().await.unwrap();
        });
        until_ahead(&store, n + 1).await;
    }
    // By the places, so that none of them has asked meanwhile, but was told.
    first.release().await.unwrap();
    within(waiting.join_all()).await;
    assert_eq!(*served.lock().unwrap(), (0..WAITING).collect::<Vec<_>>());
}

#[tokio::test]
async fn who_waits_is_woken_by_a_release_and_not_by_the_clock() {
    let (a, store, clock) = by_hand().await;
    let b = Elector::start(Config::with_store(store.clone()).ttl(TTL).manual_clock(clock)).await.unwrap();
    let guard = a.lock(KEY).acquire().await.unwrap();
    let next = tokio::spawn(async move { b.lock(KEY).wait(TTL).acquire().await });
    until_ahead(&store, 1).await;
    drop(guard);
    // Time stands still.
    assert!(within(next).await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn who_missed_the_release_asks_by_itself() {
    let clock = ManualClock::new();
    let memory = MemoryStore::with_clock(clock.clone());
    let store = FaultyStore::new(memory.clone());
    let a = Elector::start(Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone())).await.unwrap();
    store.lose_announcements();
    let b = Elector::start(Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone())).await.unwrap();
    let guard = a.lock(KEY).acquire().await.unwrap();
    let next = tokio::spawn(async move { b.lock(KEY).wait(TTL).acquire().await });
    until_ahead(&memory, 1).await;
    guard.release().await.unwrap();
    clock.advance(Duration::from_secs(1));
    assert!(within(next).await.unwrap().unwrap().is_held());
}

/// A memory that tells nobody of anything, and leaves it to the test.
struct Silent {
    memory: MemoryStore,
    announcer: Arc<Mutex<Option<Announcer>>>,
}

impl LeaseStore for Silent {
    fn address(&self) -> String {
        self.memory.address()
    }

    fn guarantees(&self) -> Guarantees {
        self.memory.guarantees()
    }

    fn connect(&self, session: Session) -> StoreFuture<'_, ()> {
        *self.announcer.lock().unwrap() = Some(session.announcer);
        Box::pin(async { Ok(()) })
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        self.memory.execute(batch)
    }

    fn execute_locks(&self, batch: LockBatch) -> StoreFuture<'_, LockAnswers> {
        self.memory.execute_locks(batch)
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        self.memory.disconnect(incarnation)
    }
}

#[tokio::test]
async fn when_announcements_may_have_been_lost_all_who_wait_ask_again() {
    let (clock, announcer) = (ManualClock::new(), Arc::default());
    let memory = MemoryStore::with_clock(clock.clone());
    let silent = Silent { memory: memory.clone(), announcer: Arc::clone(&announcer) };
    let elector = Elector::start(Config::with_store(silent).ttl(TTL).manual_clock(clock)).await.unwrap();
    let guard = elector.lock(KEY).acquire().await.unwrap();
    let waits = tokio::spawn({
        let elector = elector.clone();
        async move { elector.lock(KEY).wait(TTL).acquire().await }
    });
    until_ahead(&memory, 1).await;
    guard.release().await.unwrap();
    assert!(!waits.is_finished());
    announcer.lock().unwrap().as_ref().unwrap().gap();
    // Time stands still.
    assert!(within(waits).await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn a_wait_ends_and_leaves_no_place() {
    let (elector, store, clock) = by_hand().await;
    let guard = elector.lock(KEY).acquire().await.unwrap();
    let other = elector.clone();
    let waits = tokio::spawn(async move { other.lock(KEY).wait(Duration::from_secs(5)).acquire().await });
    until_ahead(&store, 1).await;
    clock.advance(Duration::from_secs(5));
    let error = within(waits).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Busy { holder: Some(_), ahead: 0, .. }), "{error}");
    until_ahead(&store, 0).await;
    guard.release().await.unwrap();
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Won { .. }));
}

#[tokio::test]
async fn who_stops_waiting_makes_room_at_once() {
    let (elector, store, _clock) = by_hand().await;
    let guard = elector.lock(KEY).acquire().await.unwrap();
    let waits = |elector: &Elector| {
        let elector = elector.clone();
        tokio::spawn(async move { elector.lock(KEY).wait(TTL).acquire().await })
    };
    let first = waits(&elector);
    until_ahead(&store, 1).await;
    let second = waits(&elector);
    until_ahead(&store, 2).await;
    first.abort();
    until_ahead(&store, 1).await;
    drop(guard);
    assert!(within(second).await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn one_who_waits_has_the_lock_when_a_dead_holders_has_ended() {
    let (elector, store, clock) = by_hand().await;
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Won { .. }));
    let next = tokio::spawn(async move { elector.lock(KEY).wait(2 * TTL).acquire().await });
    // The place of the one who waits is kept by asking again and again.
    within(async {
        while !next.is_finished() {
            clock.advance(Duration::from_millis(200));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert!(next.await.unwrap().is_ok());
}

/// Nobody who waits is forgotten, whatever happens around it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_get_their_turn_though_others_come_give_up_and_fail() {
    const WORKERS: usize = 30;
    let store = FaultyStore::new(MemoryStore::new());
    let electors = [start(store.clone()).await, start(store.clone()).await, start(store.clone()).await];
    store.inject_times(5, leader_core::testing::Fault::Fail(plug_pulled()));
    let inside = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut working = JoinSet::new();
    for n in 0..WORKERS {
        let (elector, inside) = (electors[n % 3].clone(), Arc::clone(&inside));
        working.spawn(async move {
            for round in 0..10 {
                let work = |_| async {
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0, "two at once");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                };
                if (n + round) % 4 == 0 {
                    // Somebody who does not wait for long: it may be dropped at any point.
                    let hasty = elector.lock(KEY).wait(PATIENCE).acquire();
                    drop(tokio::time::timeout(Duration::from_micros(200), hasty).await);
                } else {
                    elector.lock(KEY).wait(PATIENCE).run(work).await.unwrap();
                }
            }
        });
    }
    within(working.join_all()).await;
}
