//! What the server's user must be allowed to, on top of what the README says for a server.

use std::time::Duration;

use leader_core::Elector;
use leader_core::testing::redis_script;
use leader_tests::process::eventually;
use leader_tests::redis::Replicated;

use crate::{config, problems};

/// The rules of the README's first `ACL SETUSER`, after the user's name and password.
fn rules() -> Vec<String> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let line = readme.lines().find(|line| line.starts_with("ACL SETUSER")).expect("the README says what is needed");
    line.split(' ').skip(5).map(ToOwned::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_to_wait_is_needed_only_to_wait_and_then_is_enough() {
    let Some(servers) = Replicated::start(1) else { return };
    let rules = rules();
    assert!(!rules.iter().any(|rule| rule == redis_script::REPLICA_PERMISSIONS), "it is for those who wait");
    let mut user = vec!["ACL", "SETUSER", "leader", "reset", "on", ">s3cr3t"];
    user.extend(rules.iter().map(String::as_str));
    servers.primary.command::<()>(&user);
    let url = servers.primary.url().replace("redis://", "redis://leader:s3cr3t@");
    let refused = || format!("{:?}", servers.primary.command::<Vec<redis::Value>>(&["ACL", "LOG"]));

    let without = Elector::start(config(&url, 0)).await.unwrap();
    assert!(without.is_leader("default"), "{:?}", without.status());
    without.doctor().await.unwrap();
    without.shutdown(Duration::ZERO).await.unwrap();
    assert_eq!(refused(), "[]");

    let elector = Elector::start(config(&url, 1)).await.unwrap();
    assert!(!elector.is_leader("default"));
    eventually("the status says what is missing", || {
        let text = problems(&elector);
        (text.contains("NOPERM") && text.contains("+evalsha") && text.contains("+wait")).then_some(())
    });
    let found = format!("{:?}", elector.doctor().await.unwrap());
    assert!(found.contains("ACL SETUSER <user> +wait"), "{found}");
    let lock = elector.lock("k").acquire().await.map(drop).unwrap_err().to_string();
    assert!(lock.contains("NOPERM") && lock.contains("+wait"), "{lock}");
    servers.primary.command::<()>(&["ACL", "SETUSER", "leader", redis_script::REPLICA_PERMISSIONS]);
    eventually("it leads", || elector.is_leader("default").then_some(()));
    assert!(!format!("{:?}", elector.doctor().await.unwrap()).contains("ACL SETUSER"));
    elector.shutdown(Duration::ZERO).await.unwrap();
}
