//! The store's servers in a world: the ways to them, what befalls them, and what comes of that.

use std::time::Duration;

use leader_core::store::{Answer, LockAnswer, TickAnswer};
use leader_core::testing::lock::AskedNo;

use super::election::Voter;
use super::host::Asker;
use super::ledger::{Ledger, Memory, Write};
use super::locks::Locker;
use super::settings::{Settings, Variant};
use super::world::{Happening, World};
use crate::sim::clock::Clock;
use crate::sim::cluster::{Cluster, Loss, State, Turn, Upset};
use crate::sim::rng::Rng;

/// All servers of a world.
pub(super) type Servers = Cluster<Ledger, Waiting>;
/// What happens to them later.
pub(super) type ServersTurn = Turn<Write, Memory>;

/// An answer that waits for replicas.
#[derive(Debug)]
pub(super) enum Waiting {
    Lease(Voter, Answer),
    /// A tick may be run, goes on, or is left to others. If a server that another one has taken the place of may say so by
    /// itself, and its leader goes to and fro between the two, the tick is run again by the next leader.
    Tick(Asker, TickAnswer),
    /// A lock is given, or extended.
    Lock(Locker, AskedNo, LockAnswer),
}

/// A connection to a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) host: usize,
    pub(super) node: usize,
    connection: u32,
}

/// What becomes of a message at the store.
pub(super) enum Arrival {
    Now,
    Waits(u64, Link),
    /// The server is none that takes writes.
    Refused,
    Lost,
}

/// The servers of a world: the first with this clock, the clocks of the others a little different.
pub(super) fn servers(settings: &Settings, rng: &mut Rng, clock: Clock, jobs: usize, clients: usize) -> Servers {
    let replicas = if settings.replicas > 0 { 1 + rng.index(settings.replicas) } else { 0 };
    let mut all = vec![(Ledger::new(settings, jobs), clock)];
    for _ in 0..replicas {
        let mut clock = clock;
        clock.set(rng.between(-200_000_000, 200_000_000));
        all.push((Ledger::new(settings, jobs), clock));
    }
    let wait = if settings.is(Variant::NoWait) { 0 } else { replicas };
    Cluster::new(all, clients, wait, settings.ttl, false)
}

impl World<'_> {
    /// The way from a host to the server that it asks, and how long that takes; none if it leads nowhere.
    pub(super) fn way_out(&mut self, host: usize) -> Option<(Link, u64)> {
        let node = self.cluster.targets[host];
        if self.cluster.is_cut(host, node) {
            return None;
        }
        let link = Link { host, node, connection: self.cluster.nodes[node].connection };
        self.way(self.hosts[host].cut.0).map(|way| (link, way))
    }

    /// How long the way back takes.
    pub(super) fn way_back(&mut self, host: usize, node: usize) -> Option<u64> {
        if self.cluster.is_cut(host, node) { None } else { self.way(self.hosts[host].cut.1) }
    }

    pub(super) fn arrives(&mut self, link: Link) -> Arrival {
        let to = &self.cluster.nodes[link.node];
        // What was under way dies with the connection, but for a little that something in between still holds.
        if link.connection != to.connection && !self.rng.chance(0.2) || self.cluster.is_cut(link.host, link.node) {
            return Arrival::Lost;
        }
        match to.state {
            State::Up if to.is_primary => Arrival::Now,
            State::Up => {
                self.cluster.looks_around(self.now, &mut self.rng, link.host);
                Arrival::Refused
            }
            State::Down => Arrival::Lost,
            State::StandsStill(until) => {
                let link = Link { connection: to.connection, ..link };
                Arrival::Waits(until + self.rng.below(Duration::from_millis(20)), link)
            }
        }
    }

    /// Microseconds of a server's clock.
    pub(super) fn us_of(&self, node: usize) -> u64 {
        self.cluster.nodes[node].clock.nanos(self.now) / 1000
    }

    pub(super) fn upset(&mut self, upset: Upset) -> bool {
        self.cluster.strike(self.now, &mut self.rng, upset)
    }

    pub(super) fn cluster_turns(&mut self, turn: ServersTurn) {
        self.cluster.turn(self.now, &mut self.rng, turn);
    }

    /// Takes what the servers have planned and said.
    pub(super) fn heed_cluster(&mut self) {
        for (node, waiting, enough) in std::mem::take(&mut self.cluster.confirmed) {
            match waiting {
                Waiting::Lease(from, answer) => self.lease_answers(from, node, enough.then_some(answer)),
                Waiting::Tick(from, answer) => self.tick_answers(from, node, enough.then_some(answer)),
                Waiting::Lock(from, no, answer) => self.lock_answers(from, no, node, enough.then_some(answer)),
            }
        }
        for (at, turn) in self.cluster.planned.drain(..) {
            self.agenda.add(at, Happening::Cluster(turn));
        }
        for line in std::mem::take(&mut self.cluster.told) {
            self.say_store(|| format!("servers: {line}"));
        }
        for loss in std::mem::take(&mut self.cluster.losses) {
            self.checker.doubts.push(self.now);
            self.checker.memory_was_lost(loss);
        }
    }

    /// What the primary holds was lost, or replaced: so it is to its replicas.
    pub(super) fn restart(&mut self, how: &str) {
        self.say_store(|| how.to_owned());
        self.cluster.primary_restarts(self.now, &mut self.rng);
        self.checker.doubts.push(self.now);
        let node = self.cluster.primary;
        self.cluster.nodes[node].state = State::Down;
        let later = self.rng.below(self.settings.ttl / 2);
        self.agenda.add(self.now + later, Happening::StoreBack(node));
    }

    pub(super) fn memory_was_lost(&mut self, since: u64) {
        self.checker.doubts.push(self.now);
        self.checker.memory_was_lost(Loss { since, until: self.now, of: None });
    }

    /// A command of somebody else has changed the primary.
    pub(super) fn written(&mut self, write: impl Fn(&Ledger) -> Write) {
        let node = self.cluster.primary;
        self.cluster.written(self.now, node, &mut self.rng, write);
    }
}
