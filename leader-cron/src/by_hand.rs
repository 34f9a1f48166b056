//! Runs by hand, as a person asks for them.

use std::time::Duration;

use leader_core::{InstanceId, StoreError};
use tokio::sync::oneshot;

use crate::error::{LedgerError, TriggerError};
use crate::live_job::LiveJob;
use crate::orders::Order;
use crate::running::Running;
use crate::status::LastRun;

/// Who asked for a run by hand, and is told how it went.
pub(crate) type Asked = oneshot::Sender<Result<LastRun, Denied>>;

/// Why a run by hand did not begin.
#[derive(Debug)]
pub(crate) enum Denied {
    /// Another instance leads the group, or nobody; or the lease ended before the body began.
    NotLeading,
    /// A run of the job is on: here, unless it says where.
    Busy { elsewhere: Option<InstanceId>, running_for: Duration },
    /// The job's record is broken.
    Corrupt(&'static str),
    /// The ledger was not read.
    Store(StoreError),
    /// No run begins any more.
    Stopped,
}

impl Running {
    /// Runs a job now, by hand, and tells how the run went: an error or a panic of the body, or its time-out, is an
    /// [outcome](LastRun::outcome). It consumes no tick: the schedule goes on as if nothing had been. The body sees the present
    /// second as its tick, of which [`Tick::is_manual`](crate::Tick::is_manual) is true. A paused job runs, too.
    ///
    /// A job of a group runs on the instance that leads the group, so it is there that this has to be called; elsewhere the error
    /// names that instance. Its run stands in the [`history`](Self::history), and a drain treats it as a tick's run. Unless the job
    /// has [`Overlap::Allow`](crate::Overlap::Allow), no other run is on meanwhile: a tick that comes due waits, and is then
    /// treated as a missed one; and an async body is dropped at its next await when the lease is lost, whatever the job says of
    /// that, because the next leader knows nothing of it. A [blocking](crate::Job::blocking) body cannot be dropped: if the lease
    /// is lost while one is on, a tick's run on another instance may begin beside it.
    ///
    /// A job without a group runs on this instance.
    ///
    /// # Errors
    /// [`TriggerError`]: it did not run.
    ///
    /// # Cancel safety
    /// If the future is dropped, the job runs all the same, unless it was not to; how it went is told by the history and by
    /// [`jobs`](Self::jobs).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use leader_core::{Config, Elector};
    /// use leader_cron::{Job, RunOutcome, Scheduler};
    ///
    /// let elector = Elector::start(Config::new("memory:").groups(["reports"])).await?;
    /// let report = Job::new("report", "@daily", |tick| async move { assert!(tick.is_manual()) }).group("reports");
    /// let jobs = Scheduler::new(&elector).job(report).start()?;
    ///
    /// let run = jobs.trigger("report").await?;
    /// assert_eq!(run.outcome, RunOutcome::Ok);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn trigger(&self, job: &str) -> Result<LastRun, TriggerError> {
        let job = self.job(job)?;
        let (asked, told) = oneshot::channel();
        self.engine.order(Order::Trigger { job: job.id, asked });
        match told.await {
            Ok(Ok(run)) => Ok(run),
            Ok(Err(denied)) => Err(self.why(&job, denied).await),
            // Nobody is left to answer.
            Err(_) => Err(TriggerError::Stopped { job: job.name.to_string() }),
        }
    }

    async fn why(&self, job: &LiveJob, denied: Denied) -> TriggerError {
        let (elector, name) = (&self.engine.elector, job.name.to_string());
        match denied {
            Denied::NotLeading => {
                let group = job.group_name().unwrap_or_default().to_owned();
                // If the store does not answer, nobody knows.
                let leader = elector.leader_id(&group).await.ok().flatten();
                TriggerError::NotLeading { job: name, group, leader: leader.filter(|id| id != elector.instance_id()) }
            }
            Denied::Busy { elsewhere, running_for } => {
                let instance = elsewhere.unwrap_or_else(|| elector.instance_id().clone());
                TriggerError::Busy { job: name, instance, running_for }
            }
            Denied::Corrupt(field) => LedgerError::Corrupt { job: name, field }.into(),
            Denied::Store(error) => LedgerError::Store { job: name, error }.into(),
            Denied::Stopped => TriggerError::Stopped { job: name },
        }
    }
}
