//! How the roles of a cluster's nodes change, by accident or on purpose.

use std::time::Duration;

use super::{Cluster, Loss, Partition, Server, State, Stream, Turn, TurnOf};
use crate::sim::rng::Rng;

/// What can befall a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upset {
    /// The primary dies; a replica takes its place, and the dead one comes back as a replica.
    PrimaryDies,
    /// The primary hands over to a replica, as which it goes on without having got anything from it, and soon it is put back.
    Flaps,
    /// Replication to one replica is held up.
    ReplicaLags,
    /// A replica loses what it has, and is given all again.
    ReplicaEmpty,
    /// The primary dies; a replica takes its place, and the dead one comes back as the primary that it was, for some time.
    PrimaryReturns,
    /// The primary is cut off, perhaps with a replica, and with some of its clients; a replica takes its place.
    PrimaryIsolated,
    /// A replica is promoted on purpose, and the old primary hears of it last.
    HandOver,
}

impl Upset {
    /// All, and what they are called.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::PrimaryDies, "primary dies"),
        (Self::Flaps, "primary flaps"),
        (Self::ReplicaLags, "replica lags"),
        (Self::ReplicaEmpty, "replica loses its data"),
        (Self::PrimaryReturns, "primary returns as one"),
        (Self::PrimaryIsolated, "primary isolated"),
        (Self::HandOver, "primary hands over"),
    ];
}

impl<S: Server, R> Cluster<S, R> {
    /// Something befalls the cluster. Whether there was anything to befall.
    pub fn strike(&mut self, now: u64, rng: &mut Rng, upset: Upset) -> bool {
        let old = self.primary;
        let replicas: Vec<_> = (0..self.nodes.len()).filter(|node| self.may_be_promoted(*node)).collect();
        let may_fail_over = !self.promoting && self.partition.is_none() && self.nodes[old].state == State::Up;
        if replicas.is_empty() || !matches!(upset, Upset::ReplicaLags | Upset::ReplicaEmpty) && !may_fail_over {
            return false;
        }
        let heir = replicas[rng.index(replicas.len())];
        self.told.push(format!("{upset:?}: primary {old}, replica {heir}"));
        let ttl = self.ttl;
        match upset {
            Upset::PrimaryDies | Upset::PrimaryReturns => {
                self.dies(old);
                let promoted = now + rng.below(ttl);
                let returns = promoted + 1 + rng.below(ttl * 2);
                let as_primary = upset == Upset::PrimaryReturns;
                self.promoting = true;
                self.planned.push((promoted, Turn::Promoted(heir)));
                self.planned.push((returns, Turn::Returns { node: old, as_primary }));
            }
            Upset::PrimaryIsolated => {
                let mut nodes = vec![false; self.nodes.len()];
                nodes[old] = true;
                // It may take another replica along.
                if let Some(with) = replicas.iter().find(|with| **with != heir).filter(|_| rng.chance(0.4)) {
                    nodes[*with] = true;
                }
                let clients = self.targets.iter().map(|target| *target == old && rng.chance(0.5)).collect();
                self.partition = Some(Partition { nodes, clients });
                for replica in 0..self.nodes.len() {
                    if self.attached[replica].is_some_and(|from| self.are_cut(from, replica)) {
                        self.detach(replica);
                    }
                }
                let promoted = now + rng.below(ttl);
                self.promoting = true;
                self.planned.push((promoted, Turn::Promoted(heir)));
                self.planned.push((promoted + 1 + rng.below(ttl * 3), Turn::Heals));
            }
            Upset::HandOver => {
                self.promoted(now, rng, heir);
                self.planned.push((now + rng.below(ttl), Turn::Demoted(old)));
            }
            Upset::Flaps => {
                self.promoted(now, rng, heir);
                self.demoted(now, rng, old, ttl * 3);
                self.promoting = true;
                self.planned.push((now + 1 + rng.below(ttl * 2), Turn::FlapsBack(old)));
            }
            Upset::ReplicaLags => {
                let until = now + rng.below(ttl * 2);
                let lags = &mut self.nodes[heir].lags_until;
                *lags = until.max(*lags);
            }
            Upset::ReplicaEmpty => {
                self.nodes[heir].server.lose_all();
                self.nodes[heir].as_of = 0;
                self.detach(heir);
                self.planned.push((now + rng.below(ttl / 4), Turn::Attaches(heir)));
            }
        }
        true
    }

    /// The primary starts again, or was given other data: its replicas are given all of it.
    pub fn primary_restarts(&mut self, now: u64, rng: &mut Rng) {
        let primary = self.primary;
        self.drop_clients(primary);
        self.identifies(primary);
        for replica in 0..self.nodes.len() {
            if self.attached[replica] == Some(primary) && replica != primary {
                self.detach(replica);
                self.planned.push((now + rng.below(self.ttl / 2), Turn::Attaches(replica)));
            }
        }
    }

    /// The primary was emptied without a restart: its replicas are given what it has now.
    pub fn primary_flushed(&mut self, now: u64, rng: &mut Rng) {
        let primary = self.primary;
        for replica in 0..self.nodes.len() {
            if self.attached[replica] == Some(primary) && replica != primary {
                let memory = self.nodes[primary].server.memory();
                self.nodes[primary].offset += 1;
                let takes = 50_000 + rng.around(Duration::from_micros(500));
                self.stream(now, (primary, replica), Some(now), Stream::All(memory), takes);
            }
        }
    }

    /// A client was told that it asks the wrong one, or was cut off by it: it looks for the primary.
    pub fn looks_around(&mut self, now: u64, rng: &mut Rng, client: usize) {
        let soon = rng.below(self.ttl / 20);
        self.planned.push((now + soon, Turn::Moves(client)));
    }

    pub(super) fn changes(&mut self, now: u64, rng: &mut Rng, turn: TurnOf<S>) {
        match turn {
            Turn::Attaches(replica) => self.attaches(now, rng, replica),
            Turn::Promoted(node) => {
                self.promoting = false;
                self.promoted(now, rng, node);
            }
            Turn::Returns { node, as_primary } => self.returns(now, rng, node, as_primary),
            Turn::Demoted(node) => {
                if node != self.primary && self.nodes[node].is_primary {
                    self.demoted(now, rng, node, self.ttl / 2);
                }
            }
            Turn::Heals => {
                self.partition = None;
                self.told.push("the network is whole".to_owned());
                for node in 0..self.nodes.len() {
                    let later = now + rng.below(self.ttl);
                    if node == self.primary {
                        continue;
                    }
                    if self.nodes[node].is_primary {
                        self.planned.push((later, Turn::Demoted(node)));
                    } else if self.attached[node] != Some(self.primary) {
                        self.planned.push((later, Turn::Attaches(node)));
                    }
                }
                for client in 0..self.targets.len() {
                    self.planned.push((now + rng.below(self.ttl), Turn::Moves(client)));
                }
            }
            Turn::Moves(client) => self.moves(now, rng, client),
            Turn::FlapsBack(node) => {
                self.promoting = false;
                let other = self.primary;
                if self.may_be_promoted(node) && other != node {
                    self.promoted(now, rng, node);
                    self.demoted(now, rng, other, self.ttl / 2);
                }
            }
            Turn::Arrives(_) | Turn::Acked { .. } | Turn::WaitOver(_) => unreachable!("it is of the stream"),
        }
    }

    /// Up, no primary, and not behind a wall.
    fn may_be_promoted(&self, node: usize) -> bool {
        let candidate = &self.nodes[node];
        !candidate.is_primary
            && candidate.state == State::Up
            && self.partition.as_ref().is_none_or(|partition| !partition.nodes[node])
    }

    fn detach(&mut self, replica: usize) {
        self.attached[replica] = None;
        // What is under way to it is lost.
        self.nodes[replica].link += 1;
    }

    fn identifies(&mut self, node: usize) {
        self.identities += 1;
        self.nodes[node].identity = self.identities;
        self.nodes[node].server.identify(self.identities);
    }

    fn dies(&mut self, node: usize) {
        self.nodes[node].state = State::Down;
        self.drop_clients(node);
        for replica in 0..self.nodes.len() {
            if self.attached[replica] == Some(node) && replica != node {
                self.detach(replica);
            }
        }
    }

    /// What it has got so far is all there is.
    fn promoted(&mut self, now: u64, rng: &mut Rng, heir: usize) {
        let old = std::mem::replace(&mut self.primary, heir);
        self.told.push(format!("{heir} becomes the primary in place of {old}"));
        self.losses.push(Loss { since: self.nodes[heir].as_of.min(now), until: now, of: None });
        self.detach(heir);
        self.nodes[heir].is_primary = true;
        self.nodes[heir].superseded = None;
        if !self.by_run_alone {
            self.identifies(heir);
        }
        self.nodes[old].as_of = now;
        self.nodes[old].superseded = Some(now);
        for node in 0..self.nodes.len() {
            if !self.nodes[node].is_primary && node != heir && !self.are_cut(node, heir) {
                self.planned.push((now + rng.below(self.ttl / 2), Turn::Attaches(node)));
            }
        }
        for client in 0..self.targets.len() {
            self.planned.push((now + rng.below(self.ttl), Turn::Moves(client)));
        }
    }

    /// What only it has is lost: all that was written to it since another one became the primary.
    fn demoted(&mut self, now: u64, rng: &mut Rng, node: usize, attaches_within: Duration) {
        self.told.push(format!("{node} is a replica now"));
        if let Some(since) = self.nodes[node].superseded.take() {
            self.losses.push(Loss { since, until: now, of: Some(node) });
        }
        self.drop_clients(node);
        self.detach(node);
        self.nodes[node].is_primary = false;
        for replica in 0..self.nodes.len() {
            if self.attached[replica] == Some(node) && replica != node {
                self.detach(replica);
                self.planned.push((now + rng.below(attaches_within), Turn::Attaches(replica)));
            }
        }
        self.planned.push((now + rng.below(attaches_within), Turn::Attaches(node)));
        for client in (0..self.targets.len()).filter(|client| self.targets[*client] == node).collect::<Vec<_>>() {
            self.looks_around(now, rng, client);
        }
    }

    /// With its data, or without.
    fn returns(&mut self, now: u64, rng: &mut Rng, node: usize, as_primary: bool) {
        self.nodes[node].state = State::Up;
        if rng.chance(0.5) {
            self.nodes[node].server.lose_all();
            self.nodes[node].as_of = 0;
        }
        self.identifies(node);
        self.told.push(format!("{node} is there again, as primary: {as_primary}"));
        if as_primary && node != self.primary {
            self.planned.push((now + rng.below(self.ttl * 2), Turn::Demoted(node)));
        } else if node != self.primary {
            self.demoted(now, rng, node, self.ttl / 2);
        }
    }

    /// The replica is given everything, and then what is written from now on.
    fn attaches(&mut self, now: u64, rng: &mut Rng, replica: usize) {
        let primary = self.primary;
        if self.nodes[replica].is_primary || self.attached[replica] == Some(primary) {
            return;
        }
        let there = self.nodes[primary].state == State::Up && self.nodes[replica].state == State::Up;
        if !there || self.are_cut(primary, replica) {
            self.planned.push((now + 1 + rng.below(self.ttl / 4), Turn::Attaches(replica)));
            return;
        }
        self.detach(replica);
        self.attached[replica] = Some(primary);
        self.nodes[replica].stream_end = now;
        let memory = self.nodes[primary].server.memory();
        let takes = rng.below(self.ttl / 5);
        self.stream(now, (primary, replica), Some(now), Stream::All(memory), takes);
    }

    /// To the primary, if it can be reached; now and then to another one that takes itself for it, for some time.
    fn moves(&mut self, now: u64, rng: &mut Rng, client: usize) {
        let claims = |node: &usize| self.nodes[*node].is_primary && !self.is_cut(client, *node);
        let wrong = (0..self.nodes.len()).filter(|node| *node != self.primary).find(claims);
        if let Some(wrong) = wrong.filter(|_| rng.chance(0.1)) {
            self.targets[client] = wrong;
        } else if !self.is_cut(client, self.primary) {
            self.targets[client] = self.primary;
            return;
        }
        self.planned.push((now + 1 + rng.below(self.ttl), Turn::Moves(client)));
    }
}
