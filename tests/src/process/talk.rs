//! What a node is told, and what it tells: one JSON object a line.
//!
//! It tells on standard error, because standard output is for its log, which some tests block.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use leader_core::testing::election::KnownBad;
use leader_core::testing::redis_script::Flaw;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::jobs::{JobPlan, JobRun};

/// The one argument of a node, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// Its name in the log: one for each process, also if two have the same instance id.
    pub label: String,
    /// The store's URL.
    pub store: String,
    /// A stable instance id; without one it is made from the label, with a random suffix.
    pub stable_id: Option<String>,
    /// The groups besides `default`.
    pub groups: Vec<String>,
    /// How long a lease lasts.
    pub ttl: Duration,
    /// Time from one renew to the next, if not as usual.
    #[serde(default)]
    pub heartbeat: Option<Duration>,
    /// Time from an error to the next attempt, if not as usual.
    #[serde(default)]
    pub retry: Option<Duration>,
    /// How long a call of the store may take, if not as long as usual.
    pub operation_timeout: Option<Duration>,
    /// With a lease of an earlier incarnation: `Reclaim::AfterDeadline`.
    pub reclaim_after_deadline: bool,
    /// After a failed renewal: `RenewalFailure::HoldUntilDeadline`.
    pub hold_until_deadline: bool,
    /// A store without a record is taken for new: `FreshStore::Trust`.
    #[serde(default)]
    pub trust_fresh_store: bool,
    /// So many replicas of the store's server have to confirm: `Config::replicas`.
    #[serde(default)]
    pub replicas: u8,
    /// A rule of the election that it breaks, so that a checker can show that it would notice.
    #[serde(default)]
    pub known_bad: Option<KnownBad>,
    /// The same of the script that it sends to a Redis server.
    #[serde(default)]
    pub script_flaw: Option<Flaw>,
    /// Its jobs.
    #[serde(default)]
    pub jobs: Vec<JobPlan>,
    /// Where it logs its views.
    pub log: PathBuf,
}

/// A line for a node. Each is answered by one [`Told::Answer`], in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// Answers whether the group was led.
    StepDown {
        /// The group.
        group: String,
    },
    /// Gives all leases back and stays out.
    Drain,
    /// Competes again.
    Resume,
    /// Ends the elector; the process goes on.
    Shutdown,
    /// Answers the status, with the clocks of the process and what became of its log beside it.
    Status,
    /// Answers who leads by the store.
    LeaderId {
        /// The group.
        group: String,
    },
    /// Answers with the [`Held`] lease, or null.
    Lease {
        /// The group.
        group: String,
    },
    /// Begins gated work of `default` that runs in small steps until the lease is lost. Tells [`Told::WorkBegan`] and
    /// [`Told::WorkEnded`]; each step is a run in the log.
    Work,
    /// Keeps the lease of `default` for a [`Write`](Command::Write), instead of what was kept before: the check before the
    /// write. Answers its token, or null.
    KeepLease,
    /// The same with a lock, which is taken for it. Answers its token.
    KeepLock {
        /// Its key.
        key: String,
        /// How long it lasts unless renewed.
        ttl: Duration,
    },
    /// Writes under what is kept, wherever that has gone since: a guarded set in the store. Answers nothing; the error says
    /// that it was refused.
    Write {
        /// Where.
        key: String,
        /// What.
        value: String,
    },
    /// Takes so many locks, many at a time, and gives them back. Answered when it has none any more; those that were only
    /// dropped may be given back later.
    Locks {
        /// How many.
        count: u32,
    },
    /// Blocks every worker of the runtime. Answered when all are blocked; a task that is spawned then tells
    /// [`Told::WorkersFree`] when it runs.
    BlockWorkers {
        /// For how long.
        time: Duration,
    },
    /// Writes to the log without an end, from a thread.
    Flood,
    /// Logs the views that last up to now. Answered when that is done.
    Flush,
    /// Ends the process at once.
    Exit,
}

/// A lease as its node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its term.
    pub term: u64,
    /// Until when the node believes in it, in nanoseconds of the boot clock.
    pub deadline_ns: u64,
}

/// A line of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum Told {
    /// It takes part.
    Started {
        /// Its instance id.
        instance: String,
    },
    /// It cannot take part, and ends.
    NotStarted {
        /// Why.
        error: String,
    },
    /// An event of the elector.
    Event {
        /// Of this group.
        group: String,
        /// As it is serialized.
        event: Value,
    },
    /// The process has stood still: the first answers of `is_leader()` after it.
    Woke {
        /// For so long.
        stood_still: Duration,
        /// The groups for which the answer was yes.
        leading: Vec<String>,
    },
    /// A command was done.
    Answer {
        /// What it answered, or its error.
        outcome: Result<Value, String>,
    },
    /// The gate let the work in.
    WorkBegan {
        /// Under this term.
        term: u64,
    },
    /// The work is over: it was skipped, or dropped because its lease was lost.
    WorkEnded,
    /// A job's body began.
    Ran {
        /// What it saw.
        run: JobRun,
    },
    /// A task could run again.
    WorkersFree {
        /// When, by the boot clock.
        at_ns: u64,
    },
    /// Its standard error has ended, and the process with it, or soon. Told by the reader.
    Gone,
    /// A line that is none of these: a panic. Told by the reader.
    Noise {
        /// It.
        line: String,
    },
}

impl Told {
    /// Tells it, by one write.
    pub(super) fn tell(&self) {
        let mut line = serde_json::to_string(self).expect("text and numbers can be written as JSON");
        line.push('\n');
        // Whoever should hear it may have gone.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// The term under which the teller leads `group` from now on, if that is what it tells.
    #[must_use]
    pub fn leads(&self, group: &str) -> Option<u64> {
        match self {
            Self::Event { group: of, event } if of == group => {
                let leads = event["event"] == "acquired" || event["event"] == "now" && event["role"] == "leader";
                leads.then(|| event["term"].as_u64()).flatten()
            }
            _ => None,
        }
    }

    /// Whether it is an event of `group` of this name.
    #[must_use]
    pub fn is_event(&self, group: &str, name: &str) -> bool {
        matches!(self, Self::Event { group: of, event } if of == group && event["event"] == name)
    }
}
