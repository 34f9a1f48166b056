//! One attempt to get a lock, by the real machine, for simulations.

use std::time::Duration;

use crate::clock::BootInstant;
use crate::election::{KnownBad, MAX_TTL};
use crate::lease::Term;
use crate::lock::machine::{Event, Failure, Machine, Request, RequestNo, Rules};
use crate::store::{LockAnswer, LockCommand, LockKey, LockOwner};

pub use crate::store::memory::LockTable;

/// How an attempt behaves.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// How long the lock lasts in the store.
    pub ttl: Duration,
    /// The part of the ttl that the holder does not use.
    pub guard: Duration,
    /// Time from a failure to the next attempt.
    pub retry: Duration,
    /// How long each call of the store may take.
    pub operation_timeout: Duration,
    /// How long it is waited for; `None`: for as long as it takes.
    pub wait: Option<Duration>,
    /// A rule that is broken on purpose.
    pub known_bad: Option<KnownBad>,
}

/// A number to hand an answer back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedNo(RequestNo);

/// One attempt to get a lock, and the lock, once it was won.
#[derive(Debug)]
pub struct Attempt(Machine);

impl Attempt {
    /// One that has not asked yet.
    #[must_use]
    pub fn new(key: LockKey, owner: LockOwner, manner: Manner, now: BootInstant) -> Self {
        let Manner { ttl, guard, retry, operation_timeout, wait, known_bad } = manner;
        let wait_until = wait.map_or(BootInstant::from_nanos(u64::MAX), |wait| now.saturating_add(wait.min(MAX_TTL)));
        let rules = Rules { ttl, guard, renew: true, wait_until, retry, operation_timeout, once: false, known_bad };
        Self(Machine::new(key, owner, rules, now))
    }

    /// What may be believed: the token, and until when.
    #[must_use]
    pub fn view(&self, now: BootInstant) -> Option<(Term, BootInstant)> {
        self.0.view(now)
    }

    /// Still waits for the lock.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    /// It was not had, is lost, or is being given back.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Nothing is left to do.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    /// When to come back: from the one instant on, and at the other one.
    #[must_use]
    pub fn next(&self) -> Option<(BootInstant, BootInstant)> {
        self.0.next().map(|span| (span.earliest, span.latest))
    }

    /// The command that is due. `floor`: the largest token that its elector has seen.
    pub fn poll(&mut self, now: BootInstant, floor: Term) -> Option<(AskedNo, LockCommand)> {
        let Request { no, command } = self.0.poll(now, floor, &mut Vec::new())?;
        Some((AskedNo(no), command))
    }

    /// The store has answered.
    pub fn answered(&mut self, now: BootInstant, no: AskedNo, answer: LockAnswer) {
        self.0.handle(now, Event::Answered(no.0, answer), &mut Vec::new());
    }

    /// No answer came in time.
    pub fn failed(&mut self, now: BootInstant, no: AskedNo) {
        self.0.handle(now, Event::Failed(no.0, Failure::Passing), &mut Vec::new());
    }

    /// It is worth asking again.
    pub fn announced(&mut self, now: BootInstant) {
        self.0.handle(now, Event::Announced, &mut Vec::new());
    }

    /// Nobody needs it any more.
    pub fn leave(&mut self, now: BootInstant) {
        self.0.handle(now, Event::Leave, &mut Vec::new());
    }
}
