//! Real processes on one SQLite file, and what must hold whatever happens to them: no two lead a group at once, and terms
//! only rise.
//!
//! Each process samples `is_leader()` and logs when it sees itself lead, by the boot clock that all share; the test lays
//! the logs over each other. Where a takeover must not be the ttl's doing, the ttl is 30 s. No assertion needs a machine
//! that is quick: a ttl is 3 s where an instance must stay leader, with half of it for each call of the store.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod blocked;
mod chaos;
mod clock;
mod death;
mod disk;
mod file;
mod handover;
mod identity;
mod wear;

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use leader_tests::process::Fleet;

/// In which a takeover that needs no ttl must be over, on any machine: a third of it.
const LONG: Duration = Duration::from_secs(30);
const LONG_BEFORE: Duration = Duration::from_secs(10);

/// In which an instance is not demoted falsely.
const SHORT: Duration = Duration::from_secs(3);

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");

/// Nodes with these labels and this ttl, started one after the other: the first leads.
fn fleet(ttl: Duration, labels: &[&str]) -> Fleet {
    let mut fleet = Fleet::new(PROGRAM);
    start(&mut fleet, ttl, labels);
    fleet
}

fn start(fleet: &mut Fleet, ttl: Duration, labels: &[&str]) {
    for label in labels {
        fleet.start(&fleet.plan(label, ttl));
    }
}

/// From an instant to the begin of a view.
fn took(from: BootInstant, view: &View) -> Duration {
    BootInstant::from_nanos(view.began_ns).saturating_since(from)
}

fn later(by: Duration) -> BootInstant {
    BootInstant::now().saturating_add(by)
}
