//! What the waker is told: by runs of their ends, by handles of jobs that come and go.

use std::sync::Arc;

use leader_core::store::RunEnd;
use tokio::sync::oneshot;

use crate::live_job::LiveJob;

/// See the module. A job is meant by its number.
#[derive(Debug)]
pub(crate) enum Order {
    /// The lease of this claim had ended before its body began.
    Refused { job: usize, nonce: u128 },
    /// The body of this claim has ended; `told` resolves when the ledger knows.
    Ended { job: usize, nonce: u128, end: RunEnd, cut: bool, told: oneshot::Sender<()> },
    /// From now on this job is run, too.
    Add(Arc<LiveJob>),
    /// This one is run no more.
    Remove { job: usize },
    /// Something has changed, or may have: look at all jobs.
    Look,
}
