//! What can go wrong in a simulated world, and the sets of it that runs draw from.

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
}

/// All kinds, in the order of their numbers.
pub const FAULTS: [(Fault, &str); 16] = [
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
];

/// How many kinds there are.
pub const KINDS: usize = FAULTS.len();

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSet(u32);

impl FaultSet {
    /// None.
    pub const NONE: Self = Self(0);

    /// All but those that void the rules: setting the store's clock.
    #[must_use]
    pub const fn all() -> Self {
        Self((1 << KINDS) - 1).without(Fault::StoreClockBack)
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
