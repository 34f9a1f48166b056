//! A primary, two replicas and three sentinels, all real, and what must hold whatever happens to them: no two lead a group at
//! once, terms only rise, and after each fault somebody leads again, without anything having been restarted for it.
//!
//! How long it takes until somebody leads again is printed, and asserted with room for a busy machine.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod contract;
mod errors;
mod failover;
mod rights;
mod sentinels;

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use leader_tests::process::{Fleet, Reign, Spawn, again_over_the_other_client};
use leader_tests::redis::{Promoted, Watched};

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");
const LABELS: [&str; 3] = ["a", "b", "c"];

const TTL: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(500);
/// So that there is always a renewal under way, or about to be.
const HEARTBEAT: Duration = Duration::from_millis(200);

/// Within which somebody leads after a sentinel has named a new primary: a ttl and two tries.
const BOUND: Duration = Duration::from_secs(3);
/// What a busy machine may add to that.
const ROOM: Duration = Duration::from_secs(6);

#[test]
fn the_same_holds_over_the_other_client() {
    again_over_the_other_client(&[
        "failover::somebody_leads_after_the_primary_was_killed_and_it_comes_back_as_a_replica",
        "failover::somebody_leads_after_the_primary_was_stopped_and_when_it_goes_on_nobody_else_does",
    ]);
}

/// The servers, and the nodes on them.
struct Scene {
    // First: nodes go before what they need.
    fleet: Fleet,
    watched: Watched,
}

impl Scene {
    /// Three nodes that renew all the time, and the first leader.
    fn new() -> Option<(Self, Reign)> {
        let watched = Watched::start(&[], &[], None)?;
        let mut scene = Self { fleet: Fleet::on_store(PROGRAM, &watched.url()), watched };
        for label in LABELS {
            scene.fleet.start(&scene.plan(label));
        }
        let reign = scene.fleet.leader("default", 0);
        Some((scene, reign))
    }

    fn plan(&self, label: &str) -> Spawn {
        let mut plan = self.fleet.plan(label, TTL);
        plan.options.trust_fresh_store = true;
        plan.options.heartbeat = Some(HEARTBEAT);
        plan.options.retry = Some(RETRY);
        plan.options.operation_timeout = Some(TTL / 4);
        plan
    }

    /// Waits until somebody leads under a later term than `reign`, on this primary, prints what it
    /// took, and asserts that it was not long.
    #[allow(clippy::print_stderr)]
    fn led_again(&mut self, what: &str, fault: BootInstant, new: &Promoted, reign: &Reign) -> View {
        let view = self.fleet.next_view("default", fault, reign.term);
        let after = |instant: BootInstant| BootInstant::from_nanos(view.began_ns).saturating_since(instant);
        eprintln!(
            "{what}: the new primary after {:.3} s, named after {:.3} s, {} leads {:.3} s after that, under term {}",
            new.took_writes.saturating_since(fault).as_secs_f64(),
            new.named.saturating_since(fault).as_secs_f64(),
            view.instance,
            after(new.named).as_secs_f64(),
            view.term
        );
        assert!(after(new.named) <= BOUND + ROOM, "{:?} after the new primary was named", after(new.named));
        view
    }

    /// Waits until somebody leads when all that may have been believed when the new primary was named has ended, and prints how
    /// long nobody led.
    #[allow(clippy::print_stderr)]
    fn leads_on(&mut self, what: &str, fault: BootInstant, new: &Promoted) -> View {
        let view = self.leads_at(what, new.named.saturating_add(TTL));
        let leaderless = self.fleet.read_logs().leaderless_ns("default", fault.as_nanos(), view.ended_ns);
        let leaderless = Duration::from_nanos(leaderless);
        eprintln!(
            "{what}: the new primary after {:.3} s, named after {:.3} s, without a leader for {:.3} s, then {} under term {}",
            new.took_writes.saturating_since(fault).as_secs_f64(),
            new.named.saturating_since(fault).as_secs_f64(),
            leaderless.as_secs_f64(),
            view.instance,
            view.term
        );
        assert!(leaderless <= BOUND + ROOM, "without a leader for {leaderless:?}");
        view
    }

    /// Waits until somebody leads at this instant or later.
    fn leads_at(&mut self, what: &str, instant: BootInstant) -> View {
        self.fleet.until(&format!("somebody leads after {what}"), |fleet| {
            fleet.read_logs().newest_view("default").filter(|view| view.ended_ns >= instant.as_nanos()).cloned()
        })
    }

    /// Waits until all nodes have found this server, and somebody leads there. Who.
    fn leads_by(&mut self, server: usize) -> Reign {
        self.until_all_listen_to(server);
        let view = self.leads_at("all listen to the new primary", BootInstant::now());
        Reign { label: view.instance, term: view.term }
    }

    /// Waits until both connections of each node lead to this server.
    fn until_all_listen_to(&mut self, server: usize) {
        let redis = &self.watched.servers[server];
        self.fleet.until("all listen to the new primary", |_| {
            let listening: (String, usize) = redis.command(&["PUBSUB", "NUMSUB", "leader:default"]);
            (listening.1 == LABELS.len()).then_some(())
        });
    }
}
