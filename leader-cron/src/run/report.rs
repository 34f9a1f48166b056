//! How a run went: told to the course, the log, the job's status and whoever asked for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};

use leader_core::__private::Hold;
use leader_core::store::{RunEnd, RunOutcome as Ending};
use leader_core::{Lease, Term};
use tokio::sync::oneshot;

use super::{Origin, Run};
use crate::bodies::Begun;
use crate::live_job::LiveJob;
use crate::orders::{Order, Tell};
use crate::status::{LastRun, RunOutcome};

/// Whether the body has begun.
#[derive(Clone)]
pub(super) struct Step {
    begun: Arc<AtomicBool>,
    job: Arc<LiveJob>,
    lease: Option<Lease>,
}

impl Step {
    pub(super) fn new(job: Arc<LiveJob>, lease: Option<Lease>) -> Self {
        Self { begun: Arc::default(), job, lease }
    }

    /// Asked as the last thing before the body.
    pub(super) fn begins(&self) -> bool {
        let held = self.lease.as_ref().is_none_or(Lease::is_held);
        if held {
            self.job.record().runs += 1;
            self.begun.store(true, Ordering::Relaxed);
        }
        held
    }

    /// Asked before each step of the body.
    pub(super) fn goes_on(&self, every_step: bool) -> bool {
        if self.has_begun() { !every_step || self.lease.as_ref().is_none_or(Lease::is_held) } else { self.begins() }
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// The body's own gate did not let it begin.
    fn take_back(&self) {
        if self.begun.swap(false, Ordering::Relaxed) {
            self.job.record().runs -= 1;
        }
    }
}

/// Written when it is dropped, so that also a body that its runtime drops half-way leaves a record. The fields after `run`
/// are dropped after it: who waits for the end of the body finds the job free.
pub(super) struct Report {
    term: Option<Term>,
    began: Instant,
    began_at: SystemTime,
    pub(super) outcome: RunOutcome,
    step: Step,
    run: Run,
    /// Keeps the lease from being given back before the ledger knows of the end.
    held: Option<Hold>,
    _begun: Begun,
}

impl Report {
    /// Of a run that is let begin.
    pub(super) fn new(
        run: Run,
        began_at: SystemTime,
        term: Option<Term>,
        step: Step,
        held: Option<Hold>,
        begun: Begun,
    ) -> Self {
        let (began, outcome) = (Instant::now(), RunOutcome::Cancelled);
        Self { term, began, began_at, outcome, step, run, held, _begun: begun }
    }

    /// Tells the course how the run ended. Resolves when the ledger knows; without an answer in the time of some calls, it is
    /// told in the background.
    pub(super) async fn tell(&mut self) {
        let (tell, told) = oneshot::channel();
        if self.end(Tell::Task(tell)) {
            // In time, or not: the course goes on telling it.
            let _ = tokio::time::timeout(self.patience(), told).await;
        }
    }

    /// The same on a thread that may block; the runtime may be about to end.
    pub(super) fn tell_from_thread(&mut self) {
        let (tell, told) = mpsc::channel();
        if self.end(Tell::Thread(tell)) {
            // As above.
            let _ = told.recv_timeout(self.patience());
        }
    }

    fn patience(&self) -> Duration {
        let (_, _, operation_timeout) = self.run.engine.elector.__timing();
        3 * operation_timeout
    }

    /// Whether there was something to tell that had not been told.
    fn end(&mut self, tell: Tell) -> bool {
        // What is left is for the ledger alone.
        self.held.iter().for_each(Hold::set_cancellable);
        if self.held.as_ref().is_some_and(Hold::was_refused) {
            self.step.take_back();
        }
        if !self.step.has_begun() {
            // The lease ended on the last inch.
            self.run.refuse(self.held.take());
            return false;
        }
        let Origin::Course(permission) = &mut self.run.origin else { return false };
        if std::mem::replace(&mut permission.told, true) {
            return false;
        }
        let since = self.began_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (outcome, message) = match &self.outcome {
            RunOutcome::Ok => (Ending::Succeeded, ""),
            RunOutcome::Failed(error) => (Ending::Failed, error.as_str()),
            RunOutcome::Panicked(panic) => (Ending::Panicked, panic.as_str()),
            RunOutcome::Cancelled => (Ending::Cancelled, ""),
            RunOutcome::TimedOut => (Ending::TimedOut, ""),
        };
        let end = RunEnd {
            outcome,
            message: message.to_owned(),
            began_us: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            took: self.began.elapsed(),
        };
        let cut = matches!(self.outcome, RunOutcome::Cancelled);
        let (job, nonce) = (self.run.job.id, permission.nonce);
        self.run.engine.order(Order::Ended { job, nonce, end, cut, tell });
        true
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.end(Tell::Nobody);
        let (job, duration) = (&*self.run.job, self.began.elapsed());
        let tick = self.run.tick.unix_seconds();
        let (name, group, term) = (&*job.name, job.group_name(), self.term.map(Term::get));
        if !self.step.has_begun() {
            tracing::debug!(
                target: "leader", job = name, tick, group, term,
                "a run of job {name} did not begin: the lease had ended"
            );
            return;
        }
        match &self.outcome {
            RunOutcome::Ok => {
                tracing::debug!(target: "leader", job = name, tick, group, term, ?duration, "job {name} has run");
            }
            RunOutcome::Failed(error) => {
                tracing::error!(target: "leader", job = name, tick, group, term, "job {name} failed: {error}");
            }
            RunOutcome::Panicked(panic) => {
                tracing::error!(target: "leader", job = name, tick, group, term, "job {name} panicked: {panic}");
            }
            RunOutcome::Cancelled => {
                tracing::warn!(target: "leader", job = name, tick, group, term, "a run of job {name} was cancelled");
            }
            RunOutcome::TimedOut => {
                tracing::error!(
                    target: "leader", job = name, tick, group, term,
                    "a run of job {name} took longer than it may ({:?}), and was cut", job.policy.timeout.unwrap_or_default()
                );
            }
        }
        let outcome = std::mem::replace(&mut self.outcome, RunOutcome::Ok);
        let (tick, manual) = (self.run.tick.intended(), self.run.tick.is_manual());
        let run = LastRun { tick, term: self.term, outcome, duration, manual };
        job.record().ended(run.clone());
        self.run.went = Some(run);
    }
}
