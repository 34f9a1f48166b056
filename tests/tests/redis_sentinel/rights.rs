//! What the doctor asks the servers by Sentinel, and what their user must be allowed to for it.

use std::time::Duration;

use leader_core::{Elector, FreshStore};
use leader_tests::process::config_at;
use leader_tests::redis::{SERVICE, Watched};

use crate::TTL;

/// The rules of the README's lines of `ACL SETUSER` that this is true of, after the user's name and password.
fn rules(of: impl Fn(&str) -> bool) -> Vec<String> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let lines = readme.lines().filter(|line| line.starts_with("ACL SETUSER") && of(line));
    let rules = lines.flat_map(|line| line.split(' ').skip(3)).filter(|rule| *rule != "on" && !rule.starts_with('>'));
    rules.map(ToOwned::to_owned).collect()
}

/// On each server a user `leader` with these rights.
fn user(watched: &Watched, rules: &[String]) {
    for server in &watched.servers {
        let mut command = vec!["ACL", "SETUSER", "leader", "reset", "on", ">s3cr3t"];
        command.extend(rules.iter().map(String::as_str));
        server.command::<()>(&command);
        server.command::<()>(&["ACL", "LOG", "RESET"]);
    }
}

/// What the doctor lacks, by code, with what to do.
async fn lacking(elector: &Elector) -> Vec<(&'static str, String)> {
    let found = elector.doctor().await.unwrap().into_iter();
    let found = found.filter(|finding| finding.advice.contains("ACL SETUSER"));
    found.map(|finding| (finding.code, finding.advice)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_that_the_doctor_needs_are_told_and_those_in_the_readme_are_enough() {
    // So that it matters for how long a replica may be silent.
    let Some(watched) = Watched::start(&[("min-replicas-to-write", "1")], &[], None) else { return };
    let of_doctor = |line: &str| line.contains("+role");
    let (few, all) =
        (rules(|line| line.contains("+evalsha")), rules(|line| line.contains("+evalsha") || of_doctor(line)));
    assert!(few.len() + 1 == all.len(), "{all:?}");
    user(&watched, &few);
    let config = config_at(watched.url_as("leader:s3cr3t@", SERVICE, "")).fresh_store(FreshStore::Trust).ttl(30 * TTL);
    let elector = Elector::start(config).await.unwrap();
    assert!(elector.is_leader("default"), "{:?}", elector.status());

    let found = lacking(&elector).await;
    let [("no-permission", role)] = &found[..] else { panic!("{found:?}") };
    assert!(role.ends_with("ACL SETUSER <user> +role"), "{found:?}");

    user(&watched, &all);
    assert_eq!(lacking(&elector).await, []);
    // Nor does it try again to read settings.
    for server in &watched.servers {
        let refused: Vec<redis::Value> = server.command(&["ACL", "LOG"]);
        assert!(refused.is_empty(), "{refused:?}");
    }
    elector.shutdown(Duration::ZERO).await.unwrap();
}
