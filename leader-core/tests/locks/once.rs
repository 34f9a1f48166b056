//! Work that is done once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leader_core::testing::{Fault, FaultyStore};
use leader_core::{LockError, Once};
use tokio::task::JoinSet;

use super::*;

#[derive(Debug, PartialEq)]
enum Problem {
    Work(&'static str),
    Lock(LockError),
}

impl From<LockError> for Problem {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

/// Work that succeeds.
async fn works() -> Result<u8, Problem> {
    Ok(7)
}

async fn fails() -> Result<u8, Problem> {
    Err(Problem::Work("it failed"))
}

async fn must_not_run() -> Result<u8, Problem> {
    panic!("it was run")
}

#[tokio::test]
async fn what_has_succeeded_is_not_run_again_anywhere() {
    let store = MemoryStore::new();
    let (a, b) = (start(store.clone()).await, start(store).await);
    assert_eq!(a.once("migrate:3").run(works).await, Ok(Once::Ran(7)));
    for elector in [&a, &b] {
        assert_eq!(elector.once("migrate:3").run(must_not_run).await, Ok(Once::Done));
    }
    assert_eq!(b.once("migrate:4").run(works).await, Ok(Once::Ran(7)), "another key is another work");
}

#[tokio::test]
async fn what_has_failed_is_undone_and_its_error_is_its_own() {
    let elector = start(MemoryStore::new()).await;
    assert_eq!(elector.once("migrate:3").run(fails).await, Err(Problem::Work("it failed")));
    // A busy lock inside is an error of the work, and no word on whether another instance is at it.
    let _guard = elector.lock(KEY).acquire().await.unwrap();
    let inner = || async { Ok(elector.lock(KEY).acquire().await.map(|_| 7)?) };
    let error = elector.once("migrate:3").run::<u8, Problem, _>(inner).await.unwrap_err();
    assert!(matches!(error, Problem::Lock(LockError::Busy { .. })), "{error:?}");
    assert_eq!(elector.once("migrate:3").run(works).await, Ok(Once::Ran(7)));
}

#[tokio::test]
async fn while_one_is_at_it_others_are_told_and_those_who_wait_hear_of_the_end() {
    let store = MemoryStore::new();
    let (a, b) = (start(store.clone()).await, start(store).await);
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (go, goes) = tokio::sync::oneshot::channel();
    let first = tokio::spawn(async move {
        let work = || async {
            begun.send(()).unwrap();
            goes.await.unwrap();
            works().await
        };
        a.once("migrate:3").run(work).await
    });
    begins.await.unwrap();
    assert_eq!(b.once("migrate:3").run(must_not_run).await, Ok(Once::Busy));
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let b = b.clone();
        waiting.spawn(async move { b.once("migrate:3").wait(PATIENCE).run(must_not_run).await });
    }
    tokio::task::yield_now().await;
    go.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(Once::Ran(7)));
    for done in within(waiting.join_all()).await {
        assert_eq!(done, Ok(Once::Done));
    }
}

#[tokio::test]
async fn who_waits_takes_over_what_failed() {
    let store = MemoryStore::new();
    let (a, b) = (start(store.clone()).await, start(store).await);
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (go, goes) = tokio::sync::oneshot::channel();
    let first = tokio::spawn(async move {
        let work = || async {
            begun.send(()).unwrap();
            goes.await.unwrap();
            fails().await
        };
        a.once("migrate:3").run(work).await
    });
    begins.await.unwrap();
    let second = tokio::spawn(async move { b.once("migrate:3").wait(PATIENCE).run(works).await });
    tokio::task::yield_now().await;
    go.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Err(Problem::Work("it failed")));
    assert_eq!(within(second).await.unwrap(), Ok(Once::Ran(7)));
}

#[tokio::test]
async fn what_was_dropped_half_way_is_undone() {
    let store = MemoryStore::new();
    let (a, b) = (start(store.clone()).await, start(store).await);
    let (begun, begins) = tokio::sync::oneshot::channel();
    let first = tokio::spawn(async move {
        let work = || async {
            begun.send(()).unwrap();
            std::future::pending::<Result<u8, Problem>>().await
        };
        a.once("migrate:3").run(work).await
    });
    begins.await.unwrap();
    first.abort();
    assert_eq!(within(b.once("migrate:3").wait(PATIENCE).run(works)).await, Ok(Once::Ran(7)));
}

#[tokio::test]
async fn a_note_can_be_forgotten_and_ends_when_it_is_to_end() {
    let (elector, _store, clock) = by_hand().await;
    assert_eq!(elector.forget("migrate:3").await, Ok(false));
    assert_eq!(elector.once("migrate:3").run(works).await, Ok(Once::Ran(7)));
    assert_eq!(elector.forget("migrate:3").await, Ok(true));
    let day = Duration::from_secs(86_400);
    assert_eq!(elector.once("migrate:3").keep(day).run(works).await, Ok(Once::Ran(7)));
    assert_eq!(elector.once("migrate:3").run(must_not_run).await, Ok(Once::Done));
    clock.advance(day);
    assert_eq!(elector.once("migrate:3").run(works).await, Ok(Once::Ran(7)));
}

#[tokio::test]
async fn one_name_is_a_lock_and_a_work_apart() {
    let elector = start(MemoryStore::new()).await;
    let both = elector.lock("migrate:3").run(|_| elector.once("migrate:3").run(works));
    assert_eq!(both.await.unwrap(), Ok(Once::Ran(7)));
}

#[tokio::test]
async fn a_confirmation_that_was_lost_is_asked_for_again() {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let elector = Elector::start(Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone())).await.unwrap();
    store.inject_for_locks_times(1, Fault::LoseReply, |command| matches!(command.op, LockOp::Complete { .. }));
    let once = tokio::spawn(async move { elector.once("migrate:3").run(works).await });
    within(async {
        while !once.is_finished() {
            clock.advance(Duration::from_millis(50));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(once.await.unwrap(), Ok(Once::Ran(7)));
}

#[tokio::test]
async fn what_could_not_be_noted_is_no_success() {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let elector = Elector::start(Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone())).await.unwrap();
    let pull = store.clone();
    let work = || async move {
        pull.inject_for_locks(Fault::Fail(plug_pulled()), |_| true);
        works().await
    };
    let other = elector.clone();
    let once = tokio::spawn(async move { other.once("migrate:3").run(work).await });
    within(async {
        while !once.is_finished() {
            clock.advance(Duration::from_millis(250));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let error = once.await.unwrap().unwrap_err();
    let Problem::Lock(LockError::Unconfirmed { error: cause, .. }) = &error else { panic!("{error:?}") };
    assert_eq!(*cause, plug_pulled());
    store.heal();
    clock.advance(TTL);
    assert_eq!(elector.once("migrate:3").run(works).await, Ok(Once::Ran(7)));
}

#[tokio::test]
async fn what_could_not_be_forgotten_is_said_to_be_noted_still() {
    let store = FaultyStore::new(MemoryStore::new());
    let elector = start(store.clone()).await;
    store.inject_for_locks(Fault::Fail(plug_pulled()), |command| matches!(command.op, LockOp::Forget));
    let error = elector.forget("migrate:3").await.unwrap_err();
    assert!(matches!(error, LockError::NotForgotten { .. }), "{error}");
    assert!(error.to_string().starts_with("the work `migrate:3` may still be noted as done"), "{error}");
}

#[tokio::test]
async fn nothing_is_run_without_an_elector_or_with_a_wrong_key() {
    let elector = start(MemoryStore::new()).await;
    for key in ["", "a\0b", &"x".repeat(508)] {
        let error = elector.once(key).run(must_not_run).await.unwrap_err();
        assert!(matches!(error, Problem::Lock(LockError::InvalidKey(_))), "{error:?}");
        assert!(elector.forget(key).await.is_err());
        let text = format!("{error:?}");
        assert!(text.contains("the key of work") && text.contains("507") && !text.contains("once:"), "{text}");
    }
    let error = leader_core::once("migrate:3").run(must_not_run).await.unwrap_err();
    assert!(matches!(error, Problem::Lock(LockError::NotStarted { .. })), "{error:?}");
    let scoped = elector.scope(async { leader_core::once("migrate:3").run(works).await });
    assert_eq!(scoped.await, Ok(Once::Ran(7)));
}

/// The side effect has no rule of its own against being done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_that_start_at_once_do_it_once_also_if_some_die_half_way() {
    let store = MemoryStore::new();
    let (rows, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut all = JoinSet::new();
    for _ in 0..20 {
        let elector = start(store.clone()).await;
        let (rows, begun) = (Arc::clone(&rows), Arc::clone(&begun));
        all.spawn(async move {
            let work = || async move {
                // The first three fail before their commit.
                if begun.fetch_add(1, Ordering::SeqCst) < 3 {
                    return Err(Problem::Work("it died"));
                }
                tokio::task::yield_now().await;
                rows.fetch_add(1, Ordering::SeqCst);
                Ok(())
            };
            elector.once("migrate:3").wait(PATIENCE).run(work).await
        });
    }
    let ended = within(all.join_all()).await;
    assert_eq!(ended.iter().filter(|end| matches!(end, Ok(Once::Ran(())))).count(), 1);
    assert_eq!(ended.iter().filter(|end| end.is_err()).count(), 3);
    assert_eq!((rows.load(Ordering::SeqCst), begun.load(Ordering::SeqCst)), (1, 4));
}
