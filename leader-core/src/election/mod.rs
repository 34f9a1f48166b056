//! The state machine of one group, as a candidate sees it: a pure function of (state, event, now).
//!
//! No clock, no I/O, no randomness: the driver, the simulation and the exhaustive model all run this very code. After each
//! event the caller looks at [`Election::view`] (what may be believed), [`Election::poll`] (what to ask of the store) and
//! [`Election::next`] (when to come back).
//!
//! The rules are those of the lease: a deadline counts from before the request was sent; a reply is used only if it
//! belongs to the newest request; a deadline never moves back; a failed renewal demotes at once (or at the deadline, by
//! choice); an own lease is taken back under a new term; a second process with the same id makes the older one give up.

#![cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for simulations, under `testing`"))]

mod machine;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::clock::BootInstant;
use crate::lease::Term;
use crate::store::{Answer, Command, Held};

pub use machine::Election;

/// The longest wait that a store's answer can ask for: the largest ttl. A longer one is a clock that jumped.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(3600);

/// The longest wait after so many failures in a row: `retry` after the first, then twice as long each time, up to a ttl.
pub(crate) fn back_off(failures: u32, retry: Duration, ttl: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    retry.saturating_mul(1 << doublings).min(ttl.max(retry))
}

/// How an election behaves; the same for all groups of an elector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rules {
    /// How long a lease lasts in the store.
    pub ttl: Duration,
    /// The part of the ttl that the leader does not use.
    pub guard: Duration,
    /// Time from one renew to the next.
    pub heartbeat: Duration,
    /// Time from a failure to the next attempt.
    pub retry: Duration,
    /// What a failed renewal means.
    pub renewal_failure: RenewalFailure,
    /// What to do with a lease of an earlier incarnation of the same id.
    pub reclaim: Reclaim,
    /// Never leads; only looks who does.
    pub observe: bool,
    /// A rule broken on purpose, so that a checker can show that it would notice.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub known_bad: Option<KnownBad>,
}

/// What a failed, timed-out or refused renewal means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RenewalFailure {
    /// Demote at once: an unconfirmed lease is treated as no lease.
    #[default]
    DemoteAtOnce,
    /// Lead on until the deadline, which no one else's lease can precede: as safe, and survives a short stall of the store.
    HoldUntilDeadline,
}

/// What an instance with a stable id does with a lease that an earlier incarnation of the same id left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reclaim {
    /// Lead at once, under a new term. Whoever chooses a stable id says that no two live processes have it; if two do,
    /// both may believe to lead until the older one's next renew, once. Where the store cannot see that the older one is
    /// dead, a release soon after such a take-over still leaves the group without a leader until the older lease would have
    /// ended.
    #[default]
    AtOnce,
    /// Take the seat, and believe in it only when the older incarnation's lease would have ended: never two leaders,
    /// also if both live.
    AfterDeadline,
}

/// A rule that is broken on purpose.
#[cfg(feature = "testing")]
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum KnownBad {
    /// The deadline counts from the reply.
    DeadlineFromReply,
    /// A view without a deadline.
    NoDeadline,
    /// The answer to an abandoned request is used. It comes to an election only in the simulation and the model: the driver
    /// drops the call with the request.
    LateReply,
    /// Deadlines by a wall clock. Of the whole elector, by [`Config::known_bad`](crate::Config::known_bad): to the election,
    /// every clock is the same.
    WallClock,
}

/// Identifies a request of one election; an answer is handed back with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestNo(pub u64);

/// A command to send, with the number to hand back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request {
    /// Its number.
    pub no: RequestNo,
    /// What to send.
    pub command: Command,
}

/// What happens to an election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The store answered a request.
    Answered(RequestNo, Answer),
    /// A request failed or timed out; whether it was executed is unknown.
    Failed(RequestNo, Failure),
    /// The store announced that the lease has become free.
    Announced,
    /// The view ran out before an answer that extends it could be told: whoever looked has seen its end.
    Lapsed,
    /// Release, and do not compete for one ttl. Does nothing on a follower.
    StepDown,
    /// Release, and do not compete until [`Event::Resume`].
    StandAside,
    /// Compete again.
    Resume,
    /// Release, and never compete again: the elector ends.
    Withdraw,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// May pass by itself.
    Passing,
    /// Will not pass without somebody's doing.
    Permanent,
}

/// What an election has to tell; the view was changed before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Notice {
    /// This instance leads, under this term.
    Acquired(Term),
    /// This instance leads no more.
    Lost(Term, LossReason),
    /// The lease of this acquisition was given back (`true`), or the store did not confirm it.
    Released(Term, bool),
    /// Another instance leads.
    Following(Held),
    /// An observer found that nobody leads.
    Vacant,
    /// The store makes everybody wait.
    Quarantined(Duration, &'static str),
    /// Another process with the same instance id has taken the lease: this one stays out until restarted.
    Duplicate,
}

/// Why a view ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LossReason {
    /// The deadline passed before a renewal was confirmed: the store was away, or this process stood still.
    Expired,
    /// A renewal failed or timed out.
    RenewalFailed,
    /// The store refused a renewal: the lease had ended, or was taken.
    Refused,
    /// Another process with the same instance id took the lease.
    Duplicate,
    /// On purpose: step-down, drain or shutdown.
    SteppedDown,
}

/// When an election wants [`Election::poll`] to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// Nothing to do until an event comes.
    Idle,
    /// Nothing is to be sent, because an answer is outstanding or the next attempt is later; come back at this instant all the
    /// same, if there is one, because the view ends then.
    Waiting(Option<BootInstant>),
    /// A renew: at `latest`, or with any batch that goes out from `earliest` on.
    Renew {
        /// From when it may share a batch.
        earliest: BootInstant,
        /// When it must go.
        latest: BootInstant,
    },
    /// After an error: at a random instant of this span.
    Retry {
        /// Its begin.
        earliest: BootInstant,
        /// Its end.
        latest: BootInstant,
    },
    /// At this instant; a follower adds a delay that grows with the number of leases its instance holds.
    At(BootInstant),
}

impl Next {
    /// The same, but no later than at the end of a view: whoever leads is told then that it does no longer.
    fn until(self, end: BootInstant) -> Self {
        match self {
            Self::Renew { earliest, latest } => Self::Renew { earliest, latest: latest.min(end) },
            Self::Retry { earliest, latest } => Self::Retry { earliest, latest: latest.min(end) },
            Self::Idle | Self::Waiting(_) | Self::At(_) => self,
        }
    }
}
