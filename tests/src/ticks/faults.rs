//! What can go wrong in a simulated world of jobs.

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
}

/// All kinds, in the order of their numbers.
pub const FAULTS: [(Fault, &str); 16] = [
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
];

/// How many kinds there are.
pub const KINDS: usize = FAULTS.len();

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSet(u32);

impl FaultSet {
    /// None.
    pub const NONE: Self = Self(0);
    /// All.
    pub const ALL: Self = Self((1 << KINDS) - 1);

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
