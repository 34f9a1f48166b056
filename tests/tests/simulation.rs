//! The simulation in short: every configuration that must be safe, every broken rule that must show, every seed that once
//! found something.

#![allow(clippy::print_stdout, reason = "the figures are part of the result")]

use std::time::{Duration, Instant};

use leader_core::testing::redis_script::Flaw;
use leader_core::{Reclaim, RenewalFailure};
use leader_tests::sim::faults::{Fault, FaultSet};
use leader_tests::sim::{Report, Settings, StoreKind, Variant, run, run_many};

fn seconds(ttls: &[u64]) -> Vec<Duration> {
    ttls.iter().map(|s| Duration::from_secs(*s)).collect()
}

/// Every world in which no two instances may ever lead at once.
fn safe() -> Vec<(&'static str, Settings)> {
    let usual = Settings::default();
    let after_deadline = Settings { reclaim: Reclaim::AfterDeadline, ..usual.clone() };
    let twins = Settings { twins: true, ..after_deadline.clone() };
    let heavy = Settings { fault_gap: 0.7, loss: 0.1, ..usual.clone() };
    let hold = RenewalFailure::HoldUntilDeadline;
    let clock_back = FaultSet::NONE.with(Fault::StoreClockBack).with(Fault::Pause).with(Fault::Crash);
    vec![
        ("usual", usual.clone()),
        ("drift of 5 %, guard set for it", usual.clone().drifting(50_000)),
        ("five instances, heavy faults", Settings { instances: 5, ..heavy.clone() }),
        ("ttls of 1, 3 and 2 s", Settings { ttls: seconds(&[1, 3, 2]), ..usual.clone() }),
        ("hold until the deadline", Settings { renewal_failure: hold, ..usual.clone() }),
        ("hold until the deadline, heavy faults", Settings { renewal_failure: hold, ..heavy.clone() }),
        ("reclaim after the deadline", after_deadline),
        ("two live processes with one id", twins.clone()),
        ("the same, ttls of 3 and 1 s", Settings { ttls: seconds(&[3, 1]), ..twins.clone() }),
        ("the same, hold, heavy faults", Settings { renewal_failure: hold, fault_gap: 1.0, loss: 0.1, ..twins }),
        ("two observers of five", Settings { instances: 5, observers: 2, ..usual.clone() }),
        ("the store's clock is set back", Settings { faults: clock_back, ..usual }),
    ]
}

/// The same, with a store that has replicas: where all of them are waited for, whatever befalls them; where none is, as long as
/// there is one primary at a time.
fn safe_with_replicas() -> Vec<(&'static str, Settings)> {
    let usual = Settings::default();
    let heavy = Settings { instances: 5, fault_gap: 0.7, loss: 0.1, ..usual.clone() };
    let hold = Settings { renewal_failure: RenewalFailure::HoldUntilDeadline, fault_gap: 1.0, ..usual.clone() };
    let mixed = Settings { ttls: seconds(&[1, 3, 2]), ..usual.clone() };
    vec![
        ("one replica, waited for", usual.clone().replicated(1, 1)),
        ("two replicas, both waited for", usual.clone().replicated(2, 2)),
        ("the same, five instances, heavy faults", heavy.clone().replicated(2, 2)),
        ("one replica, waited for, hold until the deadline", hold.clone().replicated(1, 1)),
        ("two replicas, both waited for, ttls of 1, 3 and 2 s", mixed.replicated(2, 2)),
        ("two replicas, nobody waits, one primary at a time", usual.replicated(2, 0)),
        ("one replica, nobody waits, one primary at a time, hold", hold.replicated(1, 0)),
        ("the same, five instances, heavy faults", heavy.replicated(1, 0)),
    ]
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs so many seeds of each of these worlds.
fn no_two_lead(worlds: Vec<(&str, Settings)>, store: StoreKind, seeds: u64) {
    let mut all = Report::default();
    for (name, settings) in worlds {
        let begun = Instant::now();
        let report = run_many(&Settings { store, ..settings }, 1, seeds, threads(), |_| true);
        println!("== {name}, seeds 1 to {seeds}, {:.1} s\n{report}", begun.elapsed().as_secs_f64());
        assert!(report.is_clean(), "{name}: seed {:?}", report.failure);
        assert_eq!(report.stuck, 0, "{name}: nobody led after the faults had ended");
        assert!(report.handovers > seeds, "{name}: nothing was tried");
        all.add(&report);
    }
    println!("== together\n{all}");
}

#[test]
fn no_two_lead_at_once_and_terms_only_rise() {
    no_two_lead(safe(), StoreKind::Model, 250);
}

#[test]
fn no_two_lead_at_once_and_terms_only_rise_by_the_real_script() {
    no_two_lead(safe(), StoreKind::Script, 40);
}

#[test]
fn no_two_lead_at_once_whichever_replica_becomes_the_primary() {
    no_two_lead(safe_with_replicas(), StoreKind::Model, 50);
}

#[test]
fn no_two_lead_at_once_whichever_replica_becomes_the_primary_by_the_real_script() {
    no_two_lead(safe_with_replicas(), StoreKind::Script, 6);
}

/// A primary that is cut off with its leader and with one of its replicas: the limit that is stated of waiting for some.
#[test]
fn only_waiting_for_every_replica_excludes_two_leaders() {
    let overlaps = |wait| {
        let settings = Settings { faults: FaultSet::two_primaries(), ..Settings::default().replicated(2, wait) };
        let report = run_many(&settings, 1, 40, threads(), |_| true);
        println!("two replicas, {wait} waited for: {} overlaps, {} bad terms", report.overlaps, report.bad_terms);
        report.overlaps
    };
    assert!(overlaps(0) > 0);
    assert!(overlaps(1) > 0);
    assert_eq!(overlaps(2), 0);
}

/// The rarest of them shows in one of 130, as far as seen.
const SEEDS: u64 = 400;

/// Whether a broken rule shows.
fn shows(settings: &Settings, name: &str) {
    let caught = (1..=SEEDS).find(|seed| !run(settings, *seed, false).report.is_clean());
    println!("{name}, {:?}: caught at seed {caught:?} of {SEEDS}", settings.store);
    assert!(caught.is_some(), "{name}, {:?}: not caught", settings.store);
}

#[test]
fn every_broken_rule_shows_within_400_seeds() {
    for (variant, name) in Variant::ALL {
        shows(&Settings::default().broken(variant), name);
    }
}

#[test]
fn every_broken_rule_of_the_real_script_shows_within_400_seeds() {
    let broken = |(variant, name)| (Settings::default().broken(variant), name);
    let of_store: Vec<_> = Variant::ALL.map(broken).into_iter().filter(|(s, _)| s.flaw().is_some()).collect();
    for flaw in Flaw::ALL {
        assert!(of_store.iter().any(|(settings, _)| settings.flaw() == Some(flaw)), "{flaw:?}");
    }
    for (settings, name) in of_store {
        shows(&Settings { store: StoreKind::Script, ..settings }, name);
    }
}

/// Seeds that once found a fault of a rule, in the world that found it.
#[test]
fn what_was_found_once_stays_fixed() {
    let usual = Settings::default();
    let twins = Settings { twins: true, reclaim: Reclaim::AfterDeadline, ..usual.clone() };
    let found: [(&str, Settings, u64); 6] = [
        (
            "a late acquire of a leader that continued took the lease that had been another's",
            Settings { ttls: seconds(&[1, 3, 2]), ..usual.clone() },
            114,
        ),
        ("the same", Settings { instances: 5, fault_gap: 0.7, loss: 0.1, ..usual }, 564),
        ("an older process's lease was forgotten with the seat", twins.clone(), 1),
        ("an older process was re-seated while the newer one waited for its deadline", twins.clone(), 953),
        (
            "a process that had never believed continued",
            Settings { renewal_failure: RenewalFailure::HoldUntilDeadline, fault_gap: 1.0, loss: 0.1, ..twins.clone() },
            283,
        ),
        ("the same", Settings { ttls: seconds(&[1, 3]), ..twins }, 4232),
    ];
    for (what, settings, seed) in found {
        for store in [StoreKind::Model, StoreKind::Script] {
            let report = run(&Settings { store, ..settings.clone() }, seed, false).report;
            assert!(report.is_clean(), "{what}, {store:?}: {:?}", report.failure);
        }
    }
}

#[test]
fn a_seed_is_one_run() {
    let settings = Settings::default();
    assert_eq!(run(&settings, 7, false).report, run(&settings, 7, false).report);
    assert_ne!(run(&settings, 7, false).report, run(&settings, 8, false).report);
}

#[test]
fn a_failure_tells_what_led_to_it() {
    let settings = Settings::default().broken(Variant::NoQuarantine);
    let seed = (1..=200).find(|seed| !run(&settings, *seed, false).report.is_clean()).expect("it is caught");
    let outcome = run(&settings, seed, true);
    let last = outcome.trace.last().expect("lines were kept");
    assert!(last.contains("both believe to lead"), "{last}");
}
