//! The way to the store, and back.

use std::time::Duration;

use leader_core::store::{Answer, Command};

use super::world::{Happening, Sender, StoreState, World, push};

impl World<'_> {
    pub(super) fn send(&mut self, from: Sender, command: Command) {
        let i = from.instance;
        let clock = self.instances[i].clock;
        let patience = clock.read(self.now).saturating_add(self.settings.operation_timeout(i));
        self.agenda.add(clock.when(patience), Happening::Timeout(from));
        let Some(held_up) = self.way(self.instances[i].cut_out) else { return };
        if self.rng.chance(self.settings.duplication) {
            let later = self.now + held_up + 5 * self.latency();
            let command = command.clone();
            self.agenda.add(later, Happening::Request { from, connection: self.connection, command });
        }
        if !self.rng.chance(self.settings.loss) {
            let at = self.now + held_up + self.latency();
            self.agenda.add(at, Happening::Request { from, connection: self.connection, command });
        }
    }

    pub(super) fn at_store(&mut self, from: Sender, connection: u32, command: Command) {
        // What was under way dies with the connection, but for a little that something in between still holds.
        if connection != self.connection && !self.rng.chance(0.2) {
            return;
        }
        match self.store_state {
            StoreState::Up => {}
            StoreState::Down => return,
            StoreState::StandsStill(until) => {
                let at = until + self.rng.below(Duration::from_millis(20));
                self.agenda.add(at, Happening::Request { from, connection: self.connection, command });
                return;
            }
        }
        let micros = self.store_clock.nanos(self.now) / 1000;
        let done = self.store.execute(micros, &command);
        self.report.commands += 1;
        self.report.quarantines += u64::from(matches!(done.answer, Answer::Quarantined { .. }));
        if let Some(trace) = &mut self.trace {
            let what = format!("  store: {:?} of {:?}: {:?}", command.op, command.candidate, done.answer);
            push(trace, self.now, &what);
        }
        if let Some(term) = done.minted {
            self.report.acquisitions += 1;
            if let Some(wrong) = self.checker.minted(term.get()) {
                self.wrong(wrong);
            }
        }
        if done.announced {
            for other in (0..self.instances.len()).filter(|other| *other != from.instance) {
                if !self.instances[other].cut_back && self.rng.chance(0.95) {
                    let at = self.now + self.latency();
                    self.agenda.add(at, Happening::Announced(other));
                }
            }
        }
        let Some(held_up) = self.way(self.instances[from.instance].cut_back) else { return };
        if self.rng.chance(self.settings.duplication) {
            let later = self.now + held_up + 5 * self.latency();
            self.agenda.add(later, Happening::Answer(from, done.answer.clone()));
        }
        if !self.rng.chance(self.settings.loss) {
            let at = self.now + held_up + self.latency();
            self.agenda.add(at, Happening::Answer(from, done.answer));
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
