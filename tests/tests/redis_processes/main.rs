//! Real processes on a real Redis server, and what must hold whatever happens to the processes, to the server and to the
//! network between them: no two lead a group at once, terms only rise, and after each fault somebody leads again, without
//! anything having been restarted for it.
//!
//! Each process samples `is_leader()` and logs when it sees itself lead, by the boot clock that all share; the test lays
//! the logs over each other. How long it takes until somebody leads again is printed, and asserted only as far as no busy
//! machine could break it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod broken;
mod clock;
mod death;
mod failover;
mod late;
mod memory;
mod nest;
mod network;
mod outage;
mod rights;
mod scene;
mod series;
mod server_clock;
mod twins;
mod wear;

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use leader_tests::process::again_over_the_other_client;

use scene::Scene;

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");

/// In which a takeover that needs no ttl must be over, on any machine: a third of it.
const LONG: Duration = Duration::from_secs(30);
const LONG_BEFORE: Duration = Duration::from_secs(10);

/// In which an instance is not demoted falsely.
const SHORT: Duration = Duration::from_secs(3);

/// Where a false demotion does no harm.
const BRIEF: Duration = Duration::from_millis(1500);

/// A server that dies, stands still, comes back empty; networks that lose everything, or the answers.
#[test]
fn the_same_holds_over_the_other_client() {
    again_over_the_other_client(&[
        "outage::nobody_leads_by_a_server_that_is_down",
        "outage::nobody_leads_by_a_server_that_stands_still",
        "outage::a_server_that_ends_connections_costs_nothing",
        "memory::a_restart_without_data_gives_no_second_leader",
        "network::another_leads_when_everything_of_the_leader_is_lost",
        "network::another_leads_when_what_the_leader_is_answered_is_lost",
        "late::what_a_stopped_server_does_late_changes_nothing",
    ]);
}

/// From an instant to the begin of a view; nothing if it had begun before.
fn took(from: BootInstant, view: &View) -> Duration {
    BootInstant::from_nanos(view.began_ns).saturating_since(from)
}

fn later(by: Duration) -> BootInstant {
    BootInstant::now().saturating_add(by)
}
