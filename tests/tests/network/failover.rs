//! Another server becomes the primary, and has not got all that the old one had.

use std::time::Duration;

use leader_core::BootInstant;
use leader_core::testing::redis_script::Flaw;
use leader_tests::process::{Command, Reign};
use leader_tests::redis::{Promoted, RedisServer};

use crate::watched::{LABELS, SENTINELS, Scene};
use crate::{leads_at, until_well};

/// A failover takes less than half of it.
const LONG: Duration = Duration::from_secs(6);
const SHORT: Duration = Duration::from_secs(2);

/// Sentinels that do not hesitate.
const HASTY: [&str; 2] = ["sentinel down-after-milliseconds jobs 500", "sentinel failover-timeout jobs 1000"];

/// A leader of which no replica knows, and whose primary is gone; who leads, and where others may.
fn unknown(flaw: Option<Flaw>) -> Option<(Scene, Reign, BootInstant, Promoted)> {
    let (mut scene, first) = Scene::new(LONG, &HASTY, |options| options.script_flaw = flaw)?;
    // What they have of the group: that nobody leads it.
    for label in ["c", "b", "a"] {
        scene.fleet.ask(label, &Command::Drain).unwrap();
    }
    scene.fleet.until("the replicas know of the release", |_| {
        let has = |server: &RedisServer| server.command::<bool>(&["EXISTS", "leader:default"]);
        (!scene.watched.servers.iter().any(has)).then_some(())
    });
    for replica in [1, 2] {
        scene.network.lose(0, replica, 100);
        scene.network.lose(replica, 0, 100);
    }
    scene.fleet.ask("b", &Command::Resume).unwrap();
    let reign = scene.fleet.leader("default", first.term);
    assert_eq!(reign.label, "b");
    for label in ["a", "c"] {
        scene.fleet.ask(label, &Command::Resume).unwrap();
    }
    // They have asked before its last renew.
    scene.fleet.still_leads(&reign, "default", BootInstant::now().saturating_add(LONG / 4));
    // It believes on, and cannot say so to the next server.
    scene.network.isolate(&[SENTINELS + 1]);
    scene.watched.servers[0].kill();
    let fault = BootInstant::now();
    let new = scene.watched.until_promoted(0);
    Some((scene, reign, fault, new))
}

#[test]
fn a_leader_that_no_replica_knew_of_has_none_beside_it_after_a_failover() {
    let Some((mut scene, reign, fault, new)) = unknown(None) else { return };
    let view = scene.led_again("failover without the lease", fault, &new, &reign);
    assert_ne!(view.instance, reign.label);
    scene.network.heal();
    until_well(&mut scene.fleet, &LABELS);
    scene.fleet.assert_safe();
}

/// Or the test above would show nothing.
#[test]
fn a_leader_that_no_replica_knew_of_is_doubled_where_the_script_has_no_quarantine() {
    let Some((mut scene, ..)) = unknown(Some(Flaw::NoQuarantine)) else { return };
    scene.fleet.until("two are seen to lead at once", |fleet| fleet.read_logs().overlaps().pop());
}

/// Each primary stands still until another one is in its place, and takes itself for the primary when it goes on, for some
/// seconds: there may be three of them.
#[allow(clippy::print_stderr)]
fn flapping(times: usize) {
    let Some((mut scene, first)) = Scene::new(SHORT, &HASTY, |_| {}) else { return };
    let began = BootInstant::now();
    for round in 1..=times {
        // One at least has to be there to take its place.
        let Scene { fleet, watched, .. } = &mut scene;
        let primary = fleet.until("the sentinels agree on a primary, and a replica is in step", |_| {
            let primary = watched.agreed()?;
            let info: String = watched.servers[primary].try_command(&["INFO", "replication"]).ok()?;
            info.contains("state=online").then_some(primary)
        });
        let is_old = |server: &usize| *server != primary && watched.is_primary(*server) == Some(true);
        let believers: Vec<_> = (0..watched.servers.len()).filter(is_old).collect();
        watched.servers[primary].stop();
        let fault = BootInstant::now();
        let new = watched.until_replaced(primary);
        watched.servers[primary].cont();
        let view = leads_at(fleet, "a failover", new.named.saturating_add(SHORT));
        let leaderless = fleet.read_logs().leaderless_ns("default", fault.as_nanos(), view.ended_ns);
        eprintln!(
            "failover {round}: server {} instead of {primary} after {:.3?}, beside {believers:?}; leaderless for {:.3?}, then {}, term {}",
            new.server,
            new.named.saturating_since(fault),
            Duration::from_nanos(leaderless),
            view.instance,
            view.term
        );
    }
    let last = leads_at(&mut scene.fleet, "all failovers", BootInstant::now());
    let took = BootInstant::now().saturating_since(began);
    assert!(last.term > first.term, "a lease outlived {times} primaries");
    eprintln!("{times} failovers in {took:.3?}: {} views", scene.fleet.read_logs().views().len());
    for label in LABELS {
        assert!(scene.fleet.status(label)["live"].as_bool().unwrap());
    }
    scene.fleet.assert_safe();
}

#[test]
fn failovers_one_after_the_other_give_no_second_leader() {
    flapping(2);
}

/// `cargo test -p leader-tests --all-features --test network -- --ignored --nocapture ten_failovers`
#[test]
#[ignore = "takes a minute"]
fn ten_failovers_one_after_the_other_give_no_second_leader() {
    flapping(10);
}
