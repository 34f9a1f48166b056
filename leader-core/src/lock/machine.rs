//! The state machine of one attempt to get a lock, and of what it got: a pure function of (state, event, now).
//!
//! No clock, no I/O, no randomness. After each event the caller looks at [`Machine::view`] (what may be believed),
//! [`Machine::poll`] (what to ask of the store) and [`Machine::next`] (when to come back).
//!
//! The rules are those of a lease: a deadline counts from before the request was sent, and never moves back; a failed renewal
//! is tried again until then; each attempt has at most one request in flight. And one more: whatever the store may hold of an
//! attempt that was given up is released, also if nobody knows whether it was won.

mod steps;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::clock::BootInstant;
use crate::lease::Term;
use crate::store::{Busy, LockAnswer, LockCommand};

pub(crate) use self::steps::Machine;

/// How one lock behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rules {
    /// How long it lasts in the store.
    pub(crate) ttl: Duration,
    /// The part of the ttl that the holder does not use.
    pub(crate) guard: Duration,
    /// Whether it is renewed.
    pub(crate) renew: bool,
    /// Until when it is waited for.
    pub(crate) wait_until: BootInstant,
    /// Time from a failure to the next attempt.
    pub(crate) retry: Duration,
    /// How long each call of the store may take.
    pub(crate) operation_timeout: Duration,
    /// Not needed any more once the key was completed.
    pub(crate) once: bool,
    /// A rule that is broken on purpose.
    #[cfg(feature = "testing")]
    pub(crate) known_bad: Option<crate::election::KnownBad>,
}

/// Identifies a request of one machine; an answer is handed back with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestNo(u64);

/// A command to send, with the number to hand back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) no: RequestNo,
    pub(crate) command: LockCommand,
}

/// What happens to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The store answered a request.
    Answered(RequestNo, LockAnswer),
    /// A request has no usable answer.
    Failed(RequestNo, Failure),
    /// The store announced that it is worth asking again.
    Announced,
    /// Nobody needs the lock any more.
    Leave,
    /// The work is done: note that, for so long or for ever, and give the lock back.
    Complete(Option<Duration>),
    /// From now on the lock is held until its deadline, and no longer.
    StopRenewing,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// May pass by itself; whether the request was executed is unknown.
    Passing,
    /// Will not pass without somebody's doing.
    Permanent,
    /// It was not sent.
    Unsent,
}

/// What a machine has to tell; the view was changed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The lock is held.
    Won(Term),
    /// It was not won, and the time for waiting is over.
    Busy(Busy),
    /// The key was completed by another one.
    Done,
    /// The attempt is over, because of the failure that was handed in last.
    Failed,
    /// The attempt is over: it was won, but the answer took longer than the lock lasts.
    Late,
    /// The lock is held no more.
    Lost(Term, Loss),
    /// Noted that the work is done.
    Completed,
    /// The lock was lost before that could be noted.
    NotCompleted,
    /// The lock has ended, and no answer has said by then that it was noted, because of the failure that was handed in last.
    Unconfirmed(Term),
    /// Given back: whether the store still knew of it. Told once to each who leaves.
    Released(bool),
    /// It could not be given back, because of the failure that was handed in last; it is tried again. Told once.
    NotReleased,
}

/// Why a lock is held no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The deadline passed before a renewal was confirmed.
    Expired,
    /// The store refused a renewal.
    Refused,
}

/// When to come back: any time from `earliest` on, and at `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) earliest: BootInstant,
    pub(crate) latest: BootInstant,
}

impl Span {
    fn at(at: BootInstant) -> Self {
        Self { earliest: at, latest: at }
    }

    fn before(self, end: BootInstant) -> Self {
        Self { earliest: self.earliest.min(end), latest: self.latest.min(end) }
    }
}
