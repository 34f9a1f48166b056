//! What the lines must never show.
//!
//! A tick is lost if no body began for it, and doubled if two did, other than as a further attempt at least once. What is
//! permitted is permitted by facts, never because something went wrong at about that time:
//!
//! - At most once, a tick may die with its claimer: only if the ledger has it that this process claimed that very tick, and this
//!   process was killed. One claim of a job is in flight at a time, so no process takes two ticks of a job along.
//! - At most once, what a store may have forgotten is not run: only if it was restarted, and a process or the ledger says so of
//!   that very tick.
//! - If a store has lost its memory, or a part of it, a tick that was open then may be gone: only if it was claimed before, or
//!   the job's record began anew after it, or somebody says so. At least once, what it has forgotten may be run again; and a run
//!   may be joined by the next one.
//! - A newest tick is run in place of others only where the job says so, and somebody must have told of each.
//! - At least once, a tick that was begun three times need not end.
//! - Two runs overlap only if one was written down right after its process had stood still, which nothing can prevent.

mod bodies;
mod clocks;
mod figures;
mod overlaps;
mod ticks;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use self::bodies::bodies;
pub use self::figures::{Counts, Figures};
use super::jobs::Facts;
use super::line::Line;
use super::witness::Known;
use crate::chaos::crew::Between;

/// All that is known of a chaos.
#[derive(Debug)]
pub struct Evidence {
    /// The jobs.
    pub jobs: Vec<Facts>,
    /// What each process wrote.
    pub members: BTreeMap<String, Vec<Line>>,
    /// When processes were killed.
    pub deaths: BTreeMap<String, Between>,
    /// How wall clocks were set, in order.
    pub shifts: Vec<Shift>,
    /// What else went wrong.
    pub troubles: Vec<Trouble>,
    /// When the store lost its memory, or a part of it: more than a restart with all of it.
    pub losses: Vec<Loss>,
    /// What the ledger knew.
    pub known: Known,
    /// What holds for all.
    pub bounds: Bounds,
}

/// From then on a process's wall clock was off by so much.
#[derive(Debug, Clone)]
pub struct Shift {
    /// Whose.
    pub member: String,
    /// When it was set.
    pub at: Between,
    /// In microseconds.
    pub offset_us: i64,
}

/// A loss of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// It came between these instants of the boot clock.
    pub at: Between,
    /// The store's second before it.
    pub second: i64,
}

impl Loss {
    /// What was known before the first of these instants may have been forgotten at the second.
    pub(crate) fn lies_between(&self, first_ns: u64, second_ns: u64) -> bool {
        first_ns <= self.at.to_ns && self.at.from_ns <= second_ns
    }
}

/// A time in which something was wrong.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// With whom; with all, if with nobody.
    pub whom: Option<String>,
    /// What.
    pub what: What,
    /// From then.
    pub from_ns: u64,
    /// To then.
    pub to_ns: u64,
}

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The process stood still.
    Halt,
    /// The store did not answer.
    Silence,
}

/// What holds for all.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Each tick from the first of these seconds to the second is expected.
    pub expected: (i64, i64),
    /// A tick is due by the wall clock of the process that runs it, and not by that of this host.
    pub own_clocks: bool,
    /// There is a ledger.
    pub ledger: bool,
    /// So often was the store restarted.
    pub restarts: u64,
    /// Bodies that began before this instant of the boot clock were counted elsewhere: they are there to be compared with.
    pub news_ns: u64,
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// No body began for a tick.
    Lost {
        /// Of this job.
        job: String,
        /// The tick.
        tick: i64,
        /// What the ledger and the processes have to say of it.
        said: String,
    },
    /// A body began that was one too many.
    Doubled {
        /// Of this job.
        job: String,
        /// The tick.
        tick: i64,
        /// Its bodies.
        bodies: Vec<String>,
    },
    /// A body began before its tick was due.
    Early {
        /// Which.
        body: String,
        /// By so many microseconds.
        by_us: i64,
    },
    /// Two bodies of one job ran at a time.
    Overlap {
        /// The first.
        first: String,
        /// The other.
        second: String,
    },
    /// A tick that is run until it ends did not end.
    NoEnd {
        /// Of this job.
        job: String,
        /// The tick.
        tick: i64,
        /// Its bodies.
        bodies: Vec<String>,
    },
    /// More ticks of a job died with a process than it can have claimed.
    TooManyDied {
        /// Of this job.
        job: String,
        /// With this process.
        member: String,
        /// Ticks.
        ticks: Vec<i64>,
    },
    /// A clock did not show what it was set to, or the boot clock is not everybody's.
    WrongClock {
        /// Whose.
        member: String,
        /// What it showed.
        what: String,
    },
    /// A process did not end as it should.
    BadEnd {
        /// Which.
        member: String,
        /// What it wrote last.
        wrote: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { job, tick, said } => write!(f, "lost: {job} at {tick}; {said}"),
            Self::Doubled { job, tick, bodies } => write!(f, "doubled: {job} at {tick}: {}", bodies.join(" | ")),
            Self::Early { body, by_us } => write!(f, "early by {by_us} µs: {body}"),
            Self::Overlap { first, second } => write!(f, "overlap: {first} | {second}"),
            Self::NoEnd { job, tick, bodies } => write!(f, "no end: {job} at {tick}: {}", bodies.join(" | ")),
            Self::TooManyDied { job, member, ticks } => {
                write!(f, "too many died: {member} took {ticks:?} of {job} along, and had one claim at a time")
            }
            Self::WrongClock { member, what } => write!(f, "wrong clock: {member}: {what}"),
            Self::BadEnd { member, wrote } => write!(f, "bad end: {member}, which wrote:\n{wrote}"),
        }
    }
}

impl Evidence {
    /// It is to be counted here.
    fn is_news(&self, at_ns: u64) -> bool {
        at_ns >= self.bounds.news_ns
    }

    fn forgot_between(&self, first_ns: u64, second_ns: u64) -> bool {
        self.losses.iter().any(|loss| loss.lies_between(first_ns, second_ns))
    }
}

/// Adds up what the bodies wrote.
#[must_use]
pub fn judge(evidence: &Evidence) -> (Figures, Vec<Violation>) {
    let bodies = bodies(evidence);
    let mut found = Vec::new();
    let mut figures = Figures {
        bodies: bodies.iter().filter(|body| evidence.is_news(body.at_ns)).count() as u64,
        ..Figures::default()
    };
    let mut counts = vec![Counts::default(); evidence.jobs.len()];
    leaders(evidence, &mut figures);
    clocks::check(evidence, &bodies, &mut counts, &mut found);
    ticks::check(evidence, &bodies, &mut counts, &mut found);
    if evidence.bounds.ledger {
        overlaps::check(evidence, &bodies, &mut counts, &mut figures, &mut found);
    }
    for (job, counts) in evidence.jobs.iter().zip(counts) {
        figures.all.add(&counts);
        figures.kinds.entry(job.kind.name).or_default().add(&counts);
    }
    (figures, found)
}

fn leaders(evidence: &Evidence, figures: &mut Figures) {
    let mut all: Vec<(u64, u64, &str)> = Vec::new();
    for (member, lines) in &evidence.members {
        for line in lines {
            if let Line::Leads { term, at_ns } = line {
                all.push((*term, *at_ns, member));
            }
        }
    }
    all.sort_unstable();
    all.dedup_by_key(|(term, ..)| *term);
    figures.terms = all.len() as u64;
    figures.leader_changes = all.windows(2).filter(|pair| pair[0].2 != pair[1].2).count() as u64;
}
