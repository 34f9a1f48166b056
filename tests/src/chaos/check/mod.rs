//! The checker: a pure function of what the members logged and of what was done to them.
//!
//! It asks whether two bodies of one lock ran at once, whether tokens rose, whether everyone who waited got its turn or was
//! told in time, whether many who came later passed somebody, and whether a lock stayed with nobody for longer than its ttl
//! while somebody waited. It accuses only of what is certain: what was measured to have stood still, or was made to, is taken
//! off.

mod attempts;
mod bodies;
mod figures;
mod spans;
mod waiting;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use attempts::{Attempt, Body, attempts};
pub use bodies::overlaps;
pub(crate) use bodies::{overlap, overlapping, token_faults};
pub use figures::Figures;

use super::crew::Between;
use super::log::{How, Line};

/// All that is known when all is over.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What each member logged.
    pub members: BTreeMap<String, Vec<Line>>,
    /// When the members died that were killed.
    pub deaths: BTreeMap<String, Between>,
    /// When something was not as it should be. Of those who died this is told here, too.
    pub troubles: Vec<Trouble>,
    /// What was promised.
    pub bounds: Bounds,
}

/// A time in which something was not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Whose; `None`: of all.
    pub whom: Option<String>,
    /// Since then, or later.
    pub from_ns: u64,
    /// Until then, or earlier.
    pub to_ns: u64,
    /// Connections have to be made anew, or places in queues may be those of nobody: more than a pause.
    pub lingers: bool,
}

/// What was promised, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How long a lock outlives its holder.
    pub ttl_ns: u64,
    /// Time from a failure to the next attempt.
    pub retry_ns: u64,
    /// How long a call of the store may take.
    pub operation_ns: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { ttl_ns: 1_000_000_000, retry_ns: 100_000_000, operation_ns: 300_000_000 }
    }
}

impl Bounds {
    /// How long a place in a queue is kept for one who does not ask again.
    fn place_ns(&self) -> u64 {
        3_000_000_000 + self.operation_ns
    }
}

impl Trouble {
    /// What happened to all happened to each.
    fn is_of(&self, member: &str) -> bool {
        self.whom.as_deref().is_none_or(|whom| whom == member)
    }

    /// Whether one who waited meanwhile may have come later than it seems, or have lost its place. A short pause does neither.
    fn disturbs(&self, (from, to): (u64, u64)) -> bool {
        const SHORT_NS: u64 = 200_000_000;
        const RECOVERY_NS: u64 = 1_500_000_000;
        let until = self.to_ns + if self.lingers { RECOVERY_NS } else { 0 };
        (self.lingers || self.to_ns - self.from_ns > SHORT_NS) && self.from_ns < to && from < until
    }
}

impl Evidence {
    /// When nobody waited any more for this attempt.
    fn end_of_waiting(&self, attempt: &Attempt) -> u64 {
        let died = self.deaths.get(&attempt.member).map(|death| death.to_ns);
        attempt.answered_ns().or(died).unwrap_or(u64::MAX)
    }
}

/// What must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the message of each says it")]
pub enum Violation {
    Overlap { earlier: String, later: String, from_ns: u64, shared_ns: u64 },
    Token { earlier: String, before: u64, later: String, token: u64 },
    NeverAnswered { attempt: String },
    GaveUpEarly { attempt: String },
    Late { attempt: String, by_ns: u64 },
    NotItsTurn { attempt: String, how: String },
    Passed { attempt: String, by: Vec<String> },
    StayedLocked { after: String, next: String, for_ns: u64, limit_ns: u64 },
    BadEnd { member: String, wrote: String },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns: &u64| Duration::from_nanos(*ns);
        match self {
            Self::Overlap { earlier, later, from_ns, shared_ns } => {
                write!(f, "overlap: {earlier} and {later} ran at once for {:?}, from {from_ns} on", time(shared_ns))
            }
            Self::Token { earlier, before, later, token } => {
                write!(f, "token: {later} has {token}, after {earlier} had {before}")
            }
            Self::NeverAnswered { attempt } => write!(f, "no answer: {attempt} was never told anything"),
            Self::GaveUpEarly { attempt } => {
                write!(f, "too early: {attempt} was told that it is busy before its wait was over")
            }
            Self::Late { attempt, by_ns } => write!(f, "too late: {attempt} was told {:?} too late", time(by_ns)),
            Self::NotItsTurn { attempt, how } => {
                write!(f, "no turn: {attempt} did not get the lock though all was calm and it had time: {how}")
            }
            Self::Passed { attempt, by } => {
                write!(f, "passed: {attempt} was passed by {} who came later: {}", by.len(), by.join(", "))
            }
            Self::StayedLocked { after, next, for_ns, limit_ns } => write!(
                f,
                "stayed locked: between {after} and {next} somebody waited for {:?} without a reason; at most {:?} is right",
                time(for_ns),
                time(limit_ns)
            ),
            Self::BadEnd { member, wrote } => {
                write!(f, "bad end: {member} did not end as it should; it wrote last:\n{wrote}")
            }
        }
    }
}

/// What the checker found.
#[must_use]
pub fn check(evidence: &Evidence) -> (Figures, Vec<Violation>) {
    let (mut figures, mut found) = (Figures { ttl_ns: evidence.bounds.ttl_ns, ..Figures::default() }, Vec::new());
    let lines = || evidence.members.values().flatten();
    figures.steps = lines().filter(|line| matches!(line, Line::Step { .. })).count();
    for attempts in attempts(&evidence.members).values() {
        count(evidence, attempts, &mut figures);
        let (overlaps, bad_tokens) = (overlaps(attempts), token_faults(attempts));
        figures.overlaps += overlaps.len();
        figures.bad_tokens += bad_tokens.len();
        found.extend(overlaps);
        found.extend(bad_tokens);
        waiting::answers(evidence, attempts, &mut found);
        waiting::order(evidence, attempts, &mut figures, &mut found);
        waiting::gaps(evidence, attempts, &mut figures, &mut found);
    }
    (figures, found)
}

fn count(evidence: &Evidence, attempts: &[Attempt], figures: &mut Figures) {
    figures.attempts += attempts.len();
    figures.acquisitions += attempts.iter().filter(|attempt| attempt.body.is_some()).count();
    for attempt in attempts {
        let died = attempt.body.is_some() && evidence.deaths.contains_key(&attempt.member);
        match attempt.how() {
            Some(How::Done) => figures.done += 1,
            Some(How::Lost) => figures.lost += 1,
            Some(How::Busy) => figures.busy += 1,
            Some(How::Failed(_)) => figures.failed += 1,
            Some(How::Dropped) => figures.dropped += 1,
            None if died => figures.died += 1,
            Some(How::Before) | None => {}
        }
    }
}

#[cfg(test)]
mod tests;
