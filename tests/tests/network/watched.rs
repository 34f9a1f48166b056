//! A primary, two replicas, three sentinels and three nodes, which reach each other by a network.

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use leader_tests::net::Network;
use leader_tests::process::{Fleet, Options, Reign};
use leader_tests::redis::{Promoted, Watched};

use crate::{PROGRAM, ROOM};

/// Each at the party of one sentinel.
pub(crate) const LABELS: [&str; 3] = ["a", "b", "c"];
/// The party of the first sentinel, with `a`; the servers' are before it.
pub(crate) const SENTINELS: usize = 3;

pub(crate) const RETRY: Duration = Duration::from_millis(500);

pub(crate) struct Scene {
    // First: nodes go before what they need.
    pub(crate) fleet: Fleet,
    pub(crate) watched: Watched,
    pub(crate) network: Network,
    pub(crate) ttl: Duration,
}

impl Scene {
    /// Sentinels with these lines, and nodes that renew often; `a` leads.
    pub(crate) fn new(ttl: Duration, lines: &[&str], change: impl Fn(&mut Options)) -> Option<(Self, Reign)> {
        let network = Network::of(2 * SENTINELS)?;
        let watched = Watched::start_inside(&network, &[], lines)?;
        let mut fleet = Fleet::on_store(PROGRAM, &watched.url());
        for (number, label) in LABELS.iter().enumerate() {
            let mut plan = fleet.plan(label, ttl);
            plan.entry = network.party(SENTINELS + number).entry().to_vec();
            plan.options.trust_fresh_store = true;
            plan.options.heartbeat = Some(ttl / 10);
            plan.options.retry = Some(RETRY);
            plan.options.operation_timeout = Some(ttl / 4);
            // It believes for as long as it may, whatever it hears.
            plan.options.hold_until_deadline = true;
            change(&mut plan.options);
            fleet.start(&plan);
        }
        let reign = fleet.leader("default", 0);
        assert_eq!(reign.label, "a");
        Some((Self { fleet, watched, network, ttl }, reign))
    }

    /// Waits until somebody leads under a later term than `reign`, after another server was named the primary; prints how long
    /// that took, and asserts that it was not long.
    #[allow(clippy::print_stderr)]
    pub(crate) fn led_again(&mut self, what: &str, fault: BootInstant, new: &Promoted, reign: &Reign) -> View {
        let view = self.fleet.next_view("default", fault, reign.term);
        let after = BootInstant::from_nanos(view.began_ns).saturating_since(new.named);
        let bound = self.ttl + 2 * RETRY;
        eprintln!(
            "{what}: the new primary named after {:.3?}, {} leads {after:.3?} after that ({bound:?} promised), term {}",
            new.named.saturating_since(fault),
            view.instance,
            view.term
        );
        assert!(after <= bound + ROOM, "{after:?}");
        view
    }

    /// Waits until both connections of each of these nodes lead to this server.
    pub(crate) fn until_listening(&mut self, nodes: usize, server: usize) {
        let redis = &self.watched.servers[server];
        self.fleet.until("they listen to the new primary", |_| {
            let (_, listening): (String, usize) = redis.command(&["PUBSUB", "NUMSUB", "leader:default"]);
            (listening == nodes).then_some(())
        });
    }
}
