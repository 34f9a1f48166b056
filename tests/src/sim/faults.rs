//! What can go wrong in a simulated world, and the sets of it that runs draw from.

use super::cluster::Upset;

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// A process dies at once, and starts again later.
    Crash,
    /// A process is shut down in order, and starts again later.
    CleanStop,
    /// A process stands still (SIGSTOP) for up to three ttls.
    Pause,
    /// The driver of a process gets no processor time; its gate goes on.
    DriverStall,
    /// A leader steps down.
    StepDown,
    /// A process stands aside, and resumes soon.
    StandAside,
    /// One direction or both between a process and the store are cut.
    Partition,
    /// Somebody sets the wall clock of a process's host.
    WallClockStep,
    /// The store restarts without its data.
    RestartEmpty,
    /// The store restarts with its data.
    RestartKept,
    /// The store restarts with older data.
    Rollback,
    /// All keys are deleted, without a restart.
    FlushAll,
    /// A replica that lags, or has nothing, becomes the store; its clock differs a little.
    Promotion,
    /// The store stands still, and executes afterwards what had arrived.
    StoreStall,
    /// An operator deletes the lease key.
    LeaseDeleted,
    /// The store's clock is set back. Together with lost memory a term may then repeat, if nobody but a silent leader had
    /// heard of it: so it is in no usual set.
    StoreClockBack,
    /// The primary of several servers dies; a replica that lags takes its place, and the dead one comes back as a replica.
    PrimaryDies,
    /// The primary hands over to a replica, and is put back before it has heard anything of that one.
    Flaps,
    /// Replication to one replica is held up.
    ReplicaLags,
    /// A replica loses what it has.
    ReplicaEmpty,
    /// The primary dies; a replica takes its place, and the dead one comes back as a primary.
    PrimaryReturns,
    /// The primary is cut off with some of its clients; a replica takes its place.
    PrimaryIsolated,
    /// A replica is promoted on purpose; the old primary hears of it last.
    HandOver,
}

impl Fault {
    /// What it is to a cluster.
    #[must_use]
    pub const fn upset(self) -> Option<Upset> {
        Some(match self {
            Self::PrimaryDies => Upset::PrimaryDies,
            Self::Flaps => Upset::Flaps,
            Self::ReplicaLags => Upset::ReplicaLags,
            Self::ReplicaEmpty => Upset::ReplicaEmpty,
            Self::PrimaryReturns => Upset::PrimaryReturns,
            Self::PrimaryIsolated => Upset::PrimaryIsolated,
            Self::HandOver => Upset::HandOver,
            _ => return None,
        })
    }
}

/// All kinds, in the order of their numbers.
pub const FAULTS: [(Fault, &str); 23] = [
    (Fault::Crash, "crash"),
    (Fault::CleanStop, "clean stop"),
    (Fault::Pause, "pause"),
    (Fault::DriverStall, "driver stall"),
    (Fault::StepDown, "step-down"),
    (Fault::StandAside, "stand-aside"),
    (Fault::Partition, "partition"),
    (Fault::WallClockStep, "wall clock step"),
    (Fault::RestartEmpty, "store restarts empty"),
    (Fault::RestartKept, "store restarts with its data"),
    (Fault::Rollback, "store rolls back"),
    (Fault::FlushAll, "FLUSHALL"),
    (Fault::Promotion, "promotion"),
    (Fault::StoreStall, "store stall"),
    (Fault::LeaseDeleted, "lease key deleted"),
    (Fault::StoreClockBack, "store clock set back"),
    (Fault::PrimaryDies, "primary dies"),
    (Fault::Flaps, "primary flaps"),
    (Fault::ReplicaLags, "replica lags"),
    (Fault::ReplicaEmpty, "replica loses its data"),
    (Fault::PrimaryReturns, "primary returns as one"),
    (Fault::PrimaryIsolated, "primary isolated"),
    (Fault::HandOver, "primary hands over"),
];

/// How many kinds there are.
pub const KINDS: usize = FAULTS.len();

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSet(u32);

impl FaultSet {
    /// None.
    pub const NONE: Self = Self(0);

    /// All that befall one server, but those that void the rules: setting its clock.
    #[must_use]
    pub const fn all() -> Self {
        Self((1 << Fault::StoreClockBack as u8) - 1)
    }

    /// All with several servers: there is one primary at a time, as far as anybody can see.
    #[must_use]
    pub const fn clean_promotions() -> Self {
        let more = Self::all().with(Fault::PrimaryDies).with(Fault::Flaps);
        more.with(Fault::ReplicaLags).with(Fault::ReplicaEmpty).without(Fault::Promotion)
    }

    /// All with several servers, also those by which two of them take writes at one time.
    #[must_use]
    pub const fn two_primaries() -> Self {
        let more = Self::clean_promotions().with(Fault::PrimaryReturns);
        more.with(Fault::PrimaryIsolated).with(Fault::HandOver)
    }

    /// This set and `fault`.
    #[must_use]
    pub const fn with(self, fault: Fault) -> Self {
        Self(self.0 | 1 << fault as u8)
    }

    /// This set but `fault`.
    #[must_use]
    pub const fn without(self, fault: Fault) -> Self {
        Self(self.0 & !(1 << fault as u8))
    }

    /// Those in it.
    #[must_use]
    pub fn kinds(self) -> Vec<Fault> {
        FAULTS.iter().map(|(fault, _)| *fault).filter(|fault| self.0 & 1 << *fault as u8 != 0).collect()
    }
}
