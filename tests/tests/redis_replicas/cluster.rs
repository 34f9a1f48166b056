//! In a cluster each node has replicas of its own, and is waited for by itself.

use std::time::Duration;

use leader_core::Elector;
use leader_tests::process::eventually;
use leader_tests::redis::RedisCluster;

use crate::{config, problems};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stands_still_costs_only_the_groups_of_its_node_and_a_slot_that_moves_costs_none() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    let groups = cluster.groups();
    let elector = Elector::start(config(&cluster.url(), 1).groups(&groups)).await.unwrap();
    let led = |group: &str| eventually(&format!("{group} is led"), || elector.lease(group)).term();
    let terms = groups.each_ref().map(|group| led(group));

    // Asked for at the node to which its slot is about to move, which is the one that has to be confirmed then.
    let slot = cluster.slot(0, &format!("leader:{}", groups[1]));
    cluster.begin_to_move(slot, 1, 2);
    assert!(cluster.move_keys(slot, 1, 2) > 0);
    eventually("it was renewed there", || (cluster.node(2).calls("asking") >= 5).then_some(()));
    cluster.end_to_move(slot, 1, 2);
    let waits = cluster.node(2).calls("wait");
    eventually("it is renewed where it is now", || (cluster.node(2).calls("wait") >= waits + 10).then_some(()));
    assert_eq!(led(&groups[1]), terms[1], "no leader was lost by the move");

    cluster.node(3).stop();
    eventually("the group of that node has no leader", || (!elector.is_leader(&groups[0])).then_some(()));
    eventually("the status says why", || problems(&elector).contains("0 of the 1 replicas").then_some(()));
    let waits = cluster.node(2).calls("wait");
    eventually("the others are renewed", || (cluster.node(2).calls("wait") >= waits + 5).then_some(()));
    for at in [1, 2] {
        assert_eq!(led(&groups[at]), terms[at]);
    }
    cluster.node(3).cont();
    assert!(led(&groups[0]) > terms[0]);
    elector.shutdown(Duration::ZERO).await.unwrap();
}
