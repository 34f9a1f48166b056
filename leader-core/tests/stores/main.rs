//! The stores of this crate: the contract on each, and what only the SQLite file can show.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod death;
mod disk;
mod doctor;
mod files;
mod fresh;
mod locks;
mod party;
mod ticks;
mod worker;

use std::sync::Arc;

use leader_core::store::{LeaseStore, MemoryStore, SqliteStore};
use leader_core::testing::conformance;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_store_keeps_the_contract() {
    let store = MemoryStore::new();
    conformance(|| Arc::new(store.clone())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sqlite_store_keeps_the_contract_with_a_handle_for_each_instance() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    conformance(|| Arc::new(SqliteStore::new(&path))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sqlite_store_keeps_the_contract_with_one_handle_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(folder.path().join("leader.db"));
    conformance(|| Arc::new(store.clone()) as Arc<dyn LeaseStore>).await;
}
