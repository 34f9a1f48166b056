//! Nodes that die, nodes that stand still, a cluster that takes no commands.

use std::time::Duration;

use leader_core::store::{Announcement, Answer, Batch, Command, LeaseStore, Op, SameId};
use leader_core::testing::Listener;
use leader_core::{BootInstant, Candidate, Elector, FreshStore, GroupName, Incarnation, InstanceId, StoreError, Term};
use leader_tests::process::{eventually, store_at};
use leader_tests::redis::{RedisCluster, RedisServer};

use crate::{RETRY, Scene, TTL, config};

/// A slot without a node does not stop the others.
const PARTIAL: [(&str, &str); 1] = [("cluster-require-full-coverage", "no")];

#[allow(clippy::print_stderr)]
fn print(what: &str, scene: &mut Scene, failed: BootInstant, promoted: BootInstant) {
    let first = scene.led(0, promoted);
    let until_promoted = promoted.saturating_since(failed);
    let after = BootInstant::from_nanos(first.began_ns).saturating_since(promoted);
    eprintln!(
        "{what}: replica promoted after {until_promoted:.3?}, group led {after:.3?} later (ttl {TTL:?}, retry {RETRY:?})"
    );
    for group in [1, 2] {
        let last = scene.led(group, promoted);
        let leaderless = scene.leaderless(group, failed, last.ended_ns);
        eprintln!("{what}: a group on another node was without a leader for {leaderless:.3?}");
    }
}

#[test]
fn a_node_that_is_killed_takes_only_its_own_groups_with_it_until_its_replica_is_in_its_place() {
    let Some(mut scene) = Scene::new(&PARTIAL) else { return };
    let failed = BootInstant::now();
    scene.cluster.node_mut(0).kill();
    let promoted = scene.promoted(1, 0, 3);
    print("kill -9 of a node", &mut scene, failed, promoted);
    let now = BootInstant::now();
    scene.keeps(1, now);
    scene.keeps(2, now);
    // It comes back as a replica.
    scene.cluster.node_mut(0).start_again();
    scene.wait();
    let now = BootInstant::now();
    scene.led(0, now);
    scene.keeps(1, now);
    scene.keeps(2, now);
    scene.fleet.assert_safe();
}

#[test]
fn a_node_that_stands_still_is_replaced_and_nobody_leads_by_it_when_it_goes_on() {
    let Some(mut scene) = Scene::new(&PARTIAL) else { return };
    let failed = BootInstant::now();
    scene.cluster.node(0).stop();
    let promoted = scene.promoted(1, 0, 3);
    print("SIGSTOP of a node", &mut scene, failed, promoted);
    scene.cluster.node(0).cont();
    scene.wait();
    let now = BootInstant::now();
    scene.led(0, now);
    scene.keeps(1, now);
    scene.keeps(2, now);
    scene.fleet.assert_safe();
}

#[test]
#[allow(clippy::print_stderr)]
fn nobody_leads_while_the_cluster_is_down_and_somebody_does_when_it_is_back() {
    let Some(mut scene) = Scene::new(&[]) else { return };
    // Most primaries are gone, and so nobody may take their places.
    for node in [1, 2] {
        scene.cluster.node(node).stop();
    }
    let Scene { fleet, cluster, .. } = &mut scene;
    fleet.until("the cluster is down", |_| {
        cluster.node(0).command::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:fail").then_some(())
    });
    scene.fleet.until("both say why nobody leads", |fleet| {
        ["a", "b"].iter().all(|label| fleet.problems(label).contains("CLUSTERDOWN")).then_some(())
    });
    for node in [1, 2] {
        scene.cluster.node(node).cont();
    }
    let back = BootInstant::now();
    for group in 0..3 {
        let view = scene.led(group, back);
        let took = BootInstant::from_nanos(view.began_ns).saturating_since(back);
        eprintln!("after CLUSTERDOWN: group {group} led {took:.3?} after its nodes went on");
    }
    scene.fleet.assert_safe();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_a_cluster_is_short_of() {
    let Some(mut cluster) = RedisCluster::start(&PARTIAL) else { return };
    let groups = cluster.groups();
    let elector = Elector::start(config(&cluster.url()).groups(&groups)).await.unwrap();
    assert_eq!(elector.doctor().await.unwrap(), []);
    cluster.node_mut(3).kill();
    eventually("the primary misses its replica", || {
        cluster.node(0).command::<String>(&["INFO", "replication"]).contains("connected_slaves:0").then_some(())
    });
    cluster.node(1).command::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let found = elector.doctor().await.unwrap();
    let is_found = |node: usize, what: &str| {
        let named = format!("node {}: ", cluster.node(node).address());
        found.iter().any(|finding| finding.what.starts_with(&named) && finding.what.contains(what))
    };
    assert!(found.len() == 2 && is_found(0, "no replica") && is_found(1, "allkeys-lru"), "{found:?}");
    elector.shutdown(Duration::ZERO).await.unwrap();
}

fn named(group: &str) -> GroupName {
    GroupName::new(group).unwrap()
}

/// An elector with hundreds of groups asks for many at a time.
#[tokio::test]
async fn a_node_that_does_not_answer_costs_the_others_no_answer_and_who_waits_is_told_when_it_is_replaced() {
    let Some(cluster) = RedisCluster::start(&PARTIAL) else { return };
    let groups = cluster.groups();
    let store = store_at(&cluster.url()).fresh_store(FreshStore::Trust);
    let candidate = Candidate { id: InstanceId::new("me").unwrap(), incarnation: Incarnation::random() };
    let (session, mut listener) = Listener::new(candidate.clone(), groups.iter().map(|group| named(group)));
    store.connect(session).await.unwrap();
    let op = Op::Acquire { floor: Term::new(0), continues: false, same_id: SameId::Leave };
    let command =
        |group: &String| Command { group: named(group), candidate: candidate.clone(), ttl: TTL, op: op.clone() };
    let batch = || Batch { commands: groups.iter().map(&command).collect(), timeout: Duration::from_secs(2) };
    let won = |answers: &[Result<Answer, StoreError>]| {
        answers.iter().map(|answer| matches!(answer, Ok(Answer::Won(_)))).collect::<Vec<_>>()
    };
    assert_eq!(won(&store.execute(batch()).await.unwrap()), [true; 3]);

    // A replica that has no record of the group yet would be a fresh store.
    let offset = |node: usize, of: &str| {
        let info: String = cluster.node(node).command(&["INFO", "replication"]);
        info.lines().find_map(|line| line.strip_prefix(of)).map(|offset| offset.parse::<u64>().unwrap())
    };
    let written = offset(0, "master_repl_offset:");
    eventually("the replica has what was written", || (offset(3, "slave_repl_offset:") >= written).then_some(()));
    cluster.node(0).stop();
    let answers = tokio::time::timeout(Duration::from_secs(2), store.execute(batch())).await.unwrap().unwrap();
    assert_eq!(won(&answers), [false, true, true], "{answers:?}");
    assert_eq!(listener.heard().await, Some(Announcement::Gap));
    // A new server, which may have lost leases: who has a right to one has it still, and nobody else gets one.
    let answers = store.execute(batch()).await.unwrap();
    assert!(matches!(answers[0], Ok(Answer::Quarantined { .. })), "{answers:?}");
    store.disconnect(candidate.incarnation).await.unwrap();
}

#[tokio::test]
async fn who_names_a_single_server_as_a_cluster_is_told_so() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let url = redis.url().replace("redis://", "redis-cluster://");
    let error = Elector::start(config(&url).require_store(true)).await.unwrap_err().to_string();
    assert!(error.contains("is no node of a cluster") && error.contains("redis://"), "{error}");
}
