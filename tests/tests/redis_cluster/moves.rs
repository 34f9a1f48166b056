//! Slots that are moved from one node to another.

use leader_core::{BootInstant, Elector};
use leader_tests::process::eventually;
use leader_tests::redis::RedisCluster;

use crate::{LONG, Scene, TTL, config};

/// The record comes along, and names the node that it comes from: on the new one nobody may take the lease for a ttl, but
/// who leads renews it there.
#[test]
#[allow(clippy::print_stderr)]
fn a_slot_that_is_moved_takes_no_leader_from_its_group() {
    let Some(mut scene) = Scene::new(&[]) else { return };
    let slot = scene.slot(1, 0);
    let began = BootInstant::now();
    scene.cluster.begin_to_move(slot, 0, 1);
    // Its keys are where they were.
    scene.wait();
    scene.keeps(0, BootInstant::now());
    assert!(scene.cluster.move_keys(slot, 0, 1) >= 2);
    // They are where the slot is not yet.
    scene.wait();
    scene.keeps(0, BootInstant::now());
    scene.cluster.end_to_move(slot, 0, 1);
    scene.wait();
    let now = BootInstant::now();
    for group in 0..3 {
        scene.keeps(group, now);
    }
    let last = scene.led(0, now);
    let leaderless = scene.leaderless(0, began, last.ended_ns);
    eprintln!("move of a slot: its group was without a leader for {leaderless:.3?}");
    assert!(leaderless.is_zero());
    let record: String =
        scene.cluster.node(1).command(&["HGET", &format!("{{leader:{}}}:term", scene.groups[0]), "reason"]);
    assert_eq!(record, "server", "the move was taken for no change of the server");
    // Who follows goes there, too.
    let leader = scene.reigns[0].label.clone();
    scene.fleet.ask(&leader, &leader_tests::process::Command::StepDown { group: scene.groups[0].clone() }).unwrap();
    let next = scene.fleet.leader(&scene.groups[0], scene.reigns[0].term);
    assert_ne!(next.label, leader);
    scene.fleet.assert_safe();
}

/// An operator's: the replica takes the place of its primary when both agree.
#[test]
#[allow(clippy::print_stderr)]
fn a_replica_that_is_promoted_on_purpose_finds_its_groups_led() {
    let Some(mut scene) = Scene::new(&[]) else { return };
    let began = BootInstant::now();
    scene.cluster.node(3).command::<()>(&["CLUSTER", "FAILOVER"]);
    scene.promoted(1, 0, 3);
    scene.wait();
    let last = scene.led(0, BootInstant::now());
    let leaderless = scene.leaderless(0, began, last.ended_ns);
    eprintln!("CLUSTER FAILOVER: its group was without a leader for {leaderless:.3?}");
    scene.fleet.assert_safe();
}

/// While a slot is moved, its node executes nothing that touches keys of it that are not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_in_a_slot_that_is_moved_is_taken_once_the_move_is_over() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    let config = config(&cluster.url()).ttl(LONG).operation_timeout(LONG / 6);
    let elector = Elector::start(config).await.unwrap();
    let slot = cluster.slot(0, "_lock:billing");
    let from = cluster.owner(0, slot).unwrap();
    let to = (from + 1) % 3;
    // One key of the four is there.
    cluster.node(from).command::<()>(&["SET", "_lock:billing", "somebody else's", "PX", "100"]);
    cluster.begin_to_move(slot, from, to);
    let waiting = tokio::spawn({
        let elector = elector.clone();
        async move { elector.lock("billing").wait(LONG).acquire().await.map(|guard| guard.token().get()) }
    });
    eventually("it was refused as something that passes", || {
        let refused = |node: usize| cluster.node(node).command::<String>(&["INFO", "errorstats"]).contains("TRYAGAIN");
        [from, to].into_iter().any(refused).then_some(())
    });
    cluster.move_keys(slot, from, to);
    cluster.end_to_move(slot, from, to);
    waiting.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stderr)]
async fn whoever_does_not_know_of_a_move_is_told_and_executes_nothing_twice() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    let group = cluster.group_of(0, "moved");
    let key = format!("leader:{group}");
    let elector = Elector::start(config(&cluster.url()).groups([&group])).await.unwrap();
    let slot = cluster.slot(0, &key);
    cluster.begin_to_move(slot, 0, 1);
    cluster.move_keys(slot, 0, 1);
    cluster.end_to_move(slot, 0, 1);
    cluster.node(1).command::<()>(&["CONFIG", "RESETSTAT"]);
    let began = BootInstant::now();
    assert_eq!(elector.leader_id(&group).await.unwrap().as_ref(), Some(elector.instance_id()));
    eprintln!("the first call after a move, with the detour: {:.3?}", BootInstant::now().saturating_since(began));
    let stats: String = cluster.node(1).command(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
        let calls = line.and_then(|line| line.split_once("calls=")).and_then(|(_, rest)| rest.split_once(','));
        calls.map_or(0, |(calls, _)| calls.parse::<u32>().unwrap())
    };
    // By its name, which this node has not learnt, or with it.
    let executed = calls("eval") + calls("evalsha");
    assert!((1..=2).contains(&executed), "{stats}");
    elector.shutdown(TTL).await.unwrap();
}
