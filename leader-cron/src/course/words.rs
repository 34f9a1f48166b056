//! What a course is told, and what it tells.

use std::time::Duration;

use leader_core::store::{JobName, TickOp};
use leader_core::{BootInstant, InstanceId};

use crate::plan::Gap;

/// How a job's course is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long a run holds its job without being kept.
    pub slot: Duration,
    /// The part of that which the run does not use.
    pub guard: Duration,
    /// How long a call of the store may take.
    pub operation_timeout: Duration,
}

/// What is asked of the ledger; an answer is handed back with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub no: u64,
    /// What is asked.
    pub op: TickOp,
    /// Of the job under this name, its old one; `None`: under its own.
    pub job: Option<JobName>,
}

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Poll {
    /// Send this now: slots count from this instant. Then ask again: a slot may end before the answer comes.
    Send(Request),
    /// Come back then, unless something happens before.
    Wait(BootInstant),
    /// Come back when something happens.
    Idle,
}

/// What a course has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Begin this run, unless the lease has ended.
    Run(Claimed),
    /// The run of this claim must end: another instance may run the job.
    Cut(u128),
    /// These ticks are not run.
    Missed(Gap),
    /// These ticks are older than what the job runs, and none is due. The claim of the next one, which may be far away, tells
    /// of them again, for the history.
    TooOld(Gap),
    /// No tick up to this second is run: somebody has paused the job.
    Paused(i64),
    /// This tick was given back, and a newer one has taken its place.
    Superseded(i64),
    /// This tick was begun so often, or so long ago, that it is not begun any more.
    GaveUp {
        /// The tick.
        tick: i64,
        /// How often.
        attempts: u32,
    },
    /// The run by hand of this number may begin, unless the lease has ended. With it, it must end, where runs exclude each
    /// other.
    Free(u128),
    /// It may not: a run is on, here or, by the ledger, elsewhere.
    Taken {
        /// Its number.
        nonce: u128,
        /// The run, if it is elsewhere; and since when it is on, by the store's clock.
        by: Option<(InstanceId, Duration)>,
    },
    /// The last claimed tick lies in the future of the store's clock, by so much: no tick is run up to then.
    Ahead {
        /// The tick.
        last: i64,
        /// How long until then.
        by: Duration,
    },
    /// The job's record is broken at this field.
    Corrupt(&'static str),
    /// The schedule has no tick any more.
    Ended,
}

/// A run that the ledger permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// The tick.
    pub tick: i64,
    /// 1 if it was never begun before.
    pub attempt: u32,
    /// Of its claim.
    pub nonce: u128,
    /// The ticks before it that are not run.
    pub missed: Option<Gap>,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// May pass by itself; whether the request was executed is unknown.
    Passing,
    /// Will not pass without somebody's doing.
    Permanent,
}
