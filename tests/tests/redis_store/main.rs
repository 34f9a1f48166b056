//! The Redis store as an elector sees it: the contract, rights, errors, and the first start on a new server.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod cost;
mod errors;
mod rights;
mod start;

use std::sync::Arc;
use std::time::Duration;

use leader_core::store::RedisStore;
use leader_core::testing::conformance;
use leader_core::{Config, FreshStore};
use leader_tests::redis::RedisServer;

/// On a server that is taken for new.
fn config(url: &str) -> Config {
    Config::new(url).fresh_store(FreshStore::Trust).ttl(Duration::from_secs(10))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_stores() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let store = || RedisStore::new(&redis.url()).unwrap();
    conformance(|| Arc::new(store())).await;
    // Also as one store that several electors share.
    let shared = store();
    conformance(|| Arc::new(shared.clone())).await;
    // Beside other keys, in another database, and with names of its own.
    let elsewhere = || RedisStore::new(&redis.url().replace("/0", "/3")).unwrap().prefix("app:leader:").unwrap();
    conformance(|| Arc::new(elsewhere())).await;
    let own: usize = redis.command::<Vec<String>>(&["KEYS", "app:leader:*"]).len();
    assert_eq!(own, 0, "database 0 has keys of database 3");
}
