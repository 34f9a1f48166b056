//! What every store promises.

use std::sync::Arc;
use std::time::Duration;

use leader_core::Elector;
use leader_core::testing::conformance;
use leader_tests::process::store_at;
use leader_tests::redis::RedisCluster;

use crate::config;

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_stores() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    conformance(|| Arc::new(store_at(&cluster.url()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_elector_leads_groups_on_all_nodes() {
    let Some(cluster) = RedisCluster::start(&[("cluster-require-full-coverage", "no")]) else { return };
    let groups: Vec<String> = (0..100).map(|n| format!("group-{n}")).chain(cluster.groups()).collect();
    // Any node shows the way to all others, also a replica.
    let elector = Elector::start(config(&cluster.url_of(&[5], "")).groups(&groups)).await.unwrap();
    assert!(groups.iter().all(|group| elector.is_leader(group)), "{:?}", elector.status().problems);
    for (index, group) in cluster.groups().iter().enumerate() {
        assert!(cluster.node(index).command::<bool>(&["EXISTS", &format!("leader:{group}")]), "{group}");
    }
    assert_eq!(elector.doctor().await.unwrap(), []);
    cluster.node(1).command::<()>(&["CONFIG", "SET", "cluster-require-full-coverage", "yes"]);
    let found = elector.doctor().await.unwrap();
    let [finding] = &found[..] else { panic!("{found:#?}") };
    let node = format!("node {}: ", cluster.node(1).address());
    assert!(finding.code == "full-coverage" && finding.what.starts_with(&node), "{finding}");
    cluster.node(1).command::<()>(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    assert_eq!(elector.doctor().await.unwrap(), []);
    elector.shutdown(Duration::from_secs(1)).await.unwrap();
}
