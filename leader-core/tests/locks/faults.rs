//! What becomes of locks when the store, or the way to it, fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use leader_core::LockError;
use leader_core::testing::{Fault, FaultyStore};

use super::*;

/// Longer than anything that has to happen in it takes, though time passes in big steps.
const TTL: Duration = Duration::from_secs(600);
/// What a lock of that ttl is not used for at its end.
const GUARD: Duration = Duration::from_millis(600);

/// Elector and store, each by a clock of its own.
struct Stage {
    elector: Elector,
    store: FaultyStore,
    memory: MemoryStore,
    clock: ManualClock,
    stores_clock: ManualClock,
}

impl Stage {
    async fn set() -> Self {
        let (clock, stores_clock) = (ManualClock::new(), ManualClock::new());
        let memory = MemoryStore::with_clock(stores_clock.clone());
        let store = FaultyStore::new(memory.clone());
        let config = Config::with_store(store.clone()).ttl(TTL).operation_timeout(Duration::from_secs(1));
        let elector = Elector::start(config.manual_clock(clock.clone())).await.unwrap();
        Self { elector, store, memory, clock, stores_clock }
    }

    /// Time passes, and whoever has something to do gets to it, until it has happened.
    async fn pass_until(&self, happened: impl Fn() -> bool) {
        within(async {
            while !happened() {
                self.advance(Duration::from_millis(250));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Both clocks.
    fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.stores_clock.advance(by);
    }
}

fn acquires(command: &LockCommand) -> bool {
    matches!(command.op, LockOp::Acquire { .. })
}

fn renews(command: &LockCommand) -> bool {
    matches!(command.op, LockOp::Renew { .. })
}

fn releases(command: &LockCommand) -> bool {
    matches!(command.op, LockOp::Release { .. })
}

#[tokio::test]
async fn a_failed_renewal_is_tried_again_and_the_lock_is_held_meanwhile() {
    let stage = Stage::set().await;
    let guard = stage.elector.lock(KEY).acquire().await.unwrap();
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), renews);
    let calls = stage.store.lock_calls();
    stage.advance(TTL / 3);
    stage.pass_until(|| stage.store.lock_calls() >= calls + 3).await;
    assert!(guard.is_held());
    stage.store.heal();
    let before = guard.deadline();
    stage.pass_until(|| guard.deadline() > before).await;
    assert!(guard.is_held());
}

#[tokio::test]
async fn with_the_store_away_the_lock_is_lost_at_its_deadline_and_the_work_is_dropped() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let stage = Stage::set().await;
    let dropped = Arc::new(AtomicBool::new(false));
    let (begun, begins) = tokio::sync::oneshot::channel();
    let work = {
        let (elector, dropped) = (stage.elector.clone(), Dropped(Arc::clone(&dropped)));
        tokio::spawn(async move {
            let work = |lock: leader_core::HeldLock| async move {
                let _dropped = dropped;
                begun.send(lock).unwrap();
                std::future::pending::<()>().await;
            };
            elector.lock(KEY).run(work).await
        })
    };
    let lock = within(begins).await.unwrap();
    stage.store.inject(Fault::Fail(plug_pulled()));
    stage.advance(TTL - GUARD - Duration::from_millis(1));
    assert!(lock.is_held());
    stage.advance(Duration::from_millis(1));
    assert!(!lock.is_held(), "and not a moment longer");
    let error = within(work).await.unwrap().unwrap_err();
    assert!(matches!(&error, LockError::Lost { token, .. } if *token == lock.token()), "{error}");
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_lock_that_the_store_gave_to_another_is_lost_with_the_next_renewal() {
    let stage = Stage::set().await;
    let guard = stage.elector.lock(KEY).acquire().await.unwrap();
    // The store's clock runs away: a stated limit, and a renewal ends it.
    stage.stores_clock.advance(TTL);
    let LockAnswer::Won { token } = asked_of(&stage.memory, None).await else { panic!("it is free") };
    assert!(guard.is_held() && token > guard.token(), "the token tells who was first");
    stage.clock.advance(TTL / 3);
    within(guard.lost()).await;
    assert!(!guard.is_held());
    drop(guard);
    assert!(matches!(asked_of(&stage.memory, None).await, LockAnswer::Won { token: same } if same == token));
}

#[tokio::test]
async fn work_that_came_to_its_end_under_a_lock_that_was_lost_is_no_success() {
    let stage = Stage::set().await;
    // A step that does not await: nothing can drop it.
    let (clock, stores_clock) = (stage.clock.clone(), stage.stores_clock.clone());
    let done = stage.elector.lock(KEY).run(|_| async move {
        clock.advance(TTL);
        stores_clock.advance(TTL);
    });
    assert!(done.await.unwrap_err().is_lost());
    // The store forgot the lock, which nobody has noticed before the release.
    let stores_clock = stage.stores_clock.clone();
    let done = stage.elector.lock(KEY).run(|_| async move { stores_clock.advance(TTL) });
    assert!(done.await.unwrap_err().is_lost());
}

#[tokio::test]
async fn an_acquire_whose_answer_was_lost_is_found_to_be_the_own_one() {
    let stage = Stage::set().await;
    stage.store.inject_for_locks_times(1, Fault::LoseReply, acquires);
    let elector = stage.elector.clone();
    let taken = tokio::spawn(async move { elector.lock(KEY).wait(TTL).acquire().await });
    until_taken(&stage.memory).await;
    // The time-out, and the next attempt.
    stage.pass_until(|| taken.is_finished()).await;
    let guard = within(taken).await.unwrap().unwrap();
    guard.release().await.unwrap();
    assert!(matches!(asked_of(&stage.memory, None).await, LockAnswer::Won { .. }));
}

#[tokio::test]
async fn the_largest_token_that_was_seen_is_handed_to_the_store() {
    let (floors, memory) = (Arc::new(Mutex::new(Vec::new())), MemoryStore::new());
    let store = FaultyStore::new(memory.clone());
    let seen = Arc::clone(&floors);
    store.inject_for_locks(Fault::LoseRequest, move |command| {
        if let LockOp::Acquire { floor, .. } = command.op {
            seen.lock().unwrap().push(floor);
        }
        false
    });
    let elector = start(store).await;
    let LockAnswer::Won { token: theirs } = asked_of(&memory, None).await else { panic!("it is free") };
    assert!(elector.lock(KEY).acquire().await.unwrap_err().is_busy());
    let ours = elector.lock("another").acquire().await.unwrap();
    let last = elector.lock("third").acquire().await.unwrap();
    assert_eq!(*floors.lock().unwrap(), [Term::default(), theirs, ours.token()]);
    assert!(theirs < ours.token() && ours.token() < last.token());
}

#[tokio::test]
async fn an_attempt_that_is_dropped_leaves_nothing_whenever_that_is() {
    for (fault, wait) in [
        (Some(Fault::LoseReply), Duration::ZERO),
        (Some(Fault::LoseReply), TTL),
        (Some(Fault::LoseRequest), TTL),
        (Some(Fault::DelayReply(Duration::from_millis(20))), Duration::ZERO),
        (Some(Fault::Delay(Duration::from_millis(20))), Duration::ZERO),
        (None, Duration::ZERO),
    ] {
        let stage = Stage::set().await;
        if let Some(fault) = &fault {
            stage.store.inject_for_locks(fault.clone(), acquires);
        }
        let attempt = stage.elector.lock(KEY).wait(wait).acquire();
        // Not even begun.
        drop(stage.elector.lock(KEY).acquire());
        tokio::select! {
            biased;
            _ = attempt => if fault.is_some() { panic!("{fault:?}") },
            () = stage.store.locks_called(1) => {}
        }
        // Whoever waits for an answer gives that up after its time.
        let free = async {
            while !matches!(asked_of(&stage.memory, None).await, LockAnswer::Won { .. }) {
                stage.clock.advance(Duration::from_millis(20));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        within(free).await;
    }
}

#[tokio::test]
async fn a_guard_whose_release_fails_says_so_and_is_released_later() {
    let stage = Stage::set().await;
    let guard = stage.elector.lock(KEY).acquire().await.unwrap();
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), releases);
    let error = guard.release().await.unwrap_err();
    assert!(error.is_unconfirmed() && error.to_string().contains("pulled the plug"), "{error}");
    assert!(error.to_string().contains("held to the end") && !error.to_string().contains("trying again"), "{error}");
    assert!(matches!(asked_of(&stage.memory, None).await, LockAnswer::Busy(_)));
    stage.store.heal();
    let calls = stage.store.lock_calls();
    stage.pass_until(|| stage.store.lock_calls() > calls).await;
    until_free(&stage.memory).await;
}

#[tokio::test]
async fn a_release_waits_for_a_renewal_that_is_under_way() {
    let stage = Stage::set().await;
    let guard = stage.elector.lock(KEY).acquire().await.unwrap();
    stage.store.inject_for_locks_times(1, Fault::LoseReply, renews);
    let calls = stage.store.lock_calls();
    stage.advance(TTL / 3);
    within(stage.store.locks_called(calls + 1)).await;
    let released = tokio::spawn(guard.release());
    stage.pass_until(|| released.is_finished()).await;
    released.await.unwrap().unwrap();
    assert!(matches!(asked_of(&stage.memory, None).await, LockAnswer::Won { .. }));
}

#[tokio::test]
async fn without_a_wait_a_store_that_is_away_is_told_at_once_and_with_one_it_is_waited_for() {
    let stage = Stage::set().await;
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), |_| true);
    let error = stage.elector.lock(KEY).acquire().await.unwrap_err();
    assert!(matches!(error, LockError::Store { .. }), "{error}");
    assert!(error.to_string().ends_with("pulled the plug; nothing was run"), "{error}");
    let elector = stage.elector.clone();
    let patient = tokio::spawn(async move { elector.lock(KEY).wait(TTL).acquire().await });
    stage.pass_until(|| stage.store.lock_calls() >= 4).await;
    stage.store.heal();
    stage.pass_until(|| patient.is_finished()).await;
    assert!(patient.await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn before_the_first_contact_there_is_no_lock() {
    let store = FaultyStore::new(MemoryStore::new());
    store.fail_connect(plug_pulled());
    let config = Config::with_store(store.clone()).ttl(TTL).retry(Duration::from_millis(20));
    let elector = Elector::start(config.start_timeout(Duration::from_millis(20))).await.unwrap();
    let error = elector.lock(KEY).acquire().await.unwrap_err();
    assert!(error.to_string().contains("pulled the plug"), "{error}");
    let patient = elector.lock(KEY).wait(PATIENCE).acquire();
    store.heal();
    assert!(within(patient).await.unwrap().is_held());
}

#[tokio::test]
async fn no_lease_waits_for_a_lock() {
    let stage = Stage::set().await;
    let lease = stage.elector.lease("default").unwrap();
    stage.store.inject_for_locks(Fault::LoseRequest, |_| true);
    let elector = stage.elector.clone();
    let stuck = tokio::spawn(async move { elector.lock(KEY).wait(TTL).acquire().await });
    within(stage.store.locks_called(1)).await;
    for _ in 0..6 {
        let before = lease.deadline();
        stage.advance(TTL / 3);
        within(async {
            while lease.deadline() == before {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    assert!(lease.is_held());
    stage.pass_until(|| stuck.is_finished()).await;
    assert!(matches!(stuck.await.unwrap(), Err(LockError::Store { .. })));
}
