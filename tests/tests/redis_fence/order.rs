//! What is refused: whoever comes after somebody newer.

use std::time::Duration;

use leader_core::fence::{FenceError, Fencing, Script};
use leader_tests::process::config_at;
use leader_tests::redis::RedisServer;

use crate::{KEY, MARK, assert_fenced, elector, hand_over, leader, marked, value};

#[tokio::test]
async fn a_write_is_refused_once_a_newer_token_has_written() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    let b = elector(&redis).await;
    a.fence().set(&old, KEY, "a").await.unwrap();
    assert_eq!((value(&redis).as_deref(), marked(&redis)), (Some("a"), Some(old.term().get())));
    let new = hand_over(&a, &b).await;
    // Late, and nobody newer has written yet: the order of writes is kept.
    a.fence().set(&old, KEY, "late").await.unwrap();
    b.fence().set(&new, KEY, "b").await.unwrap();
    let refused = a.fence().set(&old, KEY, "too late").await;
    let text = refused.as_ref().unwrap_err().to_string();
    assert!(text.contains(&new.term().to_string()) && text.contains(&old.term().to_string()), "{text}");
    assert_fenced(refused, Some(new.term()));
    assert_fenced(a.fence().set_for(&old, KEY, "too late", Duration::from_secs(9)).await, Some(new.term()));
    assert_fenced(a.fence().delete(&old, KEY).await.map(drop), Some(new.term()));
    let script = || Script::new("return redis.call('APPEND', KEYS[1], 'x')").key(KEY);
    assert_fenced(a.fence().run(&old, script()).await.map(drop), Some(new.term()));
    assert_eq!((value(&redis).as_deref(), marked(&redis)), (Some("b"), Some(new.term().get())));
    // The newer one goes on.
    b.fence().run(&new, script()).await.unwrap();
    assert_eq!(value(&redis).as_deref(), Some("bx"));
}

#[tokio::test]
async fn a_deleted_key_keeps_its_mark() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    let b = elector(&redis).await;
    a.fence().set(&old, KEY, "a").await.unwrap();
    let new = hand_over(&a, &b).await;
    assert!(b.fence().delete(&new, KEY).await.unwrap());
    assert!(!b.fence().delete(&new, KEY).await.unwrap());
    assert_fenced(a.fence().set(&old, KEY, "too late").await, Some(new.term()));
    assert_eq!(value(&redis), None);
}

#[tokio::test]
async fn where_nobody_has_written_yet_only_the_present_holder_may() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    let b = elector(&redis).await;
    let new = hand_over(&a, &b).await;
    let refused = a.fence().set(&old, KEY, "too late").await;
    assert!(refused.as_ref().unwrap_err().to_string().contains("present holder"), "{refused:?}");
    assert_fenced(refused, None);
    assert_eq!((value(&redis), marked(&redis)), (None, None));
    b.fence().set(&new, KEY, "b").await.unwrap();
    assert_eq!(value(&redis).as_deref(), Some("b"));
}

/// A mark expires after a day.
#[tokio::test]
async fn a_mark_that_has_expired_lets_nobody_in_who_is_too_old() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    let b = elector(&redis).await;
    a.fence().set(&old, KEY, "a").await.unwrap();
    let left: i64 = redis.command(&["PTTL", MARK]);
    assert!((86_000_000..=86_400_000).contains(&left), "{left}");
    let new = hand_over(&a, &b).await;
    b.fence().set(&new, KEY, "b").await.unwrap();
    assert!(redis.delete(MARK));
    assert_fenced(a.fence().set(&old, KEY, "too late").await, None);
    b.fence().set(&new, KEY, "b again").await.unwrap();
    assert_eq!((value(&redis).as_deref(), marked(&redis)), (Some("b again"), Some(new.term().get())));
}

#[tokio::test]
async fn one_key_of_several_that_is_too_new_is_enough_and_then_none_is_written() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    let b = elector(&redis).await;
    let both = || Script::new("redis.call('MSET', KEYS[1], ARGV[1], KEYS[2], ARGV[1])").key("other").key(KEY);
    a.fence().run(&old, both().arg("a")).await.unwrap();
    let new = hand_over(&a, &b).await;
    b.fence().set(&new, KEY, "b").await.unwrap();
    assert_fenced(a.fence().run(&old, both().arg("too late")).await.map(drop), Some(new.term()));
    assert_eq!((value(&redis).as_deref(), redis.command::<String>(&["GET", "other"])), (Some("b"), "a".to_owned()));
    // Both are marked.
    b.fence().run(&new, both().arg("b")).await.unwrap();
    let refused = a.fence().set(&old, "other", "too late").await;
    assert!(
        matches!(refused, Err(FenceError::Fenced { newest: Some(newest), .. }) if newest == new.term()),
        "{refused:?}"
    );
}

#[tokio::test]
async fn the_token_of_a_lock_guards_as_the_term_of_a_lease_does() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, b) = (elector(&redis).await, elector(&redis).await);
    let first = a.lock("account:7").acquire().await.unwrap();
    let old = first.held();
    assert_eq!((first.fencing_token(), old.fencing_token()), (old.token(), old.token()));
    a.fence().set(&first, KEY, "a").await.unwrap();
    first.release().await.unwrap();
    let second = b.lock("account:7").acquire().await.unwrap();
    // Nobody else has ever written there, and it holds the lock no more.
    let elsewhere = a.fence().set(&old, "elsewhere", "too late").await;
    assert!(matches!(elsewhere, Err(FenceError::Fenced { newest: None, .. })), "{elsewhere:?}");
    b.fence().set(&second.held(), "elsewhere", "b").await.unwrap();
    b.fence().set(&second, KEY, "b").await.unwrap();
    assert_fenced(a.fence().set(&old, KEY, "too late").await, Some(second.token()));
    assert_eq!(value(&redis).as_deref(), Some("b"));
}

/// Of two electors with one instance id, such as before and after a restart, each is another holder.
#[tokio::test]
async fn the_instance_id_alone_makes_nobody_the_holder() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let config = || {
        let config = config_at(redis.url()).fresh_store(leader_core::FreshStore::Trust);
        config.ttl(crate::LONG).operation_timeout(crate::LONG / 6).instance_id("billing-0")
    };
    let a = leader_core::Elector::start(config()).await.unwrap();
    let old = a.lease("default").unwrap();
    let b = leader_core::Elector::start(config()).await.unwrap();
    let new = b.lease("default").unwrap();
    assert_fenced(a.fence().set(&old, KEY, "too late").await, None);
    b.fence().set(&new, KEY, "b").await.unwrap();
    assert_eq!(value(&redis).as_deref(), Some("b"));
}

/// Once a release is confirmed the present holder is nobody.
#[tokio::test]
async fn who_has_given_the_lease_back_is_its_holder_no_more() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    a.step_down("default").await.unwrap();
    assert_fenced(a.fence().set(&old, KEY, "too late").await, None);
    assert_eq!(value(&redis), None);
}
