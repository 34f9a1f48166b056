//! The handle of jobs that were started.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leader_core::__private::JobClaim;
use leader_core::RunningWork;

use crate::engine::{Engine, LiveJob};
use crate::error::StillRunning;
use crate::status::JobStatus;
use crate::tick::instant;

/// Jobs that were started, by [`Scheduler::start`](crate::Scheduler::start).
///
/// When it is dropped, no new run begins, and runs that are on go to their end; so keep it for as long as the jobs are
/// wanted. It keeps a clone of the elector.
#[must_use = "no job runs any more once this is dropped: bind it to a name, such as `let _jobs` (`let _` drops it at once)"]
pub struct Running {
    engine: Arc<Engine>,
    /// The names of the jobs, until they are stopped.
    claim: Mutex<Option<JobClaim>>,
}

impl Running {
    pub(crate) fn new(engine: Arc<Engine>, claim: JobClaim) -> Self {
        Self { engine, claim: Mutex::new(Some(claim)) }
    }

    /// No new run begins from here on; another scheduler may have the jobs. Whether it is the first time.
    fn close(&self) -> bool {
        self.engine.bodies.close();
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Stops the jobs: no new run begins from here on, and those that are on have `grace` to end. Leadership is kept: give
    /// it back afterwards, by [`Elector::shutdown`](leader_core::Elector::shutdown), which alone would do both, too.
    ///
    /// # Errors
    /// [`StillRunning`]: these runs outlived the grace, and go on. Whoever leads their group still does, so that nobody
    /// begins the same work beside them.
    ///
    /// # Cancel safety
    /// The jobs stay stopped if the future is dropped.
    pub async fn stop(&self, grace: Duration) -> Result<(), StillRunning> {
        self.close();
        if tokio::time::timeout(grace, self.engine.bodies.idle()).await.is_ok() {
            return Ok(());
        }
        let describe = |(job, running_for): (usize, Duration)| {
            let job = &self.engine.jobs[job];
            RunningWork { what: job.name.to_string(), group: job.group.clone(), running_for, is_lock: false }
        };
        let running: Vec<_> = self.engine.bodies.running().into_iter().map(describe).collect();
        // The last one may have ended this very moment.
        if running.is_empty() { Ok(()) } else { Err(StillRunning { running }) }
    }

    /// Each job, in order of its name: when it is due, and how it went on this instance.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobStatus> {
        let stopped = self.engine.bodies.is_closed();
        self.engine.jobs.iter().map(|job| status(job, stopped)).collect()
    }
}

fn status(job: &LiveJob, stopped: bool) -> JobStatus {
    let record = job.record();
    JobStatus {
        name: job.name.to_string(),
        schedule: job.expression.clone(),
        zone: job.zone.to_owned(),
        group: job.group.clone(),
        next_tick: record.next.filter(|_| !stopped).map(instant),
        running: record.busy,
        last_run: record.last_run.clone(),
        runs: record.runs,
        failures: record.failures,
        panics: record.panics,
        cancelled: record.cancelled,
        skipped: record.skipped,
        overlapping: record.overlapping,
        missed: record.missed,
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let alive = self.engine.elector.ready().is_ok();
        if self.close() && alive && !self.engine.jobs.is_empty() {
            tracing::warn!(
                target: "leader",
                "what Scheduler::start returned was dropped, and so no job runs any more; keep it in a variable with a name, \
                 such as `let _jobs` (`let _` drops it at once)"
            );
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.engine.jobs.iter().map(|job| &job.name)).finish()
    }
}
