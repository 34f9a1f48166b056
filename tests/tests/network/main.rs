//! Real packets that are really lost: nodes and servers in network namespaces of their own, and what must hold whatever happens
//! between them. No two lead a group at once, terms only rise, and after each fault somebody leads again, without anything
//! having been restarted for it.
//!
//! Where this user may not have namespaces, each test says so and does nothing. How long it takes until somebody leads again is
//! printed, and asserted with room for a busy machine.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod cluster;
mod failover;
mod harness;
mod isolated;
mod links;
mod loss;
mod scene;
mod series;
mod watched;

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use leader_tests::process::{Fleet, Reign};

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");

/// Where a false demotion does no harm.
const BRIEF: Duration = Duration::from_millis(1500);

/// What a busy machine may add to what is promised.
const ROOM: Duration = Duration::from_secs(10);

/// Waits until somebody leads at this instant or later.
fn leads_at(fleet: &mut Fleet, what: &str, instant: BootInstant) -> View {
    fleet.until(&format!("somebody leads after {what}"), |fleet| {
        fleet.read_logs().newest_view("default").filter(|view| view.ended_ns >= instant.as_nanos()).cloned()
    })
}

/// Waits until somebody leads after a fault that has just ended, prints how long that took, and asserts that it was not
/// much more than `promised`.
#[allow(clippy::print_stderr)]
fn led_again(fleet: &mut Fleet, what: &str, promised: Duration) -> View {
    let ended = BootInstant::now();
    let view = leads_at(fleet, what, ended);
    let took = took(ended, &view);
    eprintln!(
        "{what}: {} leads {took:.3?} after it was over ({promised:.3?} promised), term {}",
        view.instance, view.term
    );
    assert!(took <= promised + ROOM, "{took:?}");
    view
}

/// Waits until somebody has taken over from `reign`, and prints how long that took.
#[allow(clippy::print_stderr)]
fn taken_over(fleet: &mut Fleet, what: &str, from: BootInstant, reign: &Reign) -> Reign {
    let view = fleet.next_view("default", from, reign.term);
    eprintln!("{what}: {} leads {:.3?} after it began, term {}", view.instance, took(from, &view), view.term);
    Reign { label: view.instance, term: view.term }
}

/// From an instant to the begin of a view; nothing if it had begun before.
fn took(from: BootInstant, view: &View) -> Duration {
    BootInstant::from_nanos(view.began_ns).saturating_since(from)
}

/// Lets time pass.
fn wait(fleet: &mut Fleet, time: Duration) {
    let until = BootInstant::now().saturating_add(time);
    fleet.until(&format!("{time:?} have passed"), |_| (BootInstant::now() >= until).then_some(()));
}

/// Waits until none of these nodes has a problem with its group. What they have found out about the server when they began
/// is another matter.
fn until_well(fleet: &mut Fleet, labels: &[&str]) {
    fleet.until(&format!("{labels:?} are well"), |fleet| {
        let is_well = |label: &&str| {
            let status = fleet.status(label);
            status["problems"].as_array().unwrap().iter().all(|problem| problem["group"].is_null())
        };
        labels.iter().all(is_well).then_some(())
    });
}
