//! What becomes of locks when their elector ends.

use std::future::pending;

use leader_core::{DrainError, LockError};

use super::*;

#[tokio::test]
async fn a_shutdown_waits_for_those_who_hold_a_lock() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    let guard = elector.lock(KEY).acquire().await.unwrap();
    let ending = tokio::spawn({
        let elector = elector.clone();
        async move { elector.shutdown(PATIENCE).await }
    });
    while elector.ready().is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!ending.is_finished() && guard.is_held());
    drop(guard);
    within(ending).await.unwrap().unwrap();
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Won { .. }), "it was given back before the end");
}

#[tokio::test]
async fn a_lock_that_outlives_the_grace_is_not_given_away_and_ends_with_its_guard() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    let guard = elector.lock(KEY).acquire().await.unwrap();
    let error = elector.shutdown(Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("a lock is not given away") && !error.to_string().contains("lease"), "{error}");
    let DrainError::StillRunning { running } = error else { panic!("it ended though a lock is held") };
    assert_eq!((running.len(), running[0].is_lock), (1, true));
    assert!(running[0].what.contains(KEY), "{running:?}");
    assert!(guard.is_held(), "the ttl is the last grace");
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Busy(_)));
    guard.release().await.unwrap();
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Won { .. }));
}

#[tokio::test]
async fn of_very_many_locks_that_outlive_the_grace_some_are_named() {
    let elector = start(MemoryStore::new()).await;
    let mut guards = Vec::new();
    for n in 0..50 {
        guards.push(elector.lock(format!("k{n}")).acquire().await.unwrap());
    }
    let DrainError::StillRunning { running } = elector.shutdown(Duration::ZERO).await.unwrap_err() else {
        panic!("it ended though locks are held")
    };
    assert_eq!(
        (running.len(), running[0].what.as_str(), running[20].what.as_str()),
        (21, "the lock k0", "30 more locks")
    );
}

#[tokio::test]
async fn a_lock_that_outlives_its_elector_is_not_renewed_and_lost_at_its_deadline() {
    let (elector, store, clock) = by_hand().await;
    let guard = elector.lock(KEY).acquire().await.unwrap();
    elector.shutdown(Duration::ZERO).await.unwrap_err();
    let deadline = guard.deadline();
    clock.advance(TTL / 2);
    assert!(guard.is_held());
    clock.advance(TTL / 2);
    within(guard.lost()).await;
    assert_eq!((guard.is_held(), deadline > guard.deadline()), (false, true));
    until_free(&store).await;
    assert!(guard.release().await.unwrap_err().is_lost());
}

#[tokio::test]
async fn work_under_a_lock_is_dropped_when_the_grace_is_over() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    let (begun, begins) = tokio::sync::oneshot::channel();
    let work = tokio::spawn({
        let elector = elector.clone();
        async move {
            let work = |_| async move {
                begun.send(()).unwrap();
                pending::<()>().await;
            };
            elector.lock(KEY).run(work).await
        }
    });
    begins.await.unwrap();
    elector.shutdown(Duration::ZERO).await.unwrap();
    assert!(matches!(within(work).await.unwrap(), Err(LockError::Stopped { .. })));
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Won { .. }));
}

#[tokio::test]
async fn who_waits_for_a_lock_is_turned_away_by_a_shutdown() {
    let store = MemoryStore::new();
    let (a, b) = (start(store.clone()).await, start(store.clone()).await);
    let _guard = a.lock(KEY).acquire().await.unwrap();
    let waits = tokio::spawn({
        let b = b.clone();
        async move { b.lock(KEY).wait(PATIENCE).acquire().await }
    });
    within(async {
        while !matches!(asked_of(&store, None).await, LockAnswer::Busy(busy) if busy.ahead == 1) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    b.shutdown(Duration::ZERO).await.unwrap();
    assert!(matches!(within(waits).await.unwrap(), Err(LockError::Stopped { .. })));
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Busy(busy) if busy.ahead == 0), "its place is free");
}

#[tokio::test]
async fn work_that_a_shutdown_waits_for_may_still_take_a_lock() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    let (go, goes) = tokio::sync::oneshot::channel();
    let work = tokio::spawn({
        let elector = elector.clone();
        async move {
            let within_work = elector.clone();
            let work = |_| async move {
                goes.await.unwrap();
                within_work.lock(KEY).acquire().await.unwrap().release().await
            };
            elector.run_if_leader("default", work).await
        }
    });
    while elector.status().running.is_empty() {
        tokio::task::yield_now().await;
    }
    let ending = tokio::spawn({
        let elector = elector.clone();
        async move { elector.shutdown(PATIENCE).await }
    });
    while elector.ready().is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(elector.lock(KEY).acquire().await, Err(LockError::Stopped { .. })), "nobody else");
    go.send(()).unwrap();
    assert_eq!(within(work).await.unwrap(), Some(Ok(())));
    within(ending).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_last_handle_that_goes_leaves_a_held_lock_alone() {
    let store = MemoryStore::new();
    let elector = start(store.clone()).await;
    let guard = elector.lock(KEY).acquire().await.unwrap();
    let mut events = elector.subscribe("default").unwrap();
    drop(elector);
    // To the end of the elector.
    within(async { while events.next().await.is_some() {} }).await;
    assert!(guard.is_held());
    assert!(matches!(asked_of(&store, None).await, LockAnswer::Busy(_)));
    drop(guard);
    until_free(&store).await;
}
