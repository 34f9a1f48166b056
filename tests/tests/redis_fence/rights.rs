//! What the server's user must be allowed to.

use std::time::Duration;

use leader_core::fence::FenceError;
use leader_core::testing::redis_script::permissions;
use leader_core::{Elector, StoreError};
use leader_tests::redis::RedisServer;

use crate::{KEY, MARK, assert_fenced, elector, elector_at, hand_over, leader, marked, value};

/// A user with the rights for leases and these, and the URL for it.
fn user(redis: &RedisServer, rules: &[&str]) -> String {
    let mut command = vec!["ACL", "SETUSER", "leader", "reset", "on", ">s3cr3t"];
    let leases = permissions("leader:");
    command.extend(leases.split(' '));
    command.extend(rules);
    redis.command::<()>(&command);
    redis.url().replace("redis://", "redis://leader:s3cr3t@")
}

#[tokio::test]
async fn the_keys_and_their_marks_are_enough_besides_what_a_lease_needs() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let elector = elector_at(&user(&redis, &["~balance:*", "~{*}:*fence"])).await;
    let lease = elector.lease("default").unwrap();
    elector.fence().set(&lease, KEY, "x").await.unwrap();
    elector.fence().set_for(&lease, "balance:{a}", "x", Duration::from_secs(9)).await.unwrap();
    elector.fence().set(&lease, "balance:a}", "x").await.unwrap();
    assert!(elector.fence().delete(&lease, KEY).await.unwrap());
    let refused: Vec<redis::Value> = redis.command(&["ACL", "LOG"]);
    assert!(refused.is_empty(), "{refused:?}");
}

#[tokio::test]
async fn who_lacks_one_is_told_which_and_nothing_is_written() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    for rules in [&["~balance:*"][..], &["~{*}:*fence"], &[]] {
        let elector: Elector = elector_at(&user(&redis, rules)).await;
        let lease = elector.lease("default").unwrap();
        let refused = elector.fence().set(&lease, KEY, "x").await.unwrap_err();
        assert!(matches!(refused, FenceError::Store(StoreError::Refused { .. })), "{refused}");
        assert!(refused.to_string().contains("ACL SETUSER <user> ~<key> ~{*}:*fence"), "{refused}");
        assert_eq!((value(&redis), marked(&redis)), (None, None));
        elector.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test]
async fn who_lacks_a_command_is_told_those_that_leases_need() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let elector: Elector = elector_at(&user(&redis, &["~balance:*", "~{*}:*fence"])).await;
    let lease = elector.lease("default").unwrap();
    redis.command::<()>(&["ACL", "SETUSER", "leader", "-hmget"]);
    let refused = elector.fence().set(&lease, KEY, "x").await.unwrap_err().to_string();
    let (_, rules) = refused.split_once("ACL SETUSER <user> ").unwrap_or_else(|| panic!("{refused}"));
    redis.command::<()>(&[&["ACL", "SETUSER", "leader"][..], &rules.split(' ').collect::<Vec<_>>()].concat());
    elector.fence().set(&lease, KEY, "x").await.unwrap();
}

/// Without it a server that was rolled back is not told from one that went on.
#[tokio::test]
async fn where_info_is_not_permitted_only_the_present_holder_may_write() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    redis.permit(&["-info"]);
    let (a, old) = leader(&redis).await;
    let b = elector(&redis).await;
    a.fence().set(&old, KEY, "a").await.unwrap();
    a.fence().set(&old, KEY, "a again").await.unwrap();
    assert!(redis.command::<String>(&["GET", MARK]).ends_with(":-"));
    let new = hand_over(&a, &b).await;
    assert_fenced(a.fence().set(&old, KEY, "too late").await, None);
    b.fence().set(&new, KEY, "b").await.unwrap();
    assert_fenced(a.fence().set(&old, KEY, "too late").await, Some(new.term()));
    assert_eq!(value(&redis).as_deref(), Some("b"));
}

/// Somebody may have taken away the right meanwhile.
#[tokio::test]
async fn a_write_whose_mark_cannot_be_set_leaves_no_older_mark_behind() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (a, old) = leader(&redis).await;
    let b = elector(&redis).await;
    a.fence().set(&old, KEY, "a").await.unwrap();
    let new = hand_over(&a, &b).await;
    redis.permit(&["-set"]);
    assert!(b.fence().delete(&new, KEY).await.unwrap());
    redis.permit(&["+set"]);
    assert_eq!(marked(&redis), None);
    assert_fenced(a.fence().set(&old, KEY, "too late").await, None);
    assert_eq!(value(&redis), None);
}

#[tokio::test]
async fn a_mark_that_is_somebody_elses_is_left_alone() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let (elector, lease) = leader(&redis).await;
    for fill in [["SET", MARK, "theirs"], ["LPUSH", MARK, "theirs"]] {
        redis.command::<()>(&fill);
        let refused = elector.fence().set(&lease, KEY, "x").await.unwrap_err();
        assert!(matches!(refused, FenceError::Store(StoreError::Refused { .. })), "{refused}");
        assert!(refused.to_string().contains("choose another key"), "{refused}");
        assert_eq!(value(&redis), None);
        assert!(redis.delete(MARK));
    }
    elector.fence().set(&lease, KEY, "x").await.unwrap();
}
