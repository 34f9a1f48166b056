//! Guarded writes on a real Redis server: what is written, and what is refused, whatever happened to the server, to its memory
//! and to whoever writes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod faults;
mod memory;
mod order;
mod rights;
mod stopped;
mod values;

use std::time::Duration;

use leader_core::fence::FenceError;
use leader_core::{Elector, FencingToken, FreshStore, Lease};
use leader_tests::process::{config_at, eventually};
use leader_tests::redis::RedisServer;

/// No lease ends by itself within a test.
const LONG: Duration = Duration::from_secs(60);

const KEY: &str = "balance:7";
const MARK: &str = "{balance:7}:fence";

/// An elector that takes the server for new.
async fn elector(redis: &RedisServer) -> Elector {
    elector_at(&redis.url()).await
}

async fn elector_at(url: &str) -> Elector {
    elector_with(url, LONG).await
}

async fn elector_with(url: &str, ttl: Duration) -> Elector {
    let config = config_at(url).fresh_store(FreshStore::Trust).ttl(ttl);
    // A busy machine answers late, and that is not what is tested.
    Elector::start(config.operation_timeout(ttl / 6)).await.unwrap()
}

/// One that leads, and its lease.
async fn leader(redis: &RedisServer) -> (Elector, Lease) {
    let elector = elector(redis).await;
    let lease = elector.lease("default").unwrap();
    (elector, lease)
}

/// Gives the lease from one to the other, for good; returns the other's.
async fn hand_over(from: &Elector, to: &Elector) -> Lease {
    from.drain(Duration::ZERO).await.unwrap();
    eventually("the other leads", || to.lease("default"))
}

fn value(redis: &RedisServer) -> Option<String> {
    redis.command(&["GET", KEY])
}

/// The token in the mark.
fn marked(redis: &RedisServer) -> Option<u64> {
    let mark: Option<String> = redis.command(&["GET", MARK]);
    mark.map(|mark| mark.split_once(':').unwrap().0.parse().unwrap())
}

/// It was refused because of this.
#[track_caller]
fn assert_fenced(outcome: Result<(), FenceError>, by: Option<FencingToken>) {
    match outcome {
        Err(FenceError::Fenced { key, newest, .. }) => assert_eq!((key.as_str(), newest), (KEY, by)),
        other => panic!("{other:?}"),
    }
}
