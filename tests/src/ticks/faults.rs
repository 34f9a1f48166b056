//! What can go wrong in a simulated world of jobs.

use crate::sim::cluster::Upset;
use crate::sim::fault_set::{self, Kind};

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Something befalls several servers.
    Servers(Upset),
}

/// How many kinds there are.
pub const KINDS: usize = Fault::OWN.len() + Upset::ALL.len();

impl Kind for Fault {
    const OWN: &'static [(Self, &'static str)] = &[
        (Self::Crash, "crash"),
        (Self::CrashAtTick, "crash at a tick"),
        (Self::CleanStop, "clean stop"),
        (Self::RollingUpdate, "rolling update"),
        (Self::Pause, "process stands still"),
        (Self::StepDown, "step-down"),
        (Self::Partition, "partition"),
        (Self::StoreStall, "store stall"),
        (Self::RestartKept, "store restarts with its data"),
        (Self::RestartEmpty, "store restarts empty"),
        (Self::Rollback, "store rolls back"),
        (Self::FlushAll, "FLUSHALL"),
        (Self::Promotion, "promotion"),
        (Self::LeaseDeleted, "lease key deleted"),
        (Self::StoreClockStep, "store clock set"),
        (Self::PauseJob, "job paused"),
    ];

    fn of_servers(upset: Upset) -> Self {
        Self::Servers(upset)
    }
}

/// The sets that runs draw from.
pub type FaultSet = fault_set::FaultSet<Fault>;

impl FaultSet {
    /// All that befall several servers, whose clocks nobody sets.
    #[must_use]
    pub fn everything() -> Self {
        Self::ALL.without(Fault::Promotion).without(Fault::StoreClockStep)
    }
}
