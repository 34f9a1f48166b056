//! The server's own wall clock steps, by which it ends leases.

use std::time::Duration;

use leader_core::{BootInstant, Config, Elector, FreshStore};
use leader_examples::history::Overlap;
use leader_tests::process::{Command, Reign};
use leader_tests::redis::RedisServer;

use crate::{BRIEF, LONG, Scene, later};

const TTL: Duration = Duration::from_secs(6);
const HEARTBEAT: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(3);
const HOUR_MS: i64 = 3_600_000;

/// One leads, and the other one stands aside.
fn two(ttl: Duration, heartbeat: Option<Duration>, timeout: Duration) -> Option<(Scene, Reign)> {
    let mut scene = Scene::on(RedisServer::start_with_clock(&[])?);
    for label in ["a", "b"] {
        let mut plan = scene.plan(label, ttl);
        (plan.options.heartbeat, plan.options.operation_timeout) = (heartbeat, Some(timeout));
        scene.fleet.start(&plan);
    }
    let reign = scene.fleet.leader("default", 0);
    assert_eq!(reign.label, "a");
    Some((scene, reign))
}

/// A stated limit: the server holds no lease any more, of which nobody has told its leader. It finds out when it renews.
#[test]
#[allow(clippy::print_stderr)]
fn a_step_of_the_servers_clock_forward_gives_two_leaders_until_the_next_renew_at_most() {
    let Some((mut scene, mut reign)) = two(TTL, Some(HEARTBEAT), TIMEOUT) else { return };
    let expiry = |redis: &RedisServer| redis.command::<i64>(&["PEXPIRETIME", "leader:default"]);
    for step in 1..=2 {
        let other = if reign.label == "a" { "b" } else { "a" };
        scene.fleet.ask(other, &Command::Drain).unwrap();
        // The next renew is as far off as it can be.
        let Scene { fleet, redis } = &mut scene;
        let known = expiry(redis);
        fleet.until("the lease was renewed", |_| (expiry(redis) > known).then_some(()));
        redis.set_clock(step * HOUR_MS);
        let stepped = BootInstant::now();
        fleet.ask(other, &Command::Resume).unwrap();
        // Somebody leads under a later term: the other, or the same if it was faster.
        reign = scene.taken_over("a step of the server's clock by an hour", stepped, &reign);
        // Whoever led before knows by then.
        scene.wait_until(later(HEARTBEAT));
        scene.until_well(&["a", "b"]);
    }
    let history = scene.fleet.read_logs();
    let longest = history.overlaps().iter().map(Overlap::shared_ns).max().map(Duration::from_nanos).unwrap_or_default();
    eprintln!("steps of the server's clock forward: two led for {longest:.3?} at most, heartbeat {HEARTBEAT:?}");
    // A renew is sent a heartbeat after the last one, and answered or given up within the time-out.
    assert!(longest <= HEARTBEAT + TIMEOUT, "{longest:?}");
    assert_eq!(history.term_faults(), []);
}

/// The lease would last an hour longer, and there is nobody to renew it.
#[test]
fn a_step_of_the_servers_clock_back_keeps_nobody_from_leading() {
    let Some((mut scene, reign)) = two(BRIEF, None, BRIEF / 2) else { return };
    scene.redis.set_clock(-HOUR_MS);
    // Who leads renews: from now on its lease lasts as long as it should.
    scene.fleet.still_leads(&reign, "default", later(2 * BRIEF));
    scene.fleet.stop(&reign.label);
    scene.redis.set_clock(-2 * HOUR_MS);
    let stepped = BootInstant::now();
    let next = scene.taken_over("the leader stopped, and a step of the server's clock back", stepped, &reign);
    assert_eq!(next.label, "b");
    scene.fleet.cont(&reign.label);
    scene.until_well(&["a", "b"]);
    scene.fleet.assert_safe();
}

/// Each elector sees it that has looked before.
#[tokio::test]
async fn a_step_of_the_servers_clock_is_told_by_the_next_examination() {
    let Some(redis) = RedisServer::start_with_clock(&[]) else { return };
    let elector = Elector::start(Config::new(redis.url()).ttl(LONG).fresh_store(FreshStore::Trust)).await.unwrap();
    let jumps = async || {
        let found = elector.doctor().await.unwrap().into_iter().filter(|finding| finding.code == "clock-jumped");
        found.map(|finding| finding.what).collect::<Vec<_>>()
    };
    assert!(jumps().await.is_empty());
    for (offset_ms, told) in [(HOUR_MS, "ahead by 3"), (0, "back by 3")] {
        redis.set_clock(offset_ms);
        // By an hour, less what the two round trips took.
        let found = jumps().await;
        assert!(matches!(&found[..], [text] if text.contains(told)), "{found:?}");
    }
}
