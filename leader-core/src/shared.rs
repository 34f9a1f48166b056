//! What an elector's driver and all its handles share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::cell::Cell;
use crate::clock::Clock;
use crate::config::Timing;
use crate::doctor::Finding;
use crate::error::{DrainError, StoreError, UnknownGroup};
use crate::group::GroupName;
use crate::identity::Candidate;
use crate::jobs::Jobs;
use crate::ledger::Ledger;
use crate::lock::mail::Desk;
use crate::store::LeaseStore;
use crate::work::Work;

/// One elector, without the way to ask it for anything.
pub(crate) struct Shared {
    pub(crate) candidate: Candidate,
    pub(crate) store: Arc<dyn LeaseStore>,
    pub(crate) address: String,
    pub(crate) timing: Timing,
    pub(crate) clock: Clock,
    pub(crate) require_store: bool,
    pub(crate) cells: BTreeMap<GroupName, Arc<Cell>>,
    /// The groups that are only observed.
    pub(crate) observed: BTreeSet<GroupName>,
    /// Work that is not gated and is waited for all the same.
    pub(crate) ungated: Arc<Work>,
    /// What the ledger of ticks has not been told yet, and is told before the elector ends.
    pub(crate) owed: Arc<Work>,
    /// Where handles ask for locks.
    pub(crate) locks: Desk,
    /// Where a schedule asks the ledger of ticks.
    pub(crate) ledger: Ledger,
    /// The driver's runtime, once it runs.
    pub(crate) runtime: OnceLock<Handle>,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) dropped_reports: Arc<AtomicU64>,
    /// What the doctor found, and has not found gone since.
    pub(crate) findings: Mutex<Vec<Finding>>,
    /// Unknown groups that were asked for, each warned about once.
    pub(crate) strangers: Mutex<BTreeSet<String>>,
    /// Jobs that are scheduled on this elector: none may be twice.
    pub(crate) jobs: Jobs,
    /// Jobs of which a run by hand is on, that excludes others, and whose it is.
    pub(crate) by_hand: Mutex<BTreeMap<Arc<str>, u128>>,
}

/// A run by hand of a job is on, or about to be: nobody on this elector begins another one of the job, for as long as this
/// lives.
#[doc(hidden)]
#[derive(Debug)]
pub struct ByHand {
    elector: Arc<Shared>,
    job: Arc<str>,
}

impl ByHand {
    pub(crate) fn new(elector: Arc<Shared>, job: Arc<str>) -> Self {
        Self { elector, job }
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        self.elector.by_hand.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.job);
    }
}

/// How far an elector has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    /// Groups whose first round is over.
    pub(crate) settled: usize,
    /// The store has answered once.
    pub(crate) contact: bool,
    pub(crate) last_error: Option<StoreError>,
    /// How the shutdown ended.
    pub(crate) outcome: Option<Result<bool, DrainError>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    #[default]
    Starting,
    Running,
    Ending,
    Stopped,
    /// The store refused the connection.
    Refused,
    /// The store was required and not reached.
    Unreachable,
    /// The driver died.
    Dead,
}

impl Shared {
    pub(crate) fn set_phase(&self, phase: Phase) {
        self.progress.send_modify(|p| p.phase = phase);
    }

    pub(crate) fn phase(&self) -> Phase {
        self.progress.borrow().phase
    }

    pub(crate) fn findings(&self) -> MutexGuard<'_, Vec<Finding>> {
        // Replaced as a whole: a poisoned one is whole too.
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cell(&self, group: &str) -> Result<&Arc<Cell>, UnknownGroup> {
        let unknown = || UnknownGroup { group: group.to_owned(), known: self.cells.keys().cloned().collect() };
        self.cells.get(group).ok_or_else(unknown)
    }

    /// The cell of a group, asked for inside a scope of this elector.
    ///
    /// # Panics
    /// If the elector has no such group: a test that silently skips what it wants to test is worse.
    pub(crate) fn cell_in_scope(&self, group: &str) -> &Cell {
        match self.cell(group) {
            Ok(cell) => cell,
            Err(unknown) => panic!("a gated function was called in the scope of an elector: {unknown}"),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elector")
            .field("instance", &self.candidate.id)
            .field("store", &self.address)
            .field("groups", &self.cells.keys())
            .finish_non_exhaustive()
    }
}
