//! The Redis store as an elector sees it: the contract, rights, errors, and the first start on a new server.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod cost;
mod errors;
mod rights;
mod start;

use std::sync::Arc;
use std::time::Duration;

use leader_core::testing::conformance;
use leader_core::{Config, FreshStore};
use leader_tests::process::{again_over_the_other_client, config_at, store_at};
use leader_tests::redis::RedisServer;

/// On a server that is taken for new.
fn config(url: &str) -> Config {
    config_at(url).fresh_store(FreshStore::Trust).ttl(Duration::from_secs(10))
}

#[test]
fn the_same_holds_over_the_other_client() {
    again_over_the_other_client(&[
        "it_keeps_the_contract_of_stores",
        "errors::each_error_says_what_was_tried_and_what_to_do",
        "rights::each_right_in_the_readme_is_needed",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_stores() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let store = || store_at(&redis.url());
    conformance(|| Arc::new(store())).await;
    // Also as one store that several electors share.
    let shared = store();
    conformance(|| Arc::new(shared.clone())).await;
    // Beside other keys, in another database, and with names of its own.
    let elsewhere = || store_at(&redis.url().replace("/0", "/3")).prefix("app:leader:").unwrap();
    conformance(|| Arc::new(elsewhere())).await;
    let own: usize = redis.command::<Vec<String>>(&["KEYS", "app:leader:*"]).len();
    assert_eq!(own, 0, "database 0 has keys of database 3");
}
