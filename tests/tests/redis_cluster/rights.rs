//! Who may come in, and what the user must be allowed to on each node.

use std::time::Duration;

use leader_core::testing::{conformance, redis_script};
use leader_core::{Elector, FreshStore};
use leader_tests::process::{eventually, store_at};
use leader_tests::redis::RedisCluster;
use std::sync::Arc;

use crate::config;

/// The rules of the README's lines for a server, and those for a cluster on top.
fn rules() -> Vec<String> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let lines = readme.lines().filter(|line| line.starts_with("ACL SETUSER"));
    let rules = lines.flat_map(|line| line.split(' ').skip(3)).filter(|rule| *rule != "on" && !rule.starts_with('>'));
    rules.chain(redis_script::CLUSTER_PERMISSIONS.split(' ')).map(ToOwned::to_owned).collect()
}

/// On each node a user `leader` with these rights; and the URL for it.
fn user(cluster: &RedisCluster, rules: &[String]) -> String {
    for node in cluster.nodes() {
        let mut command = vec!["ACL", "SETUSER", "leader", "reset", "on", ">s3cr3t"];
        command.extend(rules.iter().map(String::as_str));
        node.command::<()>(&command);
        node.command::<()>(&["ACL", "LOG", "RESET"]);
    }
    cluster.url_of(&[0, 4], "leader:s3cr3t@")
}

fn refused(cluster: &RedisCluster) -> String {
    let log = |node: &leader_tests::redis::RedisServer| node.command::<Vec<redis::Value>>(&["ACL", "LOG"]);
    let all: Vec<_> = cluster.nodes().iter().flat_map(log).collect();
    if all.is_empty() { String::new() } else { format!("{all:?}") }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_for_a_cluster_are_enough_and_each_is_needed() {
    let Some(cluster) = RedisCluster::start(&[("cluster-require-full-coverage", "no")]) else { return };
    // With what the doctor may be given beside them.
    let all = [rules(), vec!["+config|get".to_owned()]].concat();
    let url = user(&cluster, &all);
    conformance(|| Arc::new(store_at(&url).fresh_store(FreshStore::Trust))).await;
    let group = cluster.group_of(0, "moving");
    let elector = Elector::start(config(&url).groups([&group])).await.unwrap();
    assert_eq!(elector.doctor().await.unwrap(), []);
    assert_eq!(refused(&cluster), "");

    let without = |missing: &str| all.iter().filter(|rule| *rule != missing).cloned().collect::<Vec<_>>();
    user(&cluster, &without("+config|get"));
    assert_eq!(elector.doctor().await.unwrap(), [], "it does without");
    assert!(refused(&cluster).contains("config|get"));
    user(&cluster, &without("+config|get"));
    assert_eq!(elector.doctor().await.unwrap(), []);
    assert_eq!(refused(&cluster), "", "it was tried once");

    user(&cluster, &all);
    // Asked for at the node to which its slot is about to move, too.
    let slot = cluster.slot(0, &format!("leader:{group}"));
    cluster.begin_to_move(slot, 0, 1);
    assert!(cluster.move_keys(slot, 0, 1) > 0);
    assert!(elector.leader_id(&group).await.unwrap().is_some());
    assert_eq!(refused(&cluster), "");

    user(&cluster, &without("+asking"));
    let error = elector.leader_id(&group).await.unwrap_err().to_string();
    assert!(error.contains("NOPERM") && error.contains(redis_script::CLUSTER_PERMISSIONS), "{error}");
    assert!(refused(&cluster).contains("asking"));
    user(&cluster, &all);
    cluster.end_to_move(slot, 0, 1);
    eventually("it is led where it is now", || elector.is_leader(&group).then_some(()));
    elector.shutdown(Duration::ZERO).await.unwrap();

    let url = user(&cluster, &without("+cluster|slots"));
    let error = Elector::start(config(&url).require_store(true)).await.unwrap_err().to_string();
    assert!(error.contains("NOPERM") && error.contains("+cluster|slots"), "{error}");
    assert!(refused(&cluster).contains("cluster"));
}

#[tokio::test]
async fn a_wrong_password_is_told_at_once_and_never_shown() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    user(&cluster, &rules());
    let url = cluster.url_of(&[0, 4], "leader:wr0ng@");
    let begin = leader_core::BootInstant::now();
    let error = Elector::start(config(&url).require_store(true)).await.unwrap_err();
    let (took, text) = (leader_core::BootInstant::now().saturating_since(begin), format!("{error} {error:?}"));
    assert!(
        text.contains("WRONGPASS") && text.contains("correct user and password") && !text.contains("wr0ng"),
        "{text}"
    );
    assert!(took < Duration::from_secs(8), "{took:?}");
}
