//! What can go wrong in a simulated world, and the sets of it that runs draw from.

use super::cluster::Upset;
use super::fault_set::{self, Kind};

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Something befalls several servers.
    Servers(Upset),
}

/// How many kinds there are.
pub const KINDS: usize = Fault::OWN.len() + Upset::ALL.len();

impl Kind for Fault {
    const OWN: &'static [(Self, &'static str)] = &[
        (Self::Crash, "crash"),
        (Self::CleanStop, "clean stop"),
        (Self::Pause, "pause"),
        (Self::DriverStall, "driver stall"),
        (Self::StepDown, "step-down"),
        (Self::StandAside, "stand-aside"),
        (Self::Partition, "partition"),
        (Self::WallClockStep, "wall clock step"),
        (Self::RestartEmpty, "store restarts empty"),
        (Self::RestartKept, "store restarts with its data"),
        (Self::Rollback, "store rolls back"),
        (Self::FlushAll, "FLUSHALL"),
        (Self::Promotion, "promotion"),
        (Self::StoreStall, "store stall"),
        (Self::LeaseDeleted, "lease key deleted"),
        (Self::StoreClockBack, "store clock set back"),
    ];

    fn of_servers(upset: Upset) -> Self {
        Self::Servers(upset)
    }
}

/// The sets that runs draw from.
pub type FaultSet = fault_set::FaultSet<Fault>;

impl FaultSet {
    /// All that befall one server, but those that void the rules: setting its clock.
    #[must_use]
    pub fn one_server() -> Self {
        Self::OWN.without(Fault::StoreClockBack)
    }

    /// All with several servers: there is one primary at a time, as far as anybody can see.
    #[must_use]
    pub fn clean_promotions() -> Self {
        let two = [Upset::PrimaryReturns, Upset::PrimaryIsolated, Upset::HandOver];
        two.into_iter().map(Fault::Servers).fold(Self::two_primaries(), Self::without)
    }

    /// All with several servers, also those by which two of them take writes at one time.
    #[must_use]
    pub fn two_primaries() -> Self {
        Self::ALL.without(Fault::StoreClockBack).without(Fault::Promotion)
    }
}
