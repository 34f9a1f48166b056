//! The peer of the other kind does what such peers do.

use std::time::Duration;

use leader_examples::history::History;
use leader_tests::process::eventually;
use leader_tests::redis::{NestPeer, RedisServer};

use crate::guest;

const TTL: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(60);

#[test]
fn of_two_peers_one_leads_and_the_other_after_it() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let [mut a, mut b] = ["a", "b"].map(|id| NestPeer::new(guest(&redis), id, "default", LONG));
    assert!(!a.heartbeat().unwrap(), "nobody leads yet");
    assert!(a.acquire().unwrap() && a.is_leader());
    assert!(!b.acquire().unwrap() && !b.is_leader());
    assert!(a.heartbeat().unwrap() && !b.heartbeat().unwrap());
    // The own value is taken back.
    assert!(a.acquire().unwrap() && a.is_leader());
    let (value, left): (String, i64) =
        (redis.command(&["GET", "leader:default"]), redis.command(&["PTTL", "leader:default"]));
    assert!(value == "a" && left > 0, "{value}, {left}");
    assert!(!b.release().unwrap(), "it is not its own");
    assert!(a.release().unwrap() && !a.is_leader());
    assert!(b.acquire().unwrap());
    let mut other = NestPeer::new(guest(&redis), "a", "other", LONG);
    assert!(other.acquire().unwrap(), "each group has a leader of its own");
}

#[test]
fn a_peer_that_does_not_renew_believes_no_longer_than_its_lease_lasts() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let [mut a, mut b] = ["a", "b"].map(|id| NestPeer::new(guest(&redis), id, "default", TTL));
    eventually("it leads, on however busy a machine", || (a.acquire().unwrap() && a.is_leader()).then_some(()));
    eventually("the other one leads", || b.acquire().unwrap().then_some(()));
    assert!(!a.is_leader() && !a.heartbeat().unwrap());
    let mut history = History::default();
    history.extend(a.views().iter().chain(b.views()).cloned());
    assert_eq!(history.views().len(), a.views().len() + 1);
    assert_eq!(history.overlaps(), []);
}
