//! Every interleaving of two or three instances within small bounds, and rules that are left out and have to be found.
#![allow(clippy::print_stdout, reason = "the figures are part of the result")]

use std::time::Duration;

use leader_core::Reclaim;
use leader_core::testing::election::KnownBad;
use leader_core::testing::redis_script::Flaw;
use leader_tests::model::{Bounds, Faults, Replication, search, searches};

/// Ends by its bounds long before, on any machine.
const PATIENCE: Duration = Duration::from_secs(600);

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn no_interleaving_has_two_leaders_or_a_term_that_repeats() {
    for (name, bounds) in searches(false) {
        let verdict = search(bounds, threads(), PATIENCE);
        println!("{name}: {} states, depth {}, {:.1?}", verdict.states, verdict.depth, verdict.took);
        assert!(verdict.broken.is_none(), "{name}: {:#?}", verdict.broken);
        assert!(verdict.complete && verdict.handover, "{name}: {verdict:?}");
    }
}

/// Two instances, and time for one lease to end.
fn small(faults: Faults) -> Bounds {
    Bounds { ticks: 2, packets: 2, faults, ..Bounds::default() }
}

const NONE: Faults = Faults {
    failures: 0,
    duplicates: 0,
    crashes: 0,
    stand_asides: 0,
    flushes: 0,
    empties: 0,
    rollbacks: 0,
    deletions: 0,
    promotions: 0,
    cuts: 0,
};

/// The rule that `without` leaves out is what keeps the promises within `bounds`.
fn only_a_rule_keeps(bounds: Bounds, without: impl FnOnce(Bounds) -> Bounds) {
    let kept = search(bounds, threads(), PATIENCE);
    assert!(kept.broken.is_none() && kept.complete, "{kept:?}");
    let (promise, steps) = search(without(bounds), threads(), PATIENCE).broken.expect("it is found");
    println!("{} states with the rule; without: {promise}: {steps:#?}", kept.states);
}

fn known_bad(variant: KnownBad) -> impl FnOnce(Bounds) -> Bounds {
    move |bounds| Bounds { known_bad: Some(variant), ..bounds }
}

fn flaw(flaw: Flaw) -> impl FnOnce(Bounds) -> Bounds {
    move |bounds| Bounds { flaw: Some(flaw), ..bounds }
}

#[test]
fn a_deadline_that_counts_from_the_reply_is_found() {
    only_a_rule_keeps(small(NONE), known_bad(KnownBad::DeadlineFromReply));
}

#[test]
fn a_view_without_a_deadline_is_found() {
    only_a_rule_keeps(small(NONE), known_bad(KnownBad::NoDeadline));
}

#[test]
fn a_late_reply_that_is_used_is_found() {
    only_a_rule_keeps(small(Faults { failures: 1, ..NONE }), known_bad(KnownBad::LateReply));
}

#[test]
fn a_store_without_quarantine_is_found() {
    only_a_rule_keeps(small(Faults { flushes: 1, ..NONE }), flaw(Flaw::NoQuarantine));
}

#[test]
fn a_promotion_without_quarantine_is_found() {
    let replication = Replication::NotWaitedFor;
    let bounds = Bounds { replication, ..small(Faults { promotions: 1, ..NONE }) };
    only_a_rule_keeps(bounds, flaw(Flaw::NoQuarantine));
}

#[test]
fn a_release_by_value_is_found() {
    let bounds = Bounds { ticks: 1, ..small(Faults { stand_asides: 1, duplicates: 1, ..NONE }) };
    only_a_rule_keeps(bounds, flaw(Flaw::ByValue));
}

#[test]
fn a_lease_that_vanished_and_is_not_waited_for_is_found() {
    only_a_rule_keeps(small(Faults { deletions: 1, ..NONE }), flaw(Flaw::NoUntil));
}

#[test]
fn an_older_incarnation_that_is_forgotten_is_found() {
    let twins = small(Faults { failures: 1, ..NONE });
    let bounds = Bounds { twins: true, reclaim: Reclaim::AfterDeadline, ..twins };
    only_a_rule_keeps(bounds, flaw(Flaw::ForgetOlder));
}

#[test]
fn a_primary_that_is_cut_off_and_whose_replica_is_not_waited_for_is_found() {
    let replication = Replication::WaitedFor;
    let bounds = Bounds { replication, ..small(Faults { cuts: 1, ..NONE }) };
    only_a_rule_keeps(bounds, |bounds| Bounds { replication: Replication::NotWaitedFor, ..bounds });
}
