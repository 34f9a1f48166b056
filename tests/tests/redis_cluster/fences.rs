//! Guarded writes in a cluster.

use std::time::Duration;

use leader_core::Elector;
use leader_tests::redis::RedisCluster;

use crate::config;

#[tokio::test]
async fn what_is_written_has_to_be_in_the_slot_of_the_lease_or_lock() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    let [_, group, _] = cluster.groups();
    let elector = Elector::start(config(&cluster.url()).groups([&group])).await.unwrap();
    let lease = elector.lease(&group).unwrap();
    let fence = elector.fence();
    let beside = format!("{{leader:{group}}}:balance");
    fence.set(&lease, &beside, "7").await.unwrap();
    assert_eq!(cluster.node(1).command::<String>(&["GET", &beside]), "7");

    let elsewhere = (0..).map(|n| format!("balance:{n}")).find(|key| cluster.slot(0, key) < 5000).unwrap();
    let error = fence.set(&lease, &elsewhere, "7").await.unwrap_err().to_string();
    assert!(error.contains("different slots") && error.contains(&format!("`{{leader:{group}}}:balance`")), "{error}");
    assert!(!cluster.node(0).command::<bool>(&["EXISTS", &elsewhere]));

    let guard = elector.lock("billing").acquire().await.unwrap();
    fence.set(&guard, "{_lock:billing}:balance", "8").await.unwrap();
    drop(guard);
    elector.shutdown(Duration::ZERO).await.unwrap();
}
