//! What a job does about ticks that were missed, runs that overlap, and runs that died.

use std::time::Duration;

/// A tick that is older than this is not run any more, unless [`Policy::within`] says otherwise: ten minutes. A hand-over takes
/// a ttl at most (10 s by default), a store that restarts or a deployment a few minutes; and last night's job does not run at
/// noon because somebody deployed.
const WITHIN: Duration = Duration::from_secs(600);

/// A run that died is tried so often in all, with [`Delivery::AtLeastOnce`]: a tick that kills whoever runs it ends.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// What becomes of ticks that were not run in time: nobody led, the leader stood still, the store was away, or the run before
/// was still on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Missed {
    /// The newest is run, and told how many came before it: [`Tick::missed`](crate::Tick::missed).
    #[default]
    Once,
    /// None is run that is more than five seconds late.
    Skip,
    /// All are run, in order, one after another; the newest thousand, if there are more.
    All,
}

/// Whether two runs of one job may be on at a time, in the whole fleet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Overlap {
    /// No: a tick that comes due meanwhile waits, and is then treated as a missed one.
    #[default]
    Forbid,
    /// Yes, as many as come due.
    Allow,
}

/// What becomes of a tick whose run died half-way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Delivery {
    /// Nothing: a body begins at most once for a tick.
    #[default]
    AtMostOnce,
    /// The next leader runs it again, with [`Tick::attempt`](crate::Tick::attempt) one higher, three times in all.
    AtLeastOnce,
}

/// The policies of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) missed: Missed,
    /// How old a tick may be that is run.
    pub(crate) within: Duration,
    pub(crate) overlap: Overlap,
    pub(crate) delivery: Delivery,
    /// How long a run may take.
    pub(crate) timeout: Option<Duration>,
    /// A run begins up to so much later than its tick.
    pub(crate) jitter: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            missed: Missed::default(),
            within: WITHIN,
            overlap: Overlap::default(),
            delivery: Delivery::default(),
            timeout: None,
            jitter: Duration::ZERO,
        }
    }
}
