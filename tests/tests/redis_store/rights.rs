//! What the server's user must be allowed to.

use std::sync::Arc;
use std::time::Duration;

use leader_core::testing::{conformance, redis_script};
use leader_core::{BootInstant, Elector, FreshStore, RedisClient};
use leader_tests::process::{client, eventually, store_at};
use leader_tests::redis::RedisServer;

use crate::config;

const TTL: Duration = Duration::from_millis(600);

/// The rules of the README's `ACL SETUSER`, after the user's name and password.
fn rules() -> Vec<String> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let line = readme.lines().find(|line| line.starts_with("ACL SETUSER")).expect("the README says what is needed");
    line.split(' ').skip(5).map(ToOwned::to_owned).collect()
}

/// Those of the `ACL SETUSER` for locks, which come on top.
fn rules_for_locks() -> Vec<String> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let line = readme.lines().filter(|line| line.starts_with("ACL SETUSER")).nth(1).expect("and what for locks");
    line.split(' ').skip(3).map(ToOwned::to_owned).collect()
}

/// Those for the ledger of ticks, which come on top.
fn rules_for_ticks() -> Vec<String> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let line = readme.lines().filter(|line| line.starts_with("ACL SETUSER")).nth(2).expect("and what for jobs");
    let rules: Vec<String> = line.split(' ').skip(3).map(ToOwned::to_owned).collect();
    assert_eq!(rules.join(" "), redis_script::tick_permissions());
    rules
}

/// A user `leader` with these rights, and the URL for it.
fn user(redis: &RedisServer, rules: &[String]) -> String {
    let mut command = vec!["ACL", "SETUSER", "leader", "reset", "on", ">s3cr3t"];
    command.extend(rules.iter().map(String::as_str));
    redis.command::<()>(&command);
    redis.url().replace("redis://", "redis://leader:s3cr3t@")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_in_the_readme_are_enough() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let url = user(&redis, &[rules(), rules_for_locks(), rules_for_ticks()].concat());
    conformance(|| Arc::new(store_at(&url).fresh_store(FreshStore::Trust))).await;
    let refused: Vec<redis::Value> = redis.command(&["ACL", "LOG"]);
    assert!(refused.is_empty(), "{refused:?}");
    let elector = Elector::start(config(&url)).await.unwrap();
    assert!(elector.is_leader("default"));
    assert_eq!(elector.doctor().await.unwrap(), []);
    elector.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn each_right_in_the_readme_is_needed() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let all = rules();
    // It asks for its number, which nobody else does.
    let is_used = |rule: &str| rule != "+client|id" || client() == RedisClient::Fred;
    for (index, rule) in all.iter().enumerate().filter(|(_, rule)| rule.starts_with('+') && is_used(rule)) {
        // A database other than 0, so that one has to be selected.
        let without: Vec<String> =
            all.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, r)| r.clone()).collect();
        let url = user(&redis, &without).replace("/0", "/1");
        redis.command::<()>(&["ACL", "LOG", "RESET"]);
        redis.flush_all();
        redis.flush_scripts();
        let refused = || format!("{:?}", redis.command::<Vec<redis::Value>>(&["ACL", "LOG"]));
        let command = rule.trim_start_matches('+').split('|').next().unwrap();
        let Ok(elector) = Elector::start(config(&url).ttl(TTL).require_store(true)).await else {
            assert!(refused().contains(command), "without {rule} nothing was refused: {}", refused());
            continue;
        };
        // Scripts that the server has forgotten, renewals, the doctor, a release.
        redis.flush_scripts();
        let begin = BootInstant::now();
        while !refused().contains(command) && BootInstant::now().saturating_since(begin) < 2 * TTL {
            let _ = elector.leader_id("default").await;
        }
        let _ = elector.shutdown(Duration::ZERO).await;
        assert!(refused().contains(command), "without {rule} nothing was refused: {}", refused());
    }
}

#[tokio::test]
async fn who_lacks_a_right_is_told_the_rules_of_the_readme() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let url = user(&redis, &rules().into_iter().filter(|rule| !rule.contains("eval")).collect::<Vec<_>>());
    let elector = Elector::start(config(&url).ttl(TTL)).await.unwrap();
    let problems = format!("{:?}", elector.status().problems);
    let commands: Vec<_> = rules().into_iter().filter(|rule| rule.starts_with('+')).collect();
    assert!(problems.contains("NOPERM") && problems.contains(&commands.join(" ")), "{problems}");
    elector.shutdown(Duration::ZERO).await.unwrap();
}

/// A lease whose record cannot be written would be nobody's, and would be kept from all others again and again.
#[tokio::test]
async fn who_may_not_write_the_record_takes_no_lease_and_keeps_none() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let without = |missing: &str| rules().into_iter().filter(|rule| rule != missing).collect::<Vec<_>>();
    for missing in ["+persist", "+hset"] {
        let url = user(&redis, &without(missing));
        let lame = Elector::start(config(&url).ttl(10 * TTL)).await.unwrap();
        assert!(!lame.is_leader("default"));
        // Before its lease would have ended.
        let healthy = Elector::start(config(&redis.url()).ttl(10 * TTL)).await.unwrap();
        assert!(healthy.is_leader("default"), "without {missing}: {:?}", healthy.status());
        healthy.shutdown(Duration::ZERO).await.unwrap();
        lame.shutdown(Duration::ZERO).await.unwrap();

        let url = user(&redis, &rules());
        let leader = Elector::start(config(&url).ttl(TTL)).await.unwrap();
        assert!(leader.is_leader("default"));
        let next = Elector::start(config(&redis.url()).ttl(TTL)).await.unwrap();
        user(&redis, &without(missing));
        eventually("the other leads", || next.is_leader("default").then_some(()));
        leader.shutdown(Duration::ZERO).await.ok();
        next.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test]
async fn without_the_right_to_publish_and_to_listen_elections_work() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let less: Vec<String> = rules().into_iter().filter(|rule| !rule.contains("sub") && !rule.contains("pub")).collect();
    let url = user(&redis, &less);
    let elector = Elector::start(config(&url)).await.unwrap();
    assert!(elector.is_leader("default"));
    elector.step_down("default").await.unwrap();
    assert_eq!(elector.leader_id("default").await.unwrap(), None);
    elector.shutdown(Duration::ZERO).await.unwrap();
}
