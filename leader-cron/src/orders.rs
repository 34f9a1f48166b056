//! What the waker is told: by runs of their ends, by handles of jobs that come and go.

use std::any::Any;
use std::sync::Arc;

use leader_core::store::RunEnd;
use tokio::sync::oneshot;

use crate::live_job::LiveJob;

/// Keeps the lease from being given back.
pub(crate) type Held = Box<dyn Any + Send + Sync>;

/// See the module. A job is meant by its number.
#[derive(Debug)]
pub(crate) enum Order {
    /// The body of this claim did not begin: the lease had ended, or the jobs were stopped. `held` is dropped when the ledger
    /// knows.
    Refused { job: usize, nonce: u128, held: Option<Held> },
    /// The body of this claim has ended; `told` resolves when the ledger knows.
    Ended { job: usize, nonce: u128, end: RunEnd, cut: bool, told: oneshot::Sender<()> },
    /// From now on this job is run, too.
    Add(Arc<LiveJob>),
    /// This one is run no more.
    Remove { job: usize },
    /// Something has changed, or may have: look at all jobs.
    Look,
}
