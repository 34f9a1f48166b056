//! The exhaustive model: every interleaving of two or three instances, the network and the store, within bounds, over the
//! real election and the model of the store.
//!
//! One tick of time is a millisecond. Drivers may be late by any time, packets may take any time, each kind of fault may
//! strike as often as the bounds say. Clocks do not drift here: that is the simulation's part.

mod alike;
mod fleet;
mod searches;
mod state;

use std::time::{Duration, Instant};

use leader_core::testing::election::KnownBad;
use leader_core::testing::redis_script::Flaw;
use leader_core::{Reclaim, RenewalFailure};
use stateright::{Checker, HasDiscoveries, Model};

pub use fleet::Fleet;
pub use searches::searches;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Instances that compete: two or three.
    pub instances: usize,
    /// Time ends after so many ticks.
    pub ticks: u64,
    /// A lease lasts so many ticks.
    pub ttl: u64,
    /// At most so many packets are under way.
    pub packets: usize,
    /// How often faults may strike.
    pub faults: Faults,
    /// All instances have one id.
    pub twins: bool,
    /// A crashed instance starts again with its old id.
    pub same_id: bool,
    /// What a failed renewal means.
    pub renewal_failure: RenewalFailure,
    /// What is done with an old lease of the own id.
    pub reclaim: Reclaim,
    /// A rule broken on purpose.
    pub known_bad: Option<KnownBad>,
    /// What the store does wrong.
    pub flaw: Option<Flaw>,
    /// Whether the store has a replica.
    pub replication: Replication,
}

/// A replica of the store, which has at any time what the store had at some time before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Replication {
    /// There is none.
    #[default]
    None,
    /// A lease counts once the primary has it.
    NotWaitedFor,
    /// A lease counts once the replica has it.
    WaitedFor,
}

/// How often each kind of fault may still strike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A request without an answer: its sender gives up, and it may still be executed.
    pub failures: u8,
    /// A request that is executed twice.
    pub duplicates: u8,
    /// A process that dies and starts again.
    pub crashes: u8,
    /// An instance that stands aside, and may resume at any time.
    pub stand_asides: u8,
    /// FLUSHALL.
    pub flushes: u8,
    /// A restart of the store without its data.
    pub empties: u8,
    /// A restart of the store with the data of an earlier instant, which a snapshot was taken at.
    pub rollbacks: u8,
    /// The lease key deleted by an operator.
    pub deletions: u8,
    /// The primary is gone, and the replica takes its place with what it has.
    pub promotions: u8,
    /// The replica takes the primary's place; the primary goes on, cut off, for all whose connections lead to it, and who
    /// move over one by one, or never.
    pub cuts: u8,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            instances: 2,
            ticks: 6,
            ttl: 2,
            packets: 3,
            faults: Faults::default(),
            twins: false,
            same_id: true,
            renewal_failure: RenewalFailure::DemoteAtOnce,
            reclaim: Reclaim::AtOnce,
            known_bad: None,
            flaw: None,
            replication: Replication::None,
        }
    }
}

/// What a search found.
#[derive(Debug)]
pub struct Verdict {
    /// Different states that were seen.
    pub states: usize,
    /// The longest path to one.
    pub depth: usize,
    /// All states within the bounds were seen.
    pub complete: bool,
    /// An instance was seen to lead after the other.
    pub handover: bool,
    /// The broken promise, and the shortest way to it.
    pub broken: Option<(&'static str, Vec<String>)>,
    /// How long it took.
    pub took: Duration,
}

/// Searches all states within the bounds, for at most `patience`.
#[must_use]
pub fn search(bounds: Bounds, threads: usize, patience: Duration) -> Verdict {
    let begun = Instant::now();
    let checker = Fleet(bounds)
        .checker()
        .threads(threads)
        .timeout(patience)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let took = begun.elapsed();
    let mut broken = None;
    let mut handover = false;
    for (name, path) in checker.discoveries() {
        if name == fleet::HANDOVER {
            handover = true;
        } else {
            let steps = path.into_vec();
            let steps = steps.iter().filter_map(|(state, action)| action.as_ref().map(|a| Fleet::tell(state, a)));
            broken = Some((name, steps.collect()));
        }
    }
    let complete = broken.is_none() && took < patience;
    Verdict { states: checker.unique_state_count(), depth: checker.max_depth(), complete, handover, broken, took }
}
