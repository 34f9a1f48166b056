//! What a simulated world of jobs is like: everything but the seed.

use std::time::Duration;

use super::faults::{Fault, FaultSet};
use crate::sim::cluster::Upset;

/// A rule broken on purpose: the checker must notice, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// A claim that is asked again has a nonce of its own.
    NoNonce,
    /// A claim is executed however late it comes.
    NoNotAfter,
    /// What was claimed and never begun is not given back.
    NoGiveBack,
    /// A claim without an answer is forgotten, and another one sent while it may be under way.
    TwoClaims,
    /// No slot is kept.
    SlotNotKept,
    /// Nobody looks at slots: a claim does not exclude others, and a run is not cut.
    SlotNotLookedAt,
    /// Ticks are due by the instance's own wall clock.
    OwnClock,
    /// A claim that comes early counts as executed.
    EarlyIsRun,
    /// Every leader vouches for what it knows.
    VouchAlways,
    /// A store that has lost its memory does not notice.
    NeverFloor,
    /// An end and a give-back are sent once.
    DebtsOnce,
    /// A renewal or release of a lock acts for whoever has the instance id.
    LockByValue,
    /// A lock that is held is believed in without a deadline.
    LockNoDeadline,
    /// Nobody waits for replicas, though a primary may be cut off with its leader.
    NoWait,
    /// A lease waits for replicas, and what is claimed under it does not.
    ClaimsDoNotWait,
}

impl Variant {
    /// All, with their names on the command line.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::NoNonce, "no-nonce"),
        (Self::NoNotAfter, "no-not-after"),
        (Self::NoGiveBack, "no-give-back"),
        (Self::TwoClaims, "two-claims"),
        (Self::SlotNotKept, "slot-not-kept"),
        (Self::SlotNotLookedAt, "slot-not-looked-at"),
        (Self::OwnClock, "own-clock"),
        (Self::EarlyIsRun, "early-is-run"),
        (Self::VouchAlways, "vouch-always"),
        (Self::NeverFloor, "never-floor"),
        (Self::DebtsOnce, "debts-once"),
        (Self::LockByValue, "lock-by-value"),
        (Self::LockNoDeadline, "lock-no-deadline"),
        (Self::NoWait, "no-wait"),
        (Self::ClaimsDoNotWait, "claims-do-not-wait"),
    ];

    /// The variant of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(v, _)| *v)
    }
}

/// A simulated world of jobs, but for its seed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many instances there are.
    pub instances: usize,
    /// Up to so many more, by chance.
    pub more_instances: usize,
    /// The store has up to so many replicas, by chance, and one at least; and a lease counts once all of them have it. Or none.
    pub replicas: usize,
    /// Instances also take locks.
    pub locks: bool,
    /// Of every lease and every slot.
    pub ttl: Duration,
    /// How long a process that is shut down waits for its bodies.
    pub grace: Duration,
    /// Each boot clock runs up to so much too fast or too slow.
    pub drift_ppm: u32,
    /// Each wall clock is wrong by up to so much.
    pub skew: Duration,
    /// Which faults happen.
    pub faults: FaultSet,
    /// The mean time from one fault to the next.
    pub fault_gap: Duration,
    /// The share of messages that are lost.
    pub loss: f64,
    /// The share of messages that are held up for up to a ttl.
    pub held_up: f64,
    /// Simulated time of one run.
    pub run: Duration,
    /// No fault in so much of it at the end, and no tick of its second half counts: what a job runs again after a roll-back by
    /// minutes, at least once and one after another, takes long.
    pub quiet: Duration,
    /// A rule broken on purpose.
    pub variant: Option<Variant>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            instances: 3,
            more_instances: 0,
            replicas: 0,
            locks: false,
            ttl: Duration::from_secs(4),
            grace: Duration::from_secs(6),
            drift_ppm: 500,
            skew: Duration::from_secs(60),
            faults: FaultSet::OWN,
            fault_gap: Duration::from_secs(8),
            loss: 0.002,
            held_up: 0.004,
            run: Duration::from_secs(900),
            quiet: Duration::from_secs(240),
            variant: None,
        }
    }
}

impl Settings {
    /// Everything at one time: three to five instances that lead, run jobs and take locks, by a store with one or two replicas,
    /// under all faults but those that void the rules: nobody sets the clocks of the servers.
    #[must_use]
    pub fn everything() -> Self {
        let faults = FaultSet::everything();
        Self { more_instances: 2, replicas: 2, locks: true, faults, ..Self::default() }
    }

    /// These settings with a rule broken, and what it takes to show.
    #[must_use]
    pub fn broken(mut self, variant: Variant) -> Self {
        match variant {
            Variant::NoNotAfter => self.held_up = self.held_up.max(0.1),
            Variant::DebtsOnce => self.loss = self.loss.max(0.02),
            Variant::LockByValue | Variant::LockNoDeadline => self.locks = true,
            Variant::NoWait => self = Self::everything(),
            Variant::ClaimsDoNotWait => {
                let upsets = [Upset::HandOver, Upset::PrimaryReturns, Upset::PrimaryIsolated];
                self = Self::everything();
                self.locks = false;
                let crashes = FaultSet::NONE.with(Fault::Crash);
                self.faults = upsets.into_iter().map(Fault::Servers).fold(crashes, FaultSet::with);
                self.fault_gap = Duration::from_secs(4);
            }
            _ => {}
        }
        self.variant = Some(variant);
        self
    }

    /// How long an instance waits for an answer.
    #[must_use]
    pub fn operation_timeout(&self) -> Duration {
        self.ttl / 5
    }

    /// The part of a ttl that its holder does not use.
    #[must_use]
    pub fn guard(&self) -> Duration {
        (self.ttl * 2 * self.drift_ppm / 1_000_000).max(Duration::from_millis(2))
    }

    /// Nobody sets the servers' clocks: then it is a fault if two lead.
    pub(super) fn keeps_time(&self) -> bool {
        !self.faults.kinds().contains(&Fault::StoreClockStep)
    }

    pub(super) fn is(&self, variant: Variant) -> bool {
        self.variant == Some(variant)
    }
}
