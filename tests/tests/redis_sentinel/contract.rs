//! The store by Sentinel is a store like any other.

use std::sync::Arc;

use leader_core::store::LeaseStore;
use leader_core::testing::conformance;
use leader_tests::process::store_at;
use leader_tests::redis::Watched;

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_stores() {
    let Some(watched) = Watched::start(&[], &[], None) else { return };
    let store = || store_at(&watched.url());
    assert_eq!(store().address(), watched.url());
    conformance(|| Arc::new(store())).await;
}
