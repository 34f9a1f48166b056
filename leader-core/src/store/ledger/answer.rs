//! What the ledger answers.

use std::time::Duration;

use super::HistoryEntry;
use crate::error::StoreError;
use crate::identity::{Candidate, InstanceId};
use crate::lease::Term;

/// The answers to a batch of commands to the ledger: one for each, in the same order.
pub type TickAnswers = Vec<Result<TickAnswer, StoreError>>;

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TickAnswer {
    /// The store's clock when the command was executed, in microseconds since 1970. A tick is due by this clock alone.
    pub now_us: u64,
    /// What came of it.
    pub reply: TickReply,
}

/// What came of a command. Nothing has changed, unless it says so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TickReply {
    /// To a register: the record, which is there from now on.
    Registered(JobRecord),
    /// To a load: the record.
    Loaded(JobRecord),
    /// To a load, a claim, a pause or a resume: there is no record.
    Unknown,
    /// To any command: somebody else has written into the record. Remove it, and the job begins anew.
    Corrupt {
        /// Which part of it: `last`.
        field: &'static str,
    },

    /// To a claim: it came after the instant that it names.
    Late,
    /// To a claim: the asker does not hold the lease under this term.
    Fenced,
    /// To a claim: it was this claim that was ended last.
    Done,
    /// To a claim: the tick is the asker's to run. The same answer again, with the slot begun anew, if it was claimed with
    /// this nonce before.
    Run {
        /// The tick.
        tick: i64,
        /// 1 if it was never begun before.
        attempt: u32,
    },
    /// To a claim: no ticks are claimed for now.
    Paused(Pause),
    /// To a claim: a run of the job is on, or has not ended and its slot is not over.
    Busy {
        /// How long its slot lasts unless it is kept.
        left: Duration,
        /// Who runs it.
        holder: InstanceId,
    },
    /// To a claim: this tick has to be claimed first. It was given back, or its run has not ended and its slot is over.
    Take {
        /// The tick.
        tick: i64,
        /// How often it was begun.
        attempts: u32,
    },
    /// To a claim: this tick was begun too often, or too long ago, without an end. It is given up from now on.
    Over {
        /// The tick.
        tick: i64,
        /// How often it was begun.
        attempts: u32,
    },
    /// To a claim: a later tick was claimed than the asker knows.
    Moved {
        /// The last one.
        last: i64,
    },
    /// To a claim: the tick has been claimed, or is not to be any more.
    Already {
        /// The last claimed tick, by the record or by what the asker expected.
        last: i64,
        /// No tick up to this one is run either: the job's beginning, the beginning of a changed schedule, or what the store
        /// may have forgotten.
        floor: i64,
    },
    /// To a claim: the store's clock has not reached the tick.
    Early {
        /// How long until then.
        left: Duration,
    },

    /// To a keep: the slot lasts.
    Kept,
    /// To a keep: the run holds the job no more.
    Gone,
    /// To an end: noted, and the run is over.
    Ended,
    /// To an end: noted in the history; the run was over already, or another one has the job.
    Other,
    /// To a give back: the tick is due again.
    Returned,
    /// To a give back: the run is over, and a later tick has taken this one's place.
    Superseded {
        /// The tick.
        tick: i64,
    },
    /// To a give back: the run was over already.
    NotOpen,
    /// To a pause or a resume: it holds from now on.
    Changed,
    /// To a note: it stands in the history.
    Noted,
    /// To a history: its last entries, the oldest first.
    History(Vec<HistoryEntry>),
}

/// What the ledger knows of a job. Instants are seconds since 1970, unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobRecord {
    /// When the record began.
    pub since: i64,
    /// The last claimed tick; of a record that is new, when it began.
    pub last: i64,
    /// Whoever does not vouch may claim no tick up to this one, other than at least once: what was claimed up to then may
    /// have been forgotten. 0 if nothing was.
    pub floor: i64,
    /// The schedule by which the last tick was claimed.
    pub schedule: String,
    /// The run that is on, or has not ended.
    pub open: Option<OpenRun>,
    /// Ticks whose earlier runs have not ended.
    pub unended: Vec<i64>,
    /// Ticks that were given back, the oldest first.
    pub returned: Vec<ReturnedTick>,
    /// Until when no ticks are claimed. One that is over stands here, too: ticks before its end are not made up for.
    pub paused: Option<Pause>,
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct OpenRun {
    /// Its tick.
    pub tick: i64,
    /// How often the tick was begun, with this one.
    pub attempt: u32,
    /// Of its claim.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub nonce: u128,
    /// When it was claimed, in microseconds.
    pub began_us: u64,
    /// How long its slot lasts unless it is kept; zero if it is over.
    pub left: Duration,
    /// Under which term it was claimed.
    pub term: Term,
    /// By whom.
    #[cfg_attr(feature = "serde", serde(serialize_with = "id"))]
    pub holder: Candidate,
}

#[cfg(feature = "serde")]
fn id<S: serde::Serializer>(candidate: &Candidate, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&candidate.id, serializer)
}

/// A tick that was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ReturnedTick {
    /// The tick.
    pub tick: i64,
    /// How often it was begun.
    pub attempts: u32,
}

/// A pause of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Pause {
    /// Until when, in seconds.
    pub until: i64,
    /// Why.
    pub note: String,
}
