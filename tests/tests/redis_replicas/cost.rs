//! What it costs, in what can be counted.

use std::time::Duration;

use leader_core::Elector;
use leader_tests::process::eventually;
use leader_tests::redis::{RedisServer, Replicated};

use crate::config;

/// Calls of a script from outside, and waits, both at one instant.
fn counts(redis: &RedisServer) -> (u64, u64) {
    let stats: String = redis.command(&["INFO", "commandstats"]);
    let of = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.map_or(0, |line| line.split(',').next().unwrap().parse::<u64>().unwrap())
    };
    (of("evalsha"), of("wait"))
}

/// An elector renews so often; what that has cost: calls of the script, and waits.
async fn renewed(servers: &Replicated, replicas: u8) -> (u64, u64) {
    const RENEWALS: u64 = 10;
    let elector = Elector::start(config(&servers.primary.url(), replicas)).await.unwrap();
    assert!(elector.is_leader("default"), "{:?}", elector.status());
    // The doctor has its own questions.
    elector.doctor().await.unwrap();
    let before = counts(&servers.primary);
    let after = eventually("it has renewed", || {
        let now = counts(&servers.primary);
        (now.0 >= before.0 + RENEWALS).then_some(now)
    });
    elector.shutdown(Duration::ZERO).await.unwrap();
    (after.0 - before.0, after.1 - before.1)
}

#[tokio::test]
async fn a_renewal_is_one_command_more_with_replicas_and_none_without() {
    let Some(servers) = Replicated::start(1) else { return };
    assert_eq!(renewed(&servers, 0).await.1, 0);
    assert_eq!(servers.primary.calls("wait"), 0);
    let (renewals, waits) = renewed(&servers, 1).await;
    // The last of them may be on its way to its wait; and the doctor's last one may have been among the first.
    assert!(waits.abs_diff(renewals) <= 1, "{waits} waits for {renewals} renewals");
}
