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

use scene::Scene;

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");

/// In which a takeover that needs no ttl must be over, on any machine: a third of it.
const LONG: Duration = Duration::from_secs(30);
const LONG_BEFORE: Duration = Duration::from_secs(10);

/// In which an instance is not demoted falsely.
const SHORT: Duration = Duration::from_secs(3);

/// Where a false demotion does no harm.
const BRIEF: Duration = Duration::from_millis(1500);

/// From an instant to the begin of a view; nothing if it had begun before.
fn took(from: BootInstant, view: &View) -> Duration {
    BootInstant::from_nanos(view.began_ns).saturating_since(from)
}

fn later(by: Duration) -> BootInstant {
    BootInstant::now().saturating_add(by)
}
