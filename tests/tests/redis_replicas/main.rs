//! Replicas that are waited for: what they exclude, and what they cost. All servers are real ones.
//!
//! Each promise about two leaders is tried without replicas, too: there the checker has to see them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod cluster;
mod cost;
mod isolated;
mod missing;
mod rights;

use std::sync::Arc;
use std::time::Duration;

use leader_core::store::RedisStore;
use leader_core::testing::conformance;
use leader_core::{Config, Elector, FreshStore};
use leader_tests::redis::Replicated;

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");

/// No lease ends by itself within a test.
const LONG: Duration = Duration::from_secs(60);
/// In which a replica that is there confirms also on a busy machine, and one that stands still is not waited for long.
const OPERATION: Duration = Duration::from_secs(2);
const HEARTBEAT: Duration = Duration::from_millis(200);

/// On a server that is taken for new; it renews all the time.
fn config(url: &str, replicas: u8) -> Config {
    Config::new(url)
        .fresh_store(FreshStore::Trust)
        .replicas(replicas)
        .ttl(LONG)
        .heartbeat(HEARTBEAT)
        .retry(HEARTBEAT)
        .operation_timeout(OPERATION)
}

fn problems(elector: &Elector) -> String {
    format!("{:?}", elector.status().problems)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_replicas_are_waited_for_keeps_the_contract_of_stores() {
    let Some(servers) = Replicated::start(1) else { return };
    conformance(|| Arc::new(RedisStore::new(&servers.primary.url()).unwrap().replicas(1))).await;
}
