//! Bodies: how they begin, and all the ways in which they end.

use std::time::Duration;

use leader_core::store::{RunEnd, RunOutcome};
use leader_cron::testing::Claimed;

use super::host::Entry;
use super::world::{Happening, World};

/// What is cut within so much of going on did nothing since it stood still, in nanoseconds.
const JUST_WOKEN: u64 = 5_000_000;

/// A run: its body is about to begin, or on.
pub(super) struct Body {
    member: usize,
    claimed: Claimed,
    entry: Option<Entry>,
    /// Since it has begun: where the judge has it.
    noted: Option<usize>,
}

impl World<'_> {
    /// A course says that the body may begin: a task is spawned.
    pub(super) fn may_run(&mut self, h: usize, m: usize, claimed: Claimed) {
        let soon = if self.rng.chance(0.02) { Duration::from_millis(600) } else { Duration::from_millis(1) };
        let at = self.now + self.rng.below(soon);
        let host = &mut self.hosts[h];
        let start = host.start;
        let Some(process) = &mut host.process else { return };
        let entry = process.members[m].entry.take();
        process.bodies.push(Body { member: m, claimed, entry, noted: None });
        self.agenda.add(at, Happening::Begins { host: h, start, nonce: claimed.nonce });
    }

    /// The task is polled for the first time.
    pub(super) fn begins(&mut self, h: usize, nonce: u128) {
        let store_us = self.store_peak();
        let host = &mut self.hosts[h];
        let (now, start) = (host.clock.read(self.now), host.start);
        let Some(process) = &mut host.process else { return };
        let Some(body) = process.bodies.iter_mut().find(|body| body.claimed.nonce == nonce) else { return };
        let job = &self.jobs[process.members[body.member].job];
        let led = process.seats[job.group].as_ref().and_then(|seat| seat.led(now));
        let held = body.entry.is_some_and(|entry| led.is_some_and(|(term, _)| term == entry.term));
        if process.closed || !held {
            self.refuse(h, nonce);
            return;
        }
        let (index, tick) = (process.members[body.member].job, body.claimed.tick);
        body.noted = Some(self.checker.began(index, &body.claimed, (h, start), self.now, store_us));
        let (low, high) = job.body;
        // In the end nothing happens any more, so that what was held up can be made up for.
        let kills = job.kills(tick) && self.now < self.quiet_from;
        let length = if kills { 200 } else { self.rng.between(low, high) } as u64 * 1_000_000;
        let end = if kills { Happening::Killed { host: h, start } } else { Happening::Ends { host: h, start, nonce } };
        self.say(h, || format!("{} begins {tick}", self.jobs[index].name));
        self.agenda.add(self.now + length, end);
    }

    fn refuse(&mut self, h: usize, nonce: u128) {
        let Some(body) = self.take(h, nonce) else { return };
        self.report.refused += 1;
        self.say(h, || format!("does not begin {}", body.claimed.tick));
        if let Some(process) = &mut self.hosts[h].process {
            process.members[body.member].course.refused(nonce);
        }
        self.advance(h, body.member);
    }

    pub(super) fn cut(&mut self, h: usize, nonce: u128) {
        let Some(process) = &self.hosts[h].process else { return };
        match process.bodies.iter().find(|body| body.claimed.nonce == nonce).map(|body| body.noted) {
            Some(Some(_)) => self.body_ends(h, nonce, true),
            Some(None) => self.refuse(h, nonce),
            None => {}
        }
    }

    /// Of jobs that ask for it.
    pub(super) fn cancel_what_lost_its_lease(&mut self, h: usize, group: usize) {
        let host = &self.hosts[h];
        let now = host.clock.read(self.now);
        let Some(process) = &host.process else { return };
        let led = process.seats[group].as_ref().and_then(|seat| seat.led(now)).map(|(term, _)| term);
        let lost = |body: &&Body| {
            let job = &self.jobs[process.members[body.member].job];
            job.group == group && job.cancels && body.noted.is_some() && body.entry.map(|entry| entry.term) != led
        };
        let lost: Vec<u128> = process.bodies.iter().filter(lost).map(|body| body.claimed.nonce).collect();
        for nonce in lost {
            self.body_ends(h, nonce, true);
        }
    }

    /// The grace of a shutdown is over.
    pub(super) fn cancel_what_may_be(&mut self, h: usize) {
        let Some(process) = &self.hosts[h].process else { return };
        let cancels = |body: &&Body| self.jobs[process.members[body.member].job].cancels;
        let bodies: Vec<u128> = process.bodies.iter().filter(cancels).map(|body| body.claimed.nonce).collect();
        for nonce in bodies {
            self.cut(h, nonce);
        }
    }

    /// A body ends, by itself or not.
    pub(super) fn body_ends(&mut self, h: usize, nonce: u128, cut: bool) {
        let Some(body) = self.take(h, nonce) else { return };
        let host = &mut self.hosts[h];
        let stood = host.stood.filter(|(_, until)| self.now - until < JUST_WOKEN);
        let ended = stood.map_or(self.now, |(since, _)| since);
        if let Some(noted) = body.noted {
            self.checker.ended(noted, ended, !cut);
        }
        self.report.cut += u64::from(cut);
        let outcome = if cut { RunOutcome::Cancelled } else { RunOutcome::Succeeded };
        let end = RunEnd { outcome, message: String::new(), began_us: 0, took: Duration::ZERO };
        if let Some(process) = &mut host.process {
            process.members[body.member].course.ended(nonce, end, cut);
        }
        self.say(h, || format!("ends {}, cut: {cut}", body.claimed.tick));
        self.advance(h, body.member);
    }

    fn take(&mut self, h: usize, nonce: u128) -> Option<Body> {
        let process = self.hosts[h].process.as_mut()?;
        let place = process.bodies.iter().position(|body| body.claimed.nonce == nonce)?;
        Some(process.bodies.remove(place))
    }
}
