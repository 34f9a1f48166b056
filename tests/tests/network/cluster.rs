//! A node of a cluster is cut off together with the leader of its groups.

use std::time::Duration;

use leader_core::BootInstant;
use leader_tests::net::Network;
use leader_tests::process::{Command, Fleet};
use leader_tests::redis::RedisCluster;

use crate::{PROGRAM, ROOM, took, until_well};

const TTL: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_millis(300);

#[test]
#[allow(clippy::print_stderr)]
fn an_owner_that_is_cut_off_with_its_leader_is_replaced_and_gives_no_second_leader() {
    let Some(network) = Network::of(3) else { return };
    let Some(cluster) = RedisCluster::start_inside(&network, &[("cluster-require-full-coverage", "no")]) else {
        return;
    };
    let mut fleet = Fleet::on_store(PROGRAM, &cluster.url_of(&[0, 1, 2], ""));
    let group = cluster.group_of(0, "isolated");
    for (party, label) in ["a", "b", "c"].iter().enumerate() {
        let mut plan = fleet.plan(label, TTL);
        plan.entry = network.party(party).entry().to_vec();
        plan.options.trust_fresh_store = true;
        plan.options.groups = vec![group.clone()];
        plan.options.heartbeat = Some(TTL / 10);
        plan.options.retry = Some(RETRY);
        plan.options.operation_timeout = Some(TTL / 4);
        plan.options.hold_until_deadline = true;
        fleet.start(&plan);
    }
    let reign = fleet.leader(&group, 0);
    assert_eq!(reign.label, "a");
    let slot = cluster.slot(0, &format!("leader:{group}"));

    network.isolate(&[0]);
    let fault = BootInstant::now();
    let promoted = fleet.until("the replica is in the place of its primary", |_| {
        (cluster.owner(1, slot) == Some(3)).then(BootInstant::now)
    });
    let view = fleet.next_view(&group, fault, reign.term);
    let after = took(promoted, &view);
    let bound = TTL + 2 * RETRY;
    eprintln!(
        "owner and leader cut off: replica promoted after {:.3?}, {} leads {after:.3?} after that ({bound:?} promised)",
        promoted.saturating_since(fault),
        view.instance
    );
    assert_ne!(view.instance, "a");
    assert!(after <= bound + ROOM, "{after:?}");

    network.heal();
    let healed = BootInstant::now();
    fleet.until("the old owner follows the new one", |_| (cluster.owner(0, slot) == Some(3)).then_some(()));
    fleet.until("somebody leads on", |fleet| {
        fleet.read_logs().newest_view(&group).filter(|view| view.ended_ns >= healed.as_nanos()).map(drop)
    });
    // It takes part again, too.
    until_well(&mut fleet, &["a", "b", "c"]);
    for label in ["b", "c"] {
        fleet.ask(label, &Command::Drain).unwrap();
    }
    fleet.until("the one that was cut off leads", |fleet| {
        fleet.read_logs().newest_view(&group).filter(|view| view.instance == "a" && view.term > reign.term).map(drop)
    });
    fleet.assert_safe();
}
