//! The way to the store, and back.

use std::time::Duration;

use leader_core::store::{Answer, Command};

use super::backend::Backend;
use super::cluster::{Server, State};
use super::topology::Waiting;
use super::world::{Happening, Sender, World, push};

impl World<'_> {
    pub(super) fn send(&mut self, from: Sender, command: Command) {
        let i = from.instance;
        let clock = self.instances[i].clock;
        let patience = clock.read(self.now).saturating_add(self.settings.operation_timeout(i));
        self.agenda.add(clock.when(patience), Happening::Timeout(from));
        let node = self.cluster.targets[i];
        if self.cluster.is_cut(i, node) {
            return;
        }
        let Some(held_up) = self.way(self.instances[i].cut_out) else { return };
        let connection = self.cluster.nodes[node].connection;
        if self.rng.chance(self.settings.duplication) {
            let later = self.now + held_up + 5 * self.latency();
            let command = command.clone();
            self.agenda.add(later, Happening::Request { from, node, connection, command });
        }
        if !self.rng.chance(self.settings.loss) {
            let at = self.now + held_up + self.latency();
            self.agenda.add(at, Happening::Request { from, node, connection, command });
        }
    }

    pub(super) fn at_store(&mut self, from: Sender, node: usize, connection: u32, command: Command) {
        let to = &mut self.cluster.nodes[node];
        // What was under way dies with the connection, but for a little that something in between still holds.
        if connection != to.connection && !self.rng.chance(0.2) || self.cluster.is_cut(from.instance, node) {
            return;
        }
        let to = &mut self.cluster.nodes[node];
        match to.state {
            State::Up => {}
            State::Down => return,
            State::StandsStill(until) => {
                let at = until + self.rng.below(Duration::from_millis(20));
                let connection = to.connection;
                self.agenda.add(at, Happening::Request { from, node, connection, command });
                return;
            }
        }
        if !to.is_primary {
            self.answers(from, node, None);
            return;
        }
        let micros = to.clock.nanos(self.now) / 1000;
        let done = to.server.execute(micros, &command);
        self.cluster.written(self.now, node, &mut self.rng, Backend::memory);
        self.report.commands += 1;
        self.report.quarantines += u64::from(matches!(done.answer, Answer::Quarantined { .. }));
        if let Some(trace) = &mut self.trace {
            let what = format!("  store {node}: {:?} of {:?}: {:?}", command.op, command.candidate, done.answer);
            push(trace, self.now, &what);
        }
        if done.announced {
            for other in (0..self.instances.len()).filter(|other| *other != from.instance) {
                let hears = self.cluster.targets[other] == node && !self.cluster.is_cut(other, node);
                if hears && !self.instances[other].cut_back && self.rng.chance(0.95) {
                    let at = self.now + self.latency();
                    self.agenda.add(at, Happening::Announced(other));
                }
            }
        }
        if self.cluster.waits() && matches!(done.answer, Answer::Won(_) | Answer::Renewed) {
            let patience = self.settings.operation_timeout(from.instance).as_nanos() as u64;
            self.cluster.hold(self.now, node, Waiting { from, answer: done.answer }, patience);
            return;
        }
        self.minted(node, &done.answer);
        self.answers(from, node, Some(done.answer));
    }

    /// A lease is told of.
    pub(super) fn minted(&mut self, node: usize, answer: &Answer) {
        let Answer::Won(won) = answer else { return };
        self.report.acquisitions += 1;
        // One that another one has taken the place of has terms of its own; what is led under is looked at in any case.
        if node == self.cluster.primary
            && let Some(wrong) = self.checker.minted(won.term.get())
        {
            self.wrong(wrong);
        }
    }

    /// Sends an answer back; none: it has failed.
    pub(super) fn answers(&mut self, from: Sender, node: usize, answer: Option<Answer>) {
        if self.cluster.is_cut(from.instance, node) {
            return;
        }
        let Some(held_up) = self.way(self.instances[from.instance].cut_back) else { return };
        let Some(answer) = answer else {
            let at = self.now + held_up + self.latency();
            self.agenda.add(at, Happening::Timeout(from));
            self.cluster.looks_around(at, &mut self.rng, from.instance);
            return;
        };
        if self.rng.chance(self.settings.duplication) {
            let later = self.now + held_up + 5 * self.latency();
            self.agenda.add(later, Happening::Answer(from, answer.clone()));
        }
        if !self.rng.chance(self.settings.loss) {
            let at = self.now + held_up + self.latency();
            self.agenda.add(at, Happening::Answer(from, answer));
        }
    }

    /// How long a message is held up on its way; none if it is lost.
    fn way(&mut self, cut: bool) -> Option<u64> {
        if !cut {
            return Some(0);
        }
        (!self.rng.chance(0.5)).then(|| self.rng.around(self.settings.ttl(0)))
    }

    fn latency(&mut self) -> u64 {
        let usual = 50_000 + self.rng.around(Duration::from_millis(1));
        if self.rng.chance(0.03) { usual + self.rng.around(self.settings.ttl(0) / 3) } else { usual }
    }
}
