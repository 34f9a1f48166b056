//! What the jobs of a schedule ask of a store, and what a store answers: the ledger of ticks.
//!
//! A tick is one scheduled instant of a job, in whole seconds of UTC. Before its body runs, it is claimed here, under the
//! term of the group's leader: so neither a hand-over, a crash, a stall nor a clock that is wrong runs it twice, and whoever
//! leads next finds what nobody has claimed.

mod answer;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for comparisons, under `testing`"))]
pub(crate) mod history;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for comparisons, under `testing`"))]
pub(crate) mod record;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for comparisons, under `testing`"))]
pub(crate) mod rules;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::LeaseStore;
use crate::error::StoreError;
use crate::group::{GroupName, why_invalid};
use crate::identity::Candidate;
use crate::lease::Term;

pub use answer::{JobRecord, OpenRun, Pause, ReturnedTick, TickAnswer, TickAnswers, TickReply};
pub use history::{HistoryEntry, HistoryEvent, RunEnd, RunOutcome};

/// A job's name: 1 to 64 of `A–Z a–z 0–9 . _ -`. It is what its record is found by, so it should stay the same for ever.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobName(Arc<str>);

impl JobName {
    /// Checks `name` and takes it as it is.
    ///
    /// # Errors
    /// [`InvalidJobName`] with the reason: empty, too long, or a character that is not allowed.
    ///
    /// ```
    /// use leader_core::store::JobName;
    ///
    /// assert_eq!(JobName::new("nightly-report")?.as_str(), "nightly-report");
    /// assert!(JobName::new("reports::nightly").is_err());
    /// # Ok::<_, leader_core::store::InvalidJobName>(())
    /// ```
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidJobName> {
        let name = name.as_ref();
        match why_invalid(name) {
            None => Ok(Self(name.into())),
            // What is shown of it is shown in one line.
            Some(reason) => Err(InvalidJobName { name: name.chars().take(80).collect::<String>(), reason }),
        }
    }

    /// The text of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for JobName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Why a text is not a [`JobName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` cannot be a job: {reason}; use 1 to 64 ASCII letters, digits, `.`, `_` or `-`, such as `nightly-report`",
    name.escape_debug()
)]
pub struct InvalidJobName {
    name: String,
    reason: String,
}

/// Commands to the ledger that go out in one round trip: all of one elector, of any jobs.
#[derive(Debug, Clone)]
pub struct TickBatch {
    /// What to do.
    pub commands: Vec<TickCommand>,
    /// How long the call may take, from now; past that the driver drops it.
    pub timeout: Duration,
}

/// One command of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TickCommand {
    /// The group of the job.
    pub group: GroupName,
    /// The job that it is about.
    pub job: JobName,
    /// Who asks.
    pub candidate: Candidate,
    /// What it asks.
    pub op: TickOp,
}

/// What is asked of a job's record. Ticks and other instants in seconds are seconds since 1970, UTC; one outside of
/// 0 ..= [`TickOp::LATEST`] counts as the nearest within.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TickOp {
    /// Begin a record, if there is none: a new job has no past, so its ticks count from now on. Asked by any instance, at its
    /// start; a record that is there stays as it is.
    Register {
        /// What tells this schedule from another one: its expression and zone. Cut to [`TickOp::LONGEST`] bytes.
        schedule: String,
        /// The last tick of the job that this process knows to have been claimed; for a record that has vanished. Only a
        /// claim that [vouches](TickClaim::vouch), or one with delivery at least once, may run ticks between it and now.
        known: Option<i64>,
    },
    /// Tell the record. Asked for all jobs of a group when its lease was won.
    Load,
    /// Claim a tick, and with it the right to run its body.
    Claim(Box<TickClaim>),
    /// Let the slot of a run that is on last for so long from now.
    KeepSlot {
        /// Of its claim.
        nonce: u128,
        /// How long.
        slot: Duration,
    },
    /// Note that a run has ended. Accepted by the claim's nonce, whatever the term is by now.
    End {
        /// Of its claim.
        nonce: u128,
        /// How it ended.
        end: RunEnd,
    },
    /// Give back a claim whose run was not, or not to its end: the tick is due again.
    GiveBack {
        /// Of the claim.
        nonce: u128,
        /// Its body had begun, and was cut: only with delivery at least once. The attempt counts then.
        begun: bool,
        /// Also if a later tick has been claimed by now: where each tick counts, not just the newest.
        keep: bool,
    },
    /// Claim no ticks until then.
    Pause {
        /// In seconds.
        until: i64,
        /// Why, for people. Cut to [`TickOp::LONGEST`] bytes.
        note: String,
    },
    /// End a pause.
    Resume,
    /// Write down what happened outside of the ticks, such as a run by hand.
    Note(HistoryEvent),
    /// Tell the last entries of the history, the oldest first.
    History {
        /// How many at most; there are up to [`TickOp::HISTORY`].
        limit: u32,
    },
}

impl TickOp {
    /// The last second that can be a tick: the end of the year 9999.
    pub const LATEST: i64 = 253_402_300_799;
    /// So many bytes of a schedule, a note or a message are kept.
    pub const LONGEST: usize = 200;
    /// So many entries of a job's history are kept.
    pub const HISTORY: u32 = 120;

    /// What messages call it: `register`, `load`, `claim`, `keep`, `end`, `give back`, `pause`, `resume`, `note`, `history`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Register { .. } => "register",
            Self::Load => "load",
            Self::Claim(_) => "claim",
            Self::KeepSlot { .. } => "keep",
            Self::End { .. } => "end",
            Self::GiveBack { .. } => "give back",
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::Note(_) => "note",
            Self::History { .. } => "history",
        }
    }
}

/// One tick, and under which rules it is claimed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TickClaim {
    /// Of the asker's lease.
    pub term: Term,
    /// The tick.
    pub tick: i64,
    /// The last claimed tick, as far as the asker knows: the one that it walked from.
    pub expect: i64,
    /// When the asker's process registered the job. If the schedule is another one than the record's, it counts from there.
    pub floor: i64,
    /// Random for each claim, and the same when a claim is repeated because its answer was lost: then it is the same claim.
    pub nonce: u128,
    /// Past this instant of the store's clock, in microseconds since 1970, it does nothing.
    pub not_after_us: u64,
    /// How long the run holds the job without [`TickOp::KeepSlot`], from when the claim is executed.
    pub slot: Duration,
    /// No tick while a run of the job is on.
    pub forbid: bool,
    /// A claim whose slot ran out without an end is taken over; and after lost memory a tick may run again. Such a job
    /// has one run at a time.
    pub at_least_once: bool,
    /// So often at most is a tick begun, with delivery at least once.
    pub max_attempts: u32,
    /// So long after its slot ran out is a claim still taken over.
    pub retry_within: Duration,
    /// As in [`TickOp::Register`].
    pub schedule: String,
    /// Ticks that are given up with this claim, for the history.
    pub missed: Option<Missed>,
    /// The asker has led without interruption since it loaded the record, or since it claimed: so it knows that no tick later
    /// than [`expect`](Self::expect) and the record's last has been claimed, whatever the store has forgotten. What it
    /// expects is then no less than the last tick *and the [floor](JobRecord::floor)* that it loaded.
    pub vouch: bool,
    /// The name that the job had before, in the same group: that one's last tick counts, too, and is raised along.
    pub renamed_from: Option<JobName>,
}

/// Ticks that are not run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Missed {
    /// The first of them.
    pub from: i64,
    /// How many.
    pub count: u64,
    /// Why, for people. Cut to [`TickOp::LONGEST`] bytes.
    pub reason: String,
}

/// What a store without a ledger answers.
pub(super) fn no_ledger(store: &(impl LeaseStore + ?Sized)) -> StoreError {
    StoreError::Refused {
        attempted: format!("a tick on {}", store.address()),
        cause: "this store has no ledger of ticks".to_owned(),
        advice: "use a store that has one, or give it one: implement LeaseStore::execute_ticks".to_owned(),
    }
}

/// The longest beginning of `text` that is kept.
pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(TickOp::LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The nearest second that can be a tick.
pub(super) fn second(seconds: i64) -> i64 {
    seconds.clamp(0, TickOp::LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_to_the_alphabet_of_keys_and_the_error_says_what_would_do() {
        for good in ["a", "reports.nightly_v2-b", &"x".repeat(64)] {
            assert_eq!(JobName::new(good).unwrap().as_str(), good);
        }
        for (bad, reason) in [
            ("", "is empty"),
            ("a::b", "contains `:`"),
            ("a}b", "contains `}`"),
            (&"x".repeat(65), "has 65 characters"),
        ] {
            let text = JobName::new(bad).unwrap_err().to_string();
            assert!(text.contains(reason) && text.contains("nightly-report"), "{text}");
        }
        let text = JobName::new("a\nb").unwrap_err().to_string();
        assert!(!text.contains('\n'), "{text:?}");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"x".repeat(300)).len(), 200);
        assert_eq!(cut(&format!("x{}", "é".repeat(150))).len(), 199);
    }
}
