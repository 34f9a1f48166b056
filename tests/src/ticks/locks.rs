//! The locks of a process, by the real machine: each of its seats asks for its lock again and again, holds it for a while, and
//! gives it back.

use std::time::Duration;

use leader_core::store::{LockAnswer, LockCommand, LockKey, LockOp, LockOwner};
use leader_core::testing::election::KnownBad;
use leader_core::testing::lock::{AskedNo, Attempt, Manner};
use leader_core::{BootInstant, Term};

use super::lock_judge::Change;
use super::locked::{KEYS, LONGEST, guard};
use super::settings::Variant;
use super::topology::{Arrival, Link, Waiting};
use super::world::{Happening, World};

/// The locks of one process.
#[derive(Debug, Default)]
pub(super) struct Locks {
    seats: Vec<Seat>,
    /// The largest token that it has seen.
    floor: Term,
}

#[derive(Debug)]
struct Seat {
    key: usize,
    nonce: u128,
    attempt: Option<Attempt>,
    /// As long as it takes.
    patient: bool,
    since: u64,
    planned: Option<(BootInstant, BootInstant)>,
    wake: u32,
    was_held: bool,
}

/// One seat of one process, at one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Locker {
    pub(super) host: usize,
    pub(super) start: u32,
    seat: usize,
    nonce: u128,
}

/// What happens to a seat.
#[derive(Debug)]
pub(super) enum LockEvent {
    /// The next attempt begins.
    Begins(Locker),
    Wakes(Locker, u32),
    /// An answer, or none in time, or that the store has failed.
    Answered(Locker, AskedNo, Option<LockAnswer>),
    Told(Locker),
    /// The work under it is done.
    Done(Locker),
}

impl LockEvent {
    pub(super) fn locker(&self) -> &Locker {
        let (Self::Begins(of) | Self::Wakes(of, _) | Self::Answered(of, ..) | Self::Told(of) | Self::Done(of)) = self;
        of
    }
}

impl World<'_> {
    /// A process has started.
    pub(super) fn begin_locks(&mut self, h: usize) {
        let start = self.hosts[h].start;
        let keys = KEYS.iter().enumerate().flat_map(|(key, (_, seats))| std::iter::repeat_n(key, *seats));
        let seat = |key| Seat {
            key,
            nonce: 0,
            attempt: None,
            patient: false,
            since: 0,
            planned: None,
            wake: 0,
            was_held: false,
        };
        let seats: Vec<_> = keys.map(seat).collect();
        for seat in 0..seats.len() {
            let at = self.now + self.rng.below(self.settings.ttl * LONGEST.2);
            self.agenda.add(at, Happening::Lock(LockEvent::Begins(Locker { host: h, start, seat, nonce: 0 })));
        }
        if let Some(process) = &mut self.hosts[h].process {
            process.locks.seats = seats;
        }
    }

    pub(super) fn lock_event(&mut self, event: LockEvent) {
        let of = *event.locker();
        let host = &mut self.hosts[of.host];
        let now = host.clock.read(self.now);
        let Some(process) = &mut host.process else { return };
        let seat = &mut process.locks.seats[of.seat];
        if let LockEvent::Begins(_) = event {
            if !process.closed {
                self.lock_begins(of);
            }
            return;
        }
        let Some(attempt) = seat.attempt.as_mut().filter(|_| seat.nonce == of.nonce) else { return };
        match event {
            LockEvent::Begins(_) => {}
            LockEvent::Wakes(_, wake) if wake == seat.wake => seat.planned = None,
            LockEvent::Wakes(..) => return,
            LockEvent::Answered(_, no, Some(answer)) => {
                let token = match &answer {
                    LockAnswer::Won { token } => Some(*token),
                    LockAnswer::Busy(busy) => busy.token,
                    _ => None,
                };
                attempt.answered(now, no, answer);
                process.locks.floor = process.locks.floor.max(token.unwrap_or_default());
            }
            LockEvent::Answered(_, no, None) => attempt.failed(now, no),
            LockEvent::Told(_) => attempt.announced(now),
            LockEvent::Done(_) => attempt.leave(now),
        }
        self.lock_goes_on(of);
    }

    fn lock_begins(&mut self, of: Locker) {
        let (settings, clock) = (self.settings, self.hosts[of.host].clock);
        let nonce = u128::from(self.rng.bits()) << 64 | u128::from(self.rng.bits());
        let patient = self.rng.chance(0.5);
        let wait = (!patient).then(|| Duration::from_nanos(self.rng.below(settings.ttl * LONGEST.0)));
        let known_bad = settings.is(Variant::LockNoDeadline).then_some(KnownBad::NoDeadline);
        let (ttl, guard, retry) = (settings.ttl, guard(settings.ttl, settings.drift_ppm), settings.ttl / 10);
        let operation_timeout = settings.operation_timeout();
        let manner = Manner { ttl, guard, retry, operation_timeout, wait, known_bad };
        let Some(process) = &mut self.hosts[of.host].process else { return };
        let owner = LockOwner { candidate: process.candidate.clone(), nonce };
        let seat = &mut process.locks.seats[of.seat];
        let key = LockKey::new(KEYS[seat.key].0).expect("a valid key");
        seat.attempt = Some(Attempt::new(key, owner, manner, clock.read(self.now)));
        (seat.nonce, seat.patient, seat.since, seat.planned, seat.was_held) = (nonce, patient, self.now, None, false);
        self.lock_goes_on(Locker { nonce, ..of });
    }

    /// Does what a driver does after each event.
    fn lock_goes_on(&mut self, of: Locker) {
        let host = &mut self.hosts[of.host];
        let clock = host.clock;
        let now = clock.read(self.now);
        let Some(process) = &mut host.process else { return };
        let floor = process.locks.floor;
        let seat = &mut process.locks.seats[of.seat];
        let Some(attempt) = &mut seat.attempt else { return };
        let mut request = attempt.poll(now, floor);
        if seat.was_held && attempt.is_over() && request.is_none() {
            // Lost: the work is dropped, and gives it back.
            attempt.leave(now);
            request = attempt.poll(now, floor);
        }
        let view = attempt.view(now);
        let begins = view.is_some() && !seat.was_held;
        seat.was_held |= begins;
        let (key, gone, next) = (seat.key, attempt.is_gone(), attempt.next());
        if gone {
            seat.attempt = None;
        } else if seat.planned != next {
            seat.planned = next;
            seat.wake += 1;
            if let Some((earliest, latest)) = next {
                let within = self.rng.below(latest.saturating_since(earliest));
                let at = clock.when(earliest.saturating_add(Duration::from_nanos(within))).max(self.now);
                self.agenda.add(at, Happening::Lock(LockEvent::Wakes(of, seat.wake)));
            }
        }
        let believed = view.map(|(token, until)| (token, clock.when(until)));
        let wrong = self.lock_judge.view(self.now, (key, of.host, of.nonce), believed, &mut self.report);
        if let Some(wrong) = wrong {
            self.wrong(format!("lock {}: {wrong}", KEYS[key].0));
        }
        if begins {
            self.report.locks += 1;
            self.say(of.host, || format!("holds {}: {view:?}", KEYS[key].0));
            let at = self.now + self.rng.below(self.settings.ttl * LONGEST.1);
            self.agenda.add(at, Happening::Lock(LockEvent::Done(of)));
        }
        if gone {
            let at = self.now + self.rng.below(self.settings.ttl * LONGEST.2);
            self.agenda.add(at, Happening::Lock(LockEvent::Begins(of)));
        }
        if let Some((no, command)) = request {
            let patience = clock.read(self.now).saturating_add(self.settings.operation_timeout());
            self.agenda.add(clock.when(patience), Happening::Lock(LockEvent::Answered(of, no, None)));
            self.say(of.host, || format!("{} asks {:?}", KEYS[key].0, command.op));
            if let Some((to, way)) = self.way_out(of.host) {
                let from = Locker { ..of };
                self.agenda.add(self.now + way, Happening::LockRequest { from, no, to, key, command });
            }
        }
    }

    pub(super) fn lock_at_store(&mut self, from: Locker, no: AskedNo, to: Link, key: usize, command: LockCommand) {
        match self.arrives(to) {
            Arrival::Lost => return,
            Arrival::Waits(at, to) => {
                self.agenda.add(at, Happening::LockRequest { from, no, to, key, command });
                return;
            }
            Arrival::Refused => {
                self.lock_answers(from, no, to.node, None);
                return;
            }
            Arrival::Now => {}
        }
        let node = to.node;
        let clock = self.cluster.nodes[node].clock;
        let nanos = clock.nanos(self.now);
        let change = self.lock_judge.next_change();
        let by_value = self.settings.is(Variant::LockByValue);
        let locked = &mut self.cluster.nodes[node].server.locks[key];
        let did = locked.execute(nanos, &command, change, by_value);
        self.report.commands += 1;
        if matches!(did.answer, LockAnswer::Won { .. } | LockAnswer::Renewed) {
            let end = clock.when(BootInstant::from_nanos(nanos).saturating_add(command.ttl));
            let (nonce, steps) = (command.owner.nonce, self.checker.steps.len());
            let change = Change { no: change, nonce, node, end, steps, now: self.now, wall: nanos / 1000 };
            let token = if let LockAnswer::Won { token } = did.answer { Some(token.get()) } else { None };
            let peak = self.store_peak();
            let locked = &self.cluster.nodes[node].server.locks[key];
            let wrong = self.lock_judge.changed(key, change, token, peak, locked, &mut self.report);
            if let Some(wrong) = wrong {
                self.wrong(format!("lock {}: {wrong}", KEYS[key].0));
            }
        }
        if matches!(command.op, LockOp::Release { .. }) {
            self.lock_judge.given_back(key, command.owner.nonce);
        }
        self.cluster.written(self.now, node, &mut self.rng, |ledger| ledger.lock_write(key));
        self.say_store(|| format!("{node}: {} {:?} of {:?}: {:?}", command.key, command.op, command.owner, did.answer));
        for owner in did.told {
            self.tell_locker(node, &owner);
        }
        if self.cluster.waits() && matches!(did.answer, LockAnswer::Won { .. } | LockAnswer::Renewed) {
            let patience = self.settings.operation_timeout().as_nanos() as u64;
            self.cluster.hold(self.now, node, Waiting::Lock(from, no, did.answer), patience);
        } else {
            self.lock_answers(from, no, node, Some(did.answer));
        }
    }

    /// Sends an answer back; none: it has failed.
    pub(super) fn lock_answers(&mut self, from: Locker, no: AskedNo, node: usize, answer: Option<LockAnswer>) {
        if let Some(way) = self.way_back(from.host, node) {
            self.agenda.add(self.now + way, Happening::Lock(LockEvent::Answered(from, no, answer)));
        }
    }

    /// It is announced to an owner that it is worth asking again.
    fn tell_locker(&mut self, node: usize, owner: &LockOwner) {
        let of = |(h, host): (usize, &super::host::Host)| {
            let process = host.process.as_ref()?;
            let seat = process.locks.seats.iter().position(|seat| seat.nonce == owner.nonce)?;
            Some(Locker { host: h, start: host.start, seat, nonce: owner.nonce })
        };
        let Some(told) = self.hosts.iter().enumerate().find_map(of) else { return };
        if self.cluster.targets[told.host] == node
            && let Some(way) = self.way_back(told.host, node)
        {
            self.agenda.add(self.now + way, Happening::Lock(LockEvent::Told(told)));
        }
    }

    /// A process that ends in order gives its locks back.
    pub(super) fn leave_locks(&mut self, h: usize) {
        let host = &self.hosts[h];
        let (start, Some(process)) = (host.start, &host.process) else { return };
        let seats = process.locks.seats.iter().enumerate();
        let left: Vec<_> = seats.map(|(seat, of)| Locker { host: h, start, seat, nonce: of.nonce }).collect();
        for of in left {
            self.lock_event(LockEvent::Done(of));
        }
    }

    /// A process has ended: it believes in nothing.
    pub(super) fn locks_end_with(&mut self, h: usize) {
        self.lock_judge.ends_with(h);
    }

    /// Whoever has waited since before the last fault waits for ever.
    pub(super) fn judge_locks(&mut self) {
        let since = self.quiet_from + (self.end - self.quiet_from) / 4;
        let seats = self.hosts.iter().flat_map(|host| &host.process).flat_map(|process| &process.locks.seats);
        let waits = |seat: &&Seat| seat.patient && seat.attempt.as_ref().is_some_and(Attempt::is_waiting);
        let waiting: Vec<u64> = seats.filter(waits).map(|seat| seat.since).filter(|at| *at < since).collect();
        self.report.waiting += waiting.len() as u64;
        if !waiting.is_empty() {
            self.wrong(format!("waited for a lock since {waiting:?}"));
        }
    }
}
