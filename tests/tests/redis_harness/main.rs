//! What the tests on Redis rest upon: their servers, their faults, their proxy and their peers do what they say.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod faults;
mod peer;
mod proxy;
mod server;

use leader_tests::redis::{Client, RedisServer};

/// A connection as the user `default`, as whom nodes come.
fn guest(redis: &RedisServer) -> Client {
    Client::open(redis.address(), None).unwrap()
}

/// The first word of the server's error.
fn error(client: &mut Client, parts: &[&str]) -> String {
    let error = client.command::<()>(parts).unwrap_err();
    error.code().map_or_else(|| panic!("{error}"), str::to_owned)
}
