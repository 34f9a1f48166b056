//! A job's record as values.

#[cfg(any(feature = "redis-rs", feature = "redis-fred", feature = "sqlite", feature = "testing", test))]
mod text;

use std::time::Duration;

use super::{JobRecord, OpenRun, Pause, ReturnedTick, cut, second};
use crate::identity::Candidate;
use crate::lease::Term;

#[cfg(any(feature = "redis-rs", feature = "redis-fred", feature = "testing"))]
pub use text::FIELDS;
#[cfg(any(feature = "sqlite", feature = "testing", test))]
pub use text::Texts;
#[cfg(feature = "sqlite")]
pub(in crate::store) use text::seconds;

/// So many runs that have not ended are kept beside the last one, and so many ticks that were given back. A run that is pushed
/// out cannot be given back any more: there is room for all that the next leader makes up for at once while the last one's
/// return of a claim is under way.
pub(in crate::store) const MOST: usize = 64;

/// What a store keeps of a job. Instants are seconds since 1970, those in microseconds of the store's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// When it began.
    pub since: i64,
    /// The last claimed tick.
    pub last: i64,
    /// The schedule that was claimed by.
    pub schedule: String,
    /// The store's identity when that was: with another one, later claims may have been forgotten. Empty: claims before the
    /// record's beginning were.
    pub server: String,
    /// The last run, unless it has ended.
    pub open: Option<Run>,
    /// Earlier runs that have not ended, the oldest first.
    pub others: Vec<Unended>,
    /// Ticks that were given back, by time.
    pub returned: Vec<ReturnedTick>,
    /// The claim of the run that ended last.
    pub done: Option<u128>,
    /// Until when no ticks are claimed.
    pub paused: Option<Pause>,
}

/// A run that is on, or has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What is run.
    pub tick: i64,
    /// Of its claim.
    pub nonce: u128,
    /// How often the tick was begun, with this one.
    pub attempt: u32,
    /// How long its slot was set to last.
    pub slot_us: u64,
    /// And until when.
    pub slot_end_us: u64,
    /// When it was claimed.
    pub began_us: u64,
    /// Under which term.
    pub term: Term,
    /// By whom.
    pub holder: Candidate,
}

/// What is kept of a run that another one came after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unended {
    /// What is run.
    pub tick: i64,
    /// Of its claim.
    pub nonce: u128,
    /// How often the tick was begun, with this one.
    pub attempt: u32,
}

impl Record {
    /// A new record.
    #[must_use]
    pub fn begin(now: i64, schedule: &str, server: &str, known: Option<i64>) -> Self {
        let schedule = cut(schedule).to_owned();
        match known.map(second).filter(|known| *known < now) {
            None => Self { since: now, last: now, schedule, server: server.to_owned(), ..Self::default() },
            Some(known) => Self { since: now, last: known, schedule, ..Self::default() },
        }
    }

    /// The record as it is told.
    #[must_use]
    pub fn told(&self, floor: i64, left: Duration) -> JobRecord {
        JobRecord {
            since: self.since,
            last: self.last,
            floor,
            schedule: self.schedule.clone(),
            open: self.open.as_ref().map(|run| OpenRun {
                tick: run.tick,
                attempt: run.attempt,
                nonce: run.nonce,
                began_us: run.began_us,
                left,
                term: run.term,
                holder: run.holder.clone(),
            }),
            unended: self.others.iter().map(|run| run.tick).collect(),
            returned: self.returned.clone(),
            paused: self.paused.clone(),
        }
    }
}

impl Pause {
    pub(in crate::store) fn is_on(&self, now_us: u64) -> bool {
        now_us < micros_of(self.until)
    }
}

/// The microsecond at which a second begins.
pub(in crate::store) fn micros_of(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or_default().saturating_mul(1_000_000)
}
