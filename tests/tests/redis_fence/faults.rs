//! What a server or a connection does to a write.

use std::time::Duration;

use leader_core::StoreError;
use leader_core::fence::{FenceError, Script};
use leader_tests::process::eventually;
use leader_tests::redis::{Proxy, RedisServer, Way};

use crate::{KEY, MARK, elector, elector_at, leader, marked, value};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[tokio::test]
async fn with_a_full_memory_nothing_is_written_and_no_mark_is_changed() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    elector.fence().set(&lease, KEY, "before").await.unwrap();
    let mark = || redis.command::<(String, i64)>(&["EVAL", "return {redis.call('GET', KEYS[1]), 1}", "1", MARK]);
    let before = mark();
    redis.exhaust_memory();
    let refused = elector.fence().set(&lease, KEY, "refused").await.unwrap_err();
    assert!(
        matches!(&refused, FenceError::Store(StoreError::Refused { cause, .. }) if cause.contains("OOM")),
        "{refused}"
    );
    assert!(refused.to_string().contains("Nothing was written"), "{refused}");
    let append = Script::new("return redis.call('APPEND', KEYS[1], 'x')").key(KEY);
    let refused = elector.fence().run(&lease, append).await.unwrap_err();
    assert!(matches!(&refused, FenceError::Script { error } if error.contains("OOM")), "{refused}");
    // A key that was never written gets no mark either.
    assert!(elector.fence().set(&lease, "another", "refused").await.is_err());
    assert_eq!((value(&redis).as_deref(), mark()), (Some("before"), before));
    assert_eq!(redis.command::<u64>(&["EXISTS", "another", "{another}:fence"]), 0);
    // To read needs no memory.
    let get = Script::new("return redis.call('GET', KEYS[1])").key(KEY);
    assert_eq!(elector.fence().run(&lease, get).await.unwrap().as_text(), Some("before"));
    // What is deleted makes room; the mark is there all the same, since the script has written.
    assert!(elector.fence().delete(&lease, KEY).await.unwrap());
    assert_eq!((value(&redis), marked(&redis)), (None, Some(lease.term().get())));
    redis.relieve_memory();
    elector.fence().set(&lease, KEY, "after").await.unwrap();
    assert_eq!(value(&redis).as_deref(), Some("after"));
}

#[tokio::test]
async fn a_server_that_has_forgotten_the_scripts_is_told_them_again() {
    let Some(mut redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    let add = || Script::new("return redis.call('INCR', KEYS[1])").key(KEY);
    for round in 1..=3 {
        redis.flush_scripts();
        assert_eq!(elector.fence().run(&lease, add()).await.unwrap().as_integer(), Some(round));
        elector.fence().set(&lease, "other", "x").await.unwrap();
    }
    // Once more without: by its name alone.
    redis.command::<()>(&["CONFIG", "RESETSTAT"]);
    assert_eq!(elector.fence().run(&lease, add()).await.unwrap().as_integer(), Some(4));
    assert_eq!((redis.calls("eval"), redis.calls("script|load")), (0, 0));
    assert!(redis.calls("evalsha") > 0);
    redis.restart_with_data();
    let told = async || elector.fence().run(&lease, add()).await;
    // The first call may find the old connection.
    let mut told_value = told().await;
    while matches!(&told_value, Err(FenceError::Store(StoreError::Unavailable { .. }))) {
        told_value = told().await;
    }
    assert_eq!(told_value.unwrap().as_integer(), Some(5));
}

/// Connections of their own: what a lease or a lock needs never waits behind what somebody writes.
#[tokio::test]
async fn connections_are_opened_with_the_first_write_and_closed_with_the_elector() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    eventually("there are two connections", || (redis.connections() == 2).then_some(()));
    elector.fence().set(&lease, KEY, "x").await.unwrap();
    elector.fence().delete(&lease, KEY).await.unwrap();
    // For a moment the doctor has one too.
    eventually("there is a third", || (redis.connections() == 3).then_some(()));
    elector.shutdown(Duration::ZERO).await.unwrap();
    eventually("all are closed", || (redis.connections() == 0).then_some(()));
}

#[test]
fn a_write_without_an_answer_says_that_it_may_come_and_a_late_one_is_refused_by_the_server() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&redis);
    let runtime = runtime();
    let (a, b) = runtime.block_on(async { (elector_at(&proxy.url()).await, elector(&redis).await) });
    let old = a.lease("default").unwrap();
    runtime.block_on(a.fence().set(&old, KEY, "a")).unwrap();
    proxy.hold(Way::ToServer);
    let fence = a.fence().timeout(Duration::from_millis(300));
    let lost = runtime.block_on(fence.set(&old, KEY, "on its way")).unwrap_err();
    assert!(matches!(lost, FenceError::Store(StoreError::TimedOut { .. })), "{lost}");
    assert!(lost.to_string().contains("not tried again"), "{lost}");
    proxy.until_held(Way::ToServer, "on its way");
    // As if it had expired.
    assert!(redis.delete("leader:default"));
    redis.command::<()>(&["HSET", "{leader:default}:term", "until", "0"]);
    redis.command::<()>(&["PUBLISH", "leader:default", "0"]);
    let new = eventually("the other leads", || b.lease("default"));
    runtime.block_on(b.fence().set(&new, KEY, "b")).unwrap();
    // Nobody renews so soon.
    let before = redis.calls("evalsha");
    proxy.release(Way::ToServer);
    eventually("the late one has arrived", || (redis.calls("evalsha") > before).then_some(()));
    assert_eq!((value(&redis).as_deref(), marked(&redis)), (Some("b"), Some(new.term().get())));
}

#[tokio::test]
async fn a_write_goes_on_if_its_future_is_dropped() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    elector.fence().set(&lease, KEY, "first").await.unwrap();
    let fence = elector.fence();
    let mut write = Box::pin(fence.set(&lease, KEY, "dropped"));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(write.as_mut().poll(cx).is_pending())).await;
    drop(write);
    assert!(polled);
    eventually("it is written", || (value(&redis).as_deref() == Some("dropped")).then_some(()));
    // And on the same connection.
    elector.fence().set(&lease, KEY, "next").await.unwrap();
    eventually("there is one", || (redis.connections() == 3).then_some(()));
}

/// The connections live on the elector's runtime.
#[test]
fn a_runtime_that_ends_takes_nothing_with_it() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = runtime().block_on(leader(&redis));
    for text in ["one", "two"] {
        runtime().block_on(elector.fence().set(&lease, KEY, text)).unwrap();
        assert_eq!(value(&redis).as_deref(), Some(text));
    }
}
