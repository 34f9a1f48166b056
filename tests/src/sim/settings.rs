//! What a simulated world is like: everything but the seed.

use std::time::Duration;

use leader_core::testing::election::{KnownBad, Rules};
use leader_core::testing::redis_script::Flaw;
use leader_core::{Reclaim, RenewalFailure};

use super::cluster::Upset;
use super::faults::{Fault, FaultSet};

/// A rule broken on purpose: the checker must notice, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The deadline counts from the reply.
    DeadlineFromReply,
    /// Deadlines are read from a wall clock, which somebody sets now and then.
    WallClock,
    /// Leaders use their whole ttl, though clocks drift.
    NoGuard,
    /// A flag instead of a deadline.
    NoDeadline,
    /// The store renews and releases for whoever has the instance id.
    RenewByValue,
    /// Answers to abandoned requests are used.
    LateReply,
    /// A store that may have lost its memory hands out leases at once.
    NoQuarantine,
    /// A store whose identity changes during a quarantine does not begin it anew.
    OneQuarantine,
    /// The store forgets that an older process with the same id may still believe in its lease.
    ForgetOlder,
    /// The store gives a lease that vanished before its end to somebody else at once.
    NoUntil,
    /// Nobody waits for replicas, though a primary may be cut off with its leader.
    NoWait,
    /// A server is known by its run id alone: after a promotion it is still the same.
    RunIdOnly,
    /// As without a quarantine, where replicas that lag become the primary.
    NoQuarantinePromoted,
}

impl Variant {
    /// All, with their names on the command line.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::DeadlineFromReply, "deadline-from-reply"),
        (Self::WallClock, "wall-clock"),
        (Self::NoGuard, "no-guard"),
        (Self::NoDeadline, "no-deadline"),
        (Self::RenewByValue, "renew-by-value"),
        (Self::LateReply, "late-reply"),
        (Self::NoQuarantine, "no-quarantine"),
        (Self::OneQuarantine, "one-quarantine"),
        (Self::ForgetOlder, "forget-older"),
        (Self::NoUntil, "no-until"),
        (Self::NoWait, "no-wait"),
        (Self::RunIdOnly, "run-id-only"),
        (Self::NoQuarantinePromoted, "no-quarantine-promoted"),
    ];

    /// The variant of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(v, _)| *v)
    }
}

/// What plays the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The model of the Redis store's rules. Fast.
    Model,
    /// The Redis store's own script, in the Lua that Redis embeds.
    Script,
}

/// A simulated world, but for its seed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What plays the store.
    pub store: StoreKind,
    /// How many instances compete or observe.
    pub instances: usize,
    /// How many of them only observe.
    pub observers: usize,
    /// The ttl of the first, second, … instance, round and round.
    pub ttls: Vec<Duration>,
    /// Each clock runs up to so much too fast or too slow.
    pub drift_ppm: u32,
    /// The drift that the guard is set for.
    pub guard_ppm: u32,
    /// What a failed renewal means.
    pub renewal_failure: RenewalFailure,
    /// What a restarted instance does with its own old lease.
    pub reclaim: Reclaim,
    /// The first two instances have one id, and both live.
    pub twins: bool,
    /// How many replicas the store has.
    pub replicas: usize,
    /// A lease that was won or renewed is told of once so many replicas have it.
    pub wait: usize,
    /// Which faults happen.
    pub faults: FaultSet,
    /// The mean time from one fault to the next, in ttls of the first instance.
    pub fault_gap: f64,
    /// The share of messages that are lost.
    pub loss: f64,
    /// The share of messages that arrive twice.
    pub duplication: f64,
    /// Simulated time of one run.
    pub run: Duration,
    /// A rule broken on purpose.
    pub variant: Option<Variant>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: StoreKind::Model,
            instances: 3,
            observers: 0,
            ttls: vec![Duration::from_secs(1)],
            drift_ppm: 500,
            guard_ppm: 500,
            renewal_failure: RenewalFailure::DemoteAtOnce,
            reclaim: Reclaim::AtOnce,
            twins: false,
            replicas: 0,
            wait: 0,
            faults: FaultSet::one_server(),
            fault_gap: 3.0,
            loss: 0.01,
            duplication: 0.005,
            run: Duration::from_secs(180),
            variant: None,
        }
    }
}

impl Settings {
    /// These settings with clocks that drift by up to `ppm`, and a guard that is set for it.
    #[must_use]
    pub fn drifting(self, ppm: u32) -> Self {
        Self { drift_ppm: ppm, guard_ppm: ppm.max(500), ..self }
    }

    /// These settings with so many replicas, of which `wait` must have what is told; and with all that can befall them, if all
    /// of them must, or else all but what makes two primaries at one time.
    #[must_use]
    pub fn replicated(self, replicas: usize, wait: usize) -> Self {
        let all = wait >= replicas;
        let faults = if all { FaultSet::two_primaries() } else { FaultSet::clean_promotions() };
        Self { replicas, wait, faults, ..self }
    }

    /// These settings with a rule broken, and what it takes to show.
    #[must_use]
    pub fn broken(mut self, variant: Variant) -> Self {
        match variant {
            Variant::NoGuard => self.drift_ppm = self.drift_ppm.max(50_000),
            Variant::ForgetOlder => {
                self.twins = true;
                self.reclaim = Reclaim::AfterDeadline;
            }
            Variant::OneQuarantine => {
                self.fault_gap = self.fault_gap.min(0.4);
                let restarts = FaultSet::NONE.with(Fault::RestartKept).with(Fault::Rollback);
                self.faults = restarts.with(Fault::Pause).with(Fault::StoreStall);
            }
            Variant::NoWait => {
                let replicas = self.replicas.max(1);
                self = self.replicated(replicas, replicas);
                self.wait = 0;
            }
            Variant::RunIdOnly => {
                let replicas = self.replicas.max(1);
                self = self.replicated(replicas, 0);
                self.faults = FaultSet::NONE.with(Fault::Servers(Upset::Flaps)).with(Fault::Crash).with(Fault::Pause);
            }
            Variant::NoQuarantinePromoted => {
                let replicas = self.replicas.max(1);
                self = self.replicated(replicas, 0);
                self.faults =
                    FaultSet::NONE.with(Fault::Servers(Upset::PrimaryDies)).with(Fault::Servers(Upset::ReplicaLags));
            }
            _ => {}
        }
        self.variant = Some(variant);
        self
    }

    /// The largest ttl in the fleet.
    #[must_use]
    pub fn longest_ttl(&self) -> Duration {
        self.ttls.iter().max().copied().unwrap_or_default()
    }

    /// The ttl of an instance.
    #[must_use]
    pub fn ttl(&self, instance: usize) -> Duration {
        self.ttls[instance % self.ttls.len()]
    }

    /// The rules that an instance goes by.
    #[must_use]
    pub fn rules(&self, instance: usize) -> Rules {
        let ttl = self.ttl(instance);
        let guard = match self.variant {
            Some(Variant::NoGuard) => Duration::ZERO,
            _ => (ttl * 2 * self.guard_ppm / 1_000_000).max(Duration::from_millis(2)),
        };
        Rules {
            ttl,
            guard,
            heartbeat: ttl / 3,
            retry: ttl / 10,
            renewal_failure: self.renewal_failure,
            reclaim: self.reclaim,
            observe: instance >= self.instances - self.observers,
            known_bad: match self.variant {
                Some(Variant::DeadlineFromReply) => Some(KnownBad::DeadlineFromReply),
                Some(Variant::NoDeadline) => Some(KnownBad::NoDeadline),
                Some(Variant::LateReply) => Some(KnownBad::LateReply),
                _ => None,
            },
        }
    }

    /// How long an instance waits for an answer.
    #[must_use]
    pub fn operation_timeout(&self, instance: usize) -> Duration {
        self.ttl(instance) / 5
    }

    /// What the store does wrong.
    #[must_use]
    pub fn flaw(&self) -> Option<Flaw> {
        match self.variant? {
            Variant::RenewByValue => Some(Flaw::ByValue),
            Variant::NoQuarantine | Variant::NoQuarantinePromoted => Some(Flaw::NoQuarantine),
            Variant::OneQuarantine => Some(Flaw::OneQuarantine),
            Variant::ForgetOlder => Some(Flaw::ForgetOlder),
            Variant::NoUntil => Some(Flaw::NoUntil),
            _ => None,
        }
    }
}
