//! The handle of jobs that were started.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use leader_core::__private::JobClaim;
use leader_core::RunningWork;

use crate::checks::{already_scheduled, check};
use crate::engine::Engine;
use crate::error::{CronError, LedgerError, StillRunning};
use crate::job::Job;
use crate::live_job::LiveJob;
use crate::orders::Order;
use crate::scheduler::{live, named};
use crate::status::JobStatus;
use crate::tick::{instant, unix_seconds};

/// Jobs that were started, by [`Scheduler::start`](crate::Scheduler::start).
///
/// When it is dropped, no new run begins, and runs that are on go to their end; so keep it for as long as the jobs are
/// wanted. It keeps a clone of the elector.
#[must_use = "no job runs any more once this is dropped: bind it to a name, such as `let _jobs` (`let _` drops it at once)"]
pub struct Running {
    pub(crate) engine: Arc<Engine>,
    /// The names of the jobs, until they are stopped.
    claims: Mutex<Option<Vec<JobClaim>>>,
}

impl Running {
    pub(crate) fn new(engine: Arc<Engine>, claim: JobClaim) -> Self {
        Self { engine, claims: Mutex::new(Some(vec![claim])) }
    }

    fn claims(&self) -> MutexGuard<'_, Option<Vec<JobClaim>>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job to those that run, as [`Scheduler::job`](crate::Scheduler::job) does before the start. It takes its data from
    /// the same, and its ticks count from now on; of one that the ledger knows already, from the last that was run.
    ///
    /// # Errors
    /// [`CronError::Invalid`], as at the start; [`CronError::ElectorEnded`] also if the jobs were stopped.
    pub fn add(&self, job: Job) -> Result<(), CronError> {
        self.insert(job).map(drop)
    }

    pub(crate) fn insert(&self, job: Job) -> Result<Arc<LiveJob>, CronError> {
        let elector = &self.engine.elector;
        let now = unix_seconds(SystemTime::now());
        let jobs = [job];
        let mut schedules = check(&jobs, elector, &self.engine.data, now, &self.engine.jobs(), Vec::new())?;
        let mut claims = self.claims();
        let claims = claims.as_mut().ok_or(CronError::ElectorEnded)?;
        let named = named(&jobs[0], &schedules[0]);
        claims.push(elector.__claim_jobs(&[named]).map_err(|taken| already_scheduled(&jobs, &taken))?);
        // One of each job.
        let ([job], schedule) = (jobs, schedules.swap_remove(0));
        let job = self.engine.insert(|id| live(id, job, schedule));
        job.announce(now);
        self.engine.order(Order::Add(Arc::clone(&job)));
        Ok(job)
    }

    /// Takes a job out: no run of it begins on this instance any more; one that is on goes on. Other instances run it as before,
    /// and what the ledger knows of it stays: a job of this name that is added again goes on from there.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`].
    pub fn remove(&self, job: &str) -> Result<(), LedgerError> {
        let job = self.job(job)?;
        self.engine.remove(job.id);
        self.engine.order(Order::Remove { job: job.id });
        if let Some(claims) = &mut *self.claims() {
            claims.iter_mut().for_each(|claim| claim.release(&job.name));
            claims.retain(|claim| !claim.is_empty());
        }
        Ok(())
    }

    /// No new run begins from here on; another scheduler may have the jobs. Whether it is the first time.
    fn close(&self) -> bool {
        self.engine.bodies.close();
        self.claims().take().is_some()
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
        let describe = |(job, running_for): (Arc<LiveJob>, Duration)| RunningWork {
            what: job.name.to_string(),
            group: job.group.clone(),
            running_for,
            is_lock: false,
        };
        let running: Vec<_> = self.engine.bodies.running().into_iter().map(describe).collect();
        // The last one may have ended this very moment.
        if running.is_empty() { Ok(()) } else { Err(StillRunning { running }) }
    }

    /// Each job, in order of its name: when it is due, and how it went on this instance.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobStatus> {
        let stopped = self.engine.bodies.is_closed();
        self.engine.jobs().iter().map(|job| status(job, stopped)).collect()
    }
}

fn status(job: &LiveJob, stopped: bool) -> JobStatus {
    let record = job.record();
    JobStatus {
        name: job.name.to_string(),
        schedule: job.schedule.expression().to_owned(),
        zone: job.schedule.zone().to_owned(),
        group: job.group.clone(),
        next_tick: record.next.filter(|_| !stopped).map(instant),
        running: record.busy > 0,
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
        if self.close() && alive && !self.engine.jobs().is_empty() {
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
        f.debug_list().entries(self.engine.jobs().iter().map(|job| Arc::clone(&job.name))).finish()
    }
}
