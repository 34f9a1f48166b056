//! What can go wrong in a simulated world of jobs.

use crate::sim::cluster::Upset;

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// A process dies at once, and starts again later.
    Crash,
    /// The leader dies 2 s before a tick, 100 ms before it, at it, or 100 ms after it.
    CrashAtTick,
    /// A process is shut down in order, and starts again later.
    CleanStop,
    /// Every process in turn is shut down in order, and comes back in the other version.
    RollingUpdate,
    /// A process stands still (SIGSTOP).
    Pause,
    /// A leader steps down without a look at what is on: a lease that ends out of the blue.
    StepDown,
    /// One direction or both between a process and the store are cut.
    Partition,
    /// The store stands still, and executes afterwards what had arrived.
    StoreStall,
    /// The store restarts with its data.
    RestartKept,
    /// The store restarts without its data.
    RestartEmpty,
    /// The store restarts with older data.
    Rollback,
    /// All keys are deleted, without a restart.
    FlushAll,
    /// A replica that lags becomes the store; its clock differs a little.
    Promotion,
    /// An operator deletes a lease key.
    LeaseDeleted,
    /// The store's clock is set, forward or back.
    StoreClockStep,
    /// An operator pauses a job, and resumes it, or lets the pause run out.
    PauseJob,
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
    (Fault::CrashAtTick, "crash at a tick"),
    (Fault::CleanStop, "clean stop"),
    (Fault::RollingUpdate, "rolling update"),
    (Fault::Pause, "process stands still"),
    (Fault::StepDown, "step-down"),
    (Fault::Partition, "partition"),
    (Fault::StoreStall, "store stall"),
    (Fault::RestartKept, "store restarts with its data"),
    (Fault::RestartEmpty, "store restarts empty"),
    (Fault::Rollback, "store rolls back"),
    (Fault::FlushAll, "FLUSHALL"),
    (Fault::Promotion, "promotion"),
    (Fault::LeaseDeleted, "lease key deleted"),
    (Fault::StoreClockStep, "store clock set"),
    (Fault::PauseJob, "job paused"),
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
    /// All that befall one server.
    pub const ALL: Self = Self((1 << Fault::PrimaryDies as u8) - 1);
    /// All that befall several servers, whose clocks nobody sets.
    pub const EVERYTHING: Self = Self((1 << KINDS) - 1).without(Fault::Promotion).without(Fault::StoreClockStep);

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
