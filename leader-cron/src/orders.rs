//! What the waker is told: by runs of their ends, by handles of jobs that come and go, by other schedulers of ticks.

use std::sync::{Arc, mpsc};

use leader_core::__private::Hold;
use leader_core::store::RunEnd;
use tokio::sync::oneshot;

use crate::by_hand::Asked;
use crate::live_job::LiveJob;

/// Who is told that the ledger knows.
#[derive(Debug)]
pub(crate) enum Tell {
    Task(oneshot::Sender<()>),
    Thread(mpsc::Sender<()>),
    Nobody,
}

impl Tell {
    pub(crate) fn tell(self) {
        // Who waited may have gone.
        match self {
            Self::Task(tell) => drop(tell.send(())),
            Self::Thread(tell) => drop(tell.send(())),
            Self::Nobody => {}
        }
    }
}

/// See the module. A job is meant by its number.
#[derive(Debug)]
pub(crate) enum Order {
    /// The body of this claim did not begin: the lease had ended, or the jobs were stopped. `held` is dropped when the ledger
    /// knows.
    Refused { job: usize, nonce: u128, held: Option<Hold> },
    /// The body of this claim has ended.
    Ended { job: usize, nonce: u128, end: RunEnd, cut: bool, tell: Tell },
    /// From now on this job is run, too.
    Add(Arc<LiveJob>),
    /// This one is run no more.
    Remove { job: usize },
    /// Somebody else's scheduler says that a tick of this job has come.
    #[cfg(feature = "tokio-cron-scheduler")]
    Ring { job: usize },
    /// This one is to run now, by hand.
    Trigger { job: usize, asked: Asked },
    /// Something has changed, or may have: look at all jobs.
    Look,
}
