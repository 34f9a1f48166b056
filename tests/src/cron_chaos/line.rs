//! What a process writes down.

use serde::{Deserialize, Serialize};

/// One line of a member's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// The process takes part.
    Started {
        /// Since then, by the boot clock.
        at_ns: u64,
        /// Its wall clock then, in microseconds since 1970.
        own_us: i64,
    },
    /// It leads.
    Leads {
        /// Under this term.
        term: u64,
        /// Since about then.
        at_ns: u64,
    },
    /// A body begins: the first that it does.
    Began {
        /// The number of the body, among those of its process.
        run: u64,
        /// Of this job.
        job: String,
        /// For this tick.
        tick: i64,
        /// Which attempt at it.
        attempt: u32,
        /// So many ticks before it were not run.
        missed: u64,
        /// Under which term.
        term: u64,
        /// By whom.
        instance: String,
        /// When, by the boot clock.
        at_ns: u64,
        /// What this host's wall clock showed, in microseconds since 1970.
        true_us: i64,
        /// What this process took it for.
        own_us: i64,
    },
    /// A body has come to its end: the last that it does.
    Ended {
        /// The number of the body.
        run: u64,
        /// When.
        at_ns: u64,
    },
    /// A body was dropped on the way.
    Cut {
        /// The number of the body.
        run: u64,
        /// When.
        at_ns: u64,
    },
    /// The library told its log that ticks are not run.
    Told {
        /// Of this job.
        job: String,
        /// The first of them.
        tick: i64,
        /// How many.
        count: u64,
        /// In its words.
        text: String,
    },
    /// All that came before this instant stands in the logs of the process.
    Flushed {
        /// The number of the order.
        order: u64,
        /// The instant.
        at_ns: u64,
    },
    /// The process did not get the processor, though it wanted to run.
    Stalled {
        /// From then.
        from_ns: u64,
        /// To then.
        to_ns: u64,
    },
}
