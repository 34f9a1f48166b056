//! The Redis store over the nodes of a cluster: three primaries, three replicas.
//!
//! The contract is that of one server. What is more: a node that fails takes with it only the groups that it has, and only
//! until its replica is in its place; and a slot that is moved takes no leader from its group. How long things take is
//! printed, and asserted only as far as no busy machine could break it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod contract;
mod fences;
mod moves;
mod outage;
mod rights;
mod tls;

use std::time::Duration;

use leader_core::{BootInstant, Config, FreshStore};
use leader_examples::history::View;
use leader_tests::process::{Fleet, Reign, again_over_the_other_client, config_at};
use leader_tests::redis::RedisCluster;

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");

/// Longer than a busy machine stands still, which would cost a leader its lease.
const TTL: Duration = Duration::from_secs(6);
const HEARTBEAT: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_millis(300);

/// No lease or call ends by itself within a test.
const LONG: Duration = Duration::from_secs(60);

/// On a cluster that is taken for new.
fn config(url: &str) -> Config {
    config_at(url).fresh_store(FreshStore::Trust).ttl(Duration::from_secs(10))
}

#[test]
fn the_same_holds_over_the_other_client() {
    again_over_the_other_client(&[
        "outage::a_node_that_is_killed_takes_only_its_own_groups_with_it_until_its_replica_is_in_its_place",
        "outage::a_node_that_stands_still_is_replaced_and_nobody_leads_by_it_when_it_goes_on",
        "contract::it_keeps_the_contract_of_stores",
    ]);
}

/// A cluster, and two nodes of a fleet on it, which have a group in the slots of each primary.
struct Scene {
    // First: nodes go before what they need.
    fleet: Fleet,
    cluster: RedisCluster,
    groups: [String; 3],
    reigns: [Reign; 3],
}

impl Scene {
    fn new(options: &[(&str, &str)]) -> Option<Self> {
        let cluster = RedisCluster::start(options)?;
        let mut fleet = Fleet::on_store(PROGRAM, &cluster.url());
        let groups = cluster.groups();
        for label in ["a", "b"] {
            let mut plan = fleet.plan(label, TTL);
            plan.options.trust_fresh_store = true;
            plan.options.groups = groups.to_vec();
            plan.options.heartbeat = Some(HEARTBEAT);
            plan.options.retry = Some(RETRY);
            fleet.start(&plan);
        }
        let reigns = groups.each_ref().map(|group| fleet.leader(group, 0));
        Some(Self { fleet, cluster, groups, reigns })
    }

    fn slot(&self, asked: usize, group: usize) -> u16 {
        self.cluster.slot(asked, &format!("leader:{}", self.groups[group]))
    }

    /// Waits until this node has become the primary of the group's slot, as `asked` sees it; when that was.
    fn promoted(&mut self, asked: usize, group: usize, to: usize) -> BootInstant {
        let slot = self.slot(asked, group);
        let Self { fleet, cluster, .. } = self;
        fleet.until("the replica is in the place of its primary", |_| {
            (cluster.owner(asked, slot) == Some(to)).then(BootInstant::now)
        })
    }

    /// The view of the group at or after this instant.
    fn led(&mut self, group: usize, from: BootInstant) -> View {
        let name = &self.groups[group];
        self.fleet.until(&format!("somebody leads {name}"), |fleet| {
            fleet.read_logs().newest_view(name).filter(|view| view.ended_ns >= from.as_nanos()).cloned()
        })
    }

    /// For how long nobody led the group between the two instants.
    fn leaderless(&mut self, group: usize, from: BootInstant, to_ns: u64) -> Duration {
        let name = &self.groups[group];
        Duration::from_nanos(self.fleet.read_logs().leaderless_ns(name, from.as_nanos(), to_ns))
    }

    /// The group has been led under one term from the beginning until `instant`, or later.
    fn keeps(&mut self, group: usize, instant: BootInstant) {
        let (reign, name) = (&self.reigns[group], &self.groups[group]);
        self.fleet.still_leads(reign, name, instant);
    }

    /// Lets some heartbeats pass.
    fn wait(&mut self) {
        let until = BootInstant::now().saturating_add(3 * HEARTBEAT);
        self.fleet.until("some heartbeats have passed", |_| (BootInstant::now() >= until).then_some(()));
    }
}
