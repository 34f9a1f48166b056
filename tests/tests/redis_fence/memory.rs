//! A server that has lost its memory lets in nobody who is too old, and keeps out nobody who holds the lease now.

use std::time::Duration;

use leader_core::fence::{FenceError, Fencing};
use leader_core::{Elector, Lease, StoreError};
use leader_tests::process::eventually;
use leader_tests::redis::RedisServer;

use crate::{KEY, MARK, assert_fenced, elector, elector_with, hand_over, leader, marked, value};

/// So long nobody leads on a server that has lost its memory.
const TTL: Duration = Duration::from_secs(3);

/// After a restart the first call may find the connection of before.
async fn set(elector: &Elector, by: &impl Fencing, text: &str) -> Result<(), FenceError> {
    loop {
        match elector.fence().set(by, KEY, text).await {
            Err(FenceError::Store(StoreError::Unavailable { .. })) => {}
            outcome => return outcome,
        }
    }
}

/// It leads again, or still; its first write on this server.
async fn goes_on(elector: &Elector, text: &str) -> Lease {
    loop {
        let lease = eventually("it leads", || elector.lease("default"));
        match set(elector, &lease, text).await {
            Ok(()) => return lease,
            // What it held before is gone, and it has not heard yet.
            Err(FenceError::Fenced { .. }) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
}

/// `a` has led and written; `b` leads now, and has written if it says so; then `lose` happens to the server.
async fn after(written: bool, lose: impl FnOnce(&mut RedisServer)) -> Option<()> {
    let mut redis = RedisServer::start(&[])?;
    let (a, b) = (elector_with(&redis.url(), TTL).await, elector_with(&redis.url(), TTL).await);
    let old = goes_on(&a, "a").await;
    redis.snapshot();
    a.drain(Duration::ZERO).await.unwrap();
    if written {
        goes_on(&b, "b").await;
    } else {
        eventually("b leads", || b.lease("default"));
    }
    lose(&mut redis);
    // In the snapshot the lease was a's.
    let of_a = Some(a.instance_id().to_string());
    let holder = || redis.command::<Option<String>>(&["GET", "leader:default"]);
    eventually("the lease of a has ended", || (holder() != of_a).then_some(()));
    let kept = value(&redis);
    assert_fenced(set(&a, &old, "too late").await, None);
    assert_eq!(value(&redis), kept);
    let new = goes_on(&b, "b goes on").await;
    assert_fenced(set(&a, &old, "too late").await, Some(new.term()));
    assert_eq!((value(&redis).as_deref(), marked(&redis)), (Some("b goes on"), Some(new.term().get())));
    Some(())
}

#[tokio::test]
async fn an_emptied_server_lets_in_nobody_who_is_too_old() {
    for written in [true, false] {
        after(written, |redis| redis.flush_all()).await;
    }
}

#[tokio::test]
async fn a_server_that_was_restarted_without_its_data_lets_in_nobody_who_is_too_old() {
    for written in [true, false] {
        after(written, RedisServer::restart_empty).await;
    }
}

#[tokio::test]
async fn a_server_that_was_rolled_back_lets_in_nobody_who_is_too_old() {
    for written in [true, false] {
        after(written, |redis| {
            redis.roll_back();
            // The old mark is there, and it is a's.
            assert!(redis.command::<Option<String>>(&["GET", MARK]).is_some());
        })
        .await;
    }
}

#[tokio::test]
async fn the_present_holder_goes_on_after_a_restart_with_data() {
    let Some(mut redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    let lock = elector.lock("k").acquire().await.unwrap();
    elector.fence().set(&lease, KEY, "before").await.unwrap();
    elector.fence().set(&lock, "locked", "before").await.unwrap();
    redis.restart_with_data();
    set(&elector, &lease, "after").await.unwrap();
    elector.fence().set(&lock, "locked", "after").await.unwrap();
    assert_eq!(
        (value(&redis).as_deref(), redis.command::<String>(&["GET", "locked"])),
        (Some("after"), "after".into())
    );
}

/// The server names it as the present holder, by what it remembers.
#[tokio::test]
async fn who_has_given_the_lease_back_does_not_get_it_by_a_roll_back() {
    let Some(mut redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    let b = elector(&redis).await;
    a.fence().set(&old, KEY, "a").await.unwrap();
    let lock = a.lock("k").acquire().await.unwrap();
    let old_lock = lock.held();
    redis.snapshot();
    lock.release().await.unwrap();
    let new = hand_over(&a, &b).await;
    b.fence().set(&new, KEY, "b").await.unwrap();
    redis.roll_back();
    assert_fenced(set(&a, &old, "too late").await, None);
    assert_fenced(set(&a, &old_lock, "too late").await, None);
    assert_eq!(value(&redis).as_deref(), Some("a"));
    assert_eq!(redis.command::<Option<String>>(&["GET", "leader:default"]), Some(a.instance_id().to_string()));
    assert!(redis.command::<bool>(&["EXISTS", "_lock:k"]));
}
