//! Every interleaving of two instances within small bounds.
#![allow(clippy::print_stdout, reason = "the figures are part of the result")]

use std::time::Duration;

use leader_core::testing::election::KnownBad;
use leader_core::testing::redis_script::Flaw;
use leader_tests::model::{Bounds, Faults, search, searches};

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

#[test]
fn a_deadline_that_counts_from_the_reply_is_found() {
    let bounds = Bounds { known_bad: Some(KnownBad::DeadlineFromReply), ..Bounds::default() };
    let (promise, steps) = search(bounds, threads(), PATIENCE).broken.expect("it is found");
    println!("{promise}: {steps:#?}");
}

#[test]
fn a_store_without_quarantine_is_found() {
    let faults = Faults { flushes: 1, ..Faults::default() };
    let bounds = Bounds { faults, flaw: Some(Flaw::NoQuarantine), ..Bounds::default() };
    let (promise, steps) = search(bounds, threads(), PATIENCE).broken.expect("it is found");
    println!("{promise}: {steps:#?}");
}
