//! Taking, holding, giving back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Waker};

use leader_core::LockError;
use tokio::task::JoinSet;

use super::*;

#[tokio::test]
async fn a_lock_is_had_by_one_at_a_time_also_within_one_elector() {
    let store = MemoryStore::new();
    let (a, b) = (start(store.clone()).await, start(store).await);
    let guard = a.lock(KEY).acquire().await.unwrap();
    assert!(guard.is_held() && guard.remaining() <= TTL && guard.key().as_str() == KEY);
    for elector in [&a, &b] {
        let error = elector.lock(KEY).acquire().await.unwrap_err();
        let LockError::Busy { holder, own, remaining, ahead, .. } = &error else { panic!("{error}") };
        assert_eq!((holder.as_ref(), *ahead), (Some(a.instance_id()), 0));
        assert_eq!(*own, elector.instance_id() == a.instance_id());
        assert_eq!(error.to_string().contains("which is this instance: a lock is not re-entrant"), *own, "{error}");
        assert_eq!(error.to_string().contains("s left unless it is renewed"), !own, "{error}");
        assert!(*remaining <= TTL, "{remaining:?}");
    }
    b.lock("another").acquire().await.unwrap().release().await.unwrap();
    let first = guard.token();
    let view = guard.held();
    guard.release().await.unwrap();
    assert!(!view.is_held());
    within(view.lost()).await;
    let next = b.lock(KEY).acquire().await.unwrap();
    assert!(next.token() > first);
}

#[tokio::test]
async fn a_follower_has_locks_like_a_leader_and_they_outlive_a_step_down() {
    let store = MemoryStore::new();
    let (a, b) = (start(store.clone()).await, start(store).await);
    assert!(a.is_leader("default") && !b.is_leader("default"));
    let (of_a, of_b) = (a.lock("a").acquire().await.unwrap(), b.lock("b").acquire().await.unwrap());
    a.step_down("default").await.unwrap();
    assert!(of_a.is_held() && of_b.is_held());
}

#[tokio::test]
async fn what_is_dropped_is_free_also_when_it_panics() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    drop(elector.lock(KEY).acquire().await.unwrap());
    elector
        .lock(KEY)
        .acquire()
        .await
        .expect("a lock that was dropped can be taken by the next line")
        .release()
        .await
        .unwrap();
    let guard = elector.lock(KEY).acquire().await.unwrap();
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(move || {
        let _guard = guard;
        panic!("as the test asked");
    }));
    assert!(panicked.is_err());
    until_free(&store).await;
}

#[tokio::test]
async fn a_lock_that_is_held_for_longer_than_its_ttl_is_renewed() {
    let (elector, store, clock) = by_hand().await;
    let guard = elector.lock(KEY).acquire().await.unwrap();
    for _ in 0..10 {
        let before = guard.deadline();
        clock.advance(TTL / 3);
        within(async {
            while guard.deadline() == before {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    assert!(guard.is_held());
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Busy(_)));
}

#[tokio::test]
async fn a_lock_that_is_not_renewed_is_lost_after_its_ttl() {
    let (elector, store, clock) = by_hand().await;
    let guard = elector.lock(KEY).ttl(Duration::from_secs(3)).renew(false).acquire().await.unwrap();
    clock.advance(Duration::from_millis(2_990));
    assert!(guard.is_held());
    clock.advance(Duration::from_millis(10));
    assert!(!guard.is_held());
    within(guard.lost()).await;
    assert!(matches!(guard.release().await, Err(LockError::Lost { .. })));
    until_free(&store).await;
}

#[tokio::test]
async fn work_runs_under_the_lock_and_leaves_it_free() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    let inside = store.clone();
    let done = elector.lock(KEY).run(|lock| async move {
        assert!(matches!(asked_of(&inside, None).await, LockAnswer::Busy(_)));
        lock.token()
    });
    let token = done.await.unwrap();
    assert!(token > Term::default());
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Won { token: next } if next > token));
}

#[tokio::test]
async fn work_is_not_started_without_the_lock() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    let _guard = elector.lock(KEY).acquire().await.unwrap();
    let never = |_| async { panic!("it ran without the lock") };
    assert!(elector.lock(KEY).run(never).await.unwrap_err().is_busy());
    for key in ["", "a\nb", &"x".repeat(513)] {
        let error = elector.lock(key).run(never).await.unwrap_err();
        assert!(matches!(error, LockError::InvalidKey(_)), "{error}");
    }
    for ttl in [Duration::from_millis(99), Duration::from_secs(3601)] {
        let error = elector.lock("another").ttl(ttl).run(never).await.unwrap_err();
        assert!(matches!(error, LockError::InvalidTtl { .. }), "{error}");
    }
    let error = leader_core::lock(KEY).run(never).await.unwrap_err();
    assert!(matches!(error, LockError::NotStarted { .. }), "{error}");
    assert!(error.to_string().contains("none was started, or it has ended"), "{error}");
    elector.shutdown(Duration::ZERO).await.unwrap_err();
    let error = elector.lock("another").run(never).await.unwrap_err();
    assert!(matches!(error, LockError::Stopped { .. }), "{error}");

    let without = start(WithoutLocks::default()).await;
    let error = without.lock(KEY).wait(PATIENCE).run(never).await.unwrap_err();
    assert!(error.to_string().contains("this store has no locks"), "{error}");
}

#[tokio::test]
async fn inside_a_scope_the_lock_is_that_of_its_elector() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    let taken = elector.scope(async { leader_core::lock(KEY).acquire().await.unwrap() });
    let guard = taken.await;
    assert!(elector.lock(KEY).acquire().await.unwrap_err().is_busy());
    drop(guard);
    until_free(&store).await;
}

#[tokio::test]
async fn the_status_counts_the_locks_and_shows_the_oldest() {
    let (elector, _store, clock) = by_hand().await;
    let first = elector.lock(KEY).acquire().await.unwrap();
    clock.advance(Duration::from_secs(2));
    let mut guards = Vec::new();
    for n in 0..30 {
        guards.push(elector.lock(format!("k{n:02}")).acquire().await.unwrap());
    }
    let mut waits = Box::pin(elector.lock(KEY).wait(TTL).acquire());
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let locks = elector.status().locks;
    assert_eq!((locks.held, locks.waiting, locks.oldest.len()), (31, 1, 20));
    let oldest = &locks.oldest[0];
    assert_eq!((oldest.key.as_str(), oldest.held, oldest.asked_ago), (KEY, true, Duration::from_secs(2)));
    drop((waits, guards, first));
    let locks = elector.status().locks;
    assert_eq!((locks.held, locks.waiting, locks.oldest.len()), (0, 0, 0));
}

/// A hundred to a call, and no call for each.
#[tokio::test]
async fn ten_thousand_locks_share_their_renewals_and_leave_nothing() {
    const LOCKS: usize = 10_000;
    let clock = ManualClock::new();
    let memory = MemoryStore::with_clock(clock.clone());
    let store = leader_core::testing::FaultyStore::new(memory);
    let elector =
        Arc::new(Elector::start(Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone())).await.unwrap());
    let mut asking = JoinSet::new();
    for n in 0..LOCKS {
        let elector = Arc::clone(&elector);
        asking.spawn(async move { elector.lock(format!("account:{n}")).acquire().await.unwrap() });
    }
    let guards = asking.join_all().await;
    let calls = store.lock_calls();
    let before = guards[0].deadline();
    clock.advance(TTL / 3);
    within(async {
        while guards.iter().any(|guard| guard.deadline() == before) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let renewals = store.lock_calls() - calls;
    assert_eq!(renewals, 100, "{LOCKS} renewals");
    drop(guards);
    elector.shutdown(PATIENCE).await.unwrap();
    assert!(store.lock_calls() - calls <= 300);
}
