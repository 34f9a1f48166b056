//! One run of a job: from a tick that is due to the record of how its body ended.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use leader_core::__private::{Entry, OnLoss};
use leader_core::Term;
use tracing::{Instrument, Span};

use crate::bodies::Begun;
use crate::engine::{Engine, LiveJob};
use crate::job::{Body, Membership};
use crate::registration::{BoxFuture, Context, Outcome};
use crate::status::{LastRun, RunOutcome};
use crate::tick::{Tick, instant};

/// A tick that is due. While it lives, no other run of the job is made; its drop makes room for the next one.
pub(crate) struct Run {
    engine: Arc<Engine>,
    job: usize,
    tick: Tick,
}

/// What had to say yes before the body began.
enum Permit {
    /// The group's gate.
    Led(Entry),
    /// The elector, which waits for the body before it ends.
    Ungated(Box<dyn Any + Send + Sync>),
}

/// A body that was let begin.
struct Start {
    permit: Permit,
    context: Context,
    span: Span,
    report: Report,
}

impl Run {
    /// Of a job that was marked as busy.
    pub(crate) fn new(engine: Arc<Engine>, job: usize, tick: Tick) -> Self {
        Self { engine, job, tick }
    }

    fn job(&self) -> &LiveJob {
        &self.engine.jobs[self.job]
    }

    /// Runs the body, on the current runtime.
    pub(crate) fn spawn(self) {
        match self.job().body.clone() {
            Body::Async(start) => drop(tokio::spawn(self.in_task(start))),
            Body::Blocking(call) => drop(tokio::task::spawn_blocking(move || self.on_thread(&*call))),
        }
    }

    async fn in_task(self, start: Arc<dyn Fn(Context) -> BoxFuture<'static, Outcome> + Send + Sync>) {
        let engine = Arc::clone(&self.engine);
        let job = &engine.jobs[self.job];
        let Some(Start { permit, context, span, mut report }) = self.begin() else { return };
        let body = caught(async move { start(context).await }).instrument(span);
        let body: BoxFuture<'_, _> = if engine.scoped { Box::pin(engine.elector.scope(body)) } else { Box::pin(body) };
        report.outcome = outcome(match permit {
            Permit::Led(entry) if job.has_own_gate() => entry.run_claimed(body).await,
            Permit::Led(entry) if job.cancel_on_loss => entry.run_cancellable(body).await,
            Permit::Led(entry) => Some(entry.run(body).await),
            Permit::Ungated(_until_it_ends) => Some(body.await),
        });
    }

    fn on_thread(self, call: &(dyn Fn(Context) -> Outcome + Send + Sync)) {
        let engine = Arc::clone(&self.engine);
        let job = &engine.jobs[self.job];
        let Some(Start { permit, context, span, mut report }) = self.begin() else { return };
        let _scope = engine.scoped.then(|| engine.elector.enter());
        let body =
            || span.in_scope(|| catch_unwind(AssertUnwindSafe(|| call(context))).map_err(|p| message(p.as_ref())));
        report.outcome = outcome(Some(match permit {
            Permit::Led(entry) if job.has_own_gate() => entry.run_sync_claimed(body),
            Permit::Led(entry) => entry.run_sync(body),
            Permit::Ungated(_until_it_ends) => body(),
        }));
    }

    /// All that has to say yes to the tick is asked here, as the last thing before the body: what was true when it was
    /// spawned may be over by now. Each yes also registers the body with whoever waits for its end.
    fn begin(self) -> Option<Start> {
        let (engine, job) = (Arc::clone(&self.engine), self.job());
        let begun = engine.bodies.begin(self.job)?;
        let (permit, tick) = match &job.group {
            Some(group) => {
                // What the function's own gate says of it is known once that has been passed.
                let cancel = job.cancel_on_loss && matches!(job.body, Body::Async(_));
                let on_loss = if cancel { OnLoss::Cancel } else { OnLoss::Finish };
                let Some(entry) = engine.elector.__enter(group.as_str(), &job.name, on_loss) else {
                    job.skip(self.tick.unix_seconds());
                    return None;
                };
                let tick = self.tick.clone().with_lease(entry.lease().clone());
                (Permit::Led(entry), tick)
            }
            None => (Permit::Ungated(Box::new(engine.elector.__begin_ungated(&job.name)?)), self.tick.clone()),
        };
        job.record().runs += 1;
        let term = tick.lease().map(leader_core::Lease::term);
        let span = tracing::info_span!(
            target: "leader", "leader.cron.tick",
            job = %job.name, tick = tick.unix_seconds(), group = job.group_name(), term = term.map(Term::get)
        );
        let context = Context::new(Arc::clone(&engine.data), tick);
        let report = Report { term, began: Instant::now(), outcome: RunOutcome::Cancelled, run: self, _begun: begun };
        Some(Start { permit, context, span, report })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.job().record().busy = false;
    }
}

impl LiveJob {
    /// The function asks the group's gate itself.
    fn has_own_gate(&self) -> bool {
        matches!(self.membership, Membership::Declared(_))
    }
}

/// Written when it is dropped, so that also a body that its runtime drops half-way leaves a record. The fields after `run`
/// are dropped after it: who waits for the end of the body finds the job free.
struct Report {
    term: Option<Term>,
    began: Instant,
    outcome: RunOutcome,
    run: Run,
    _begun: Begun,
}

impl Drop for Report {
    fn drop(&mut self) {
        let (job, duration) = (self.run.job(), self.began.elapsed());
        let tick = self.run.tick.unix_seconds();
        let (name, group, term) = (&*job.name, job.group_name(), self.term.map(Term::get));
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
        }
        let outcome = std::mem::replace(&mut self.outcome, RunOutcome::Ok);
        job.record().ended(LastRun { tick: instant(tick), term: self.term, outcome, duration });
    }
}

/// `None`: cancelled; the inner error: a panic.
fn outcome(ended: Option<Result<Outcome, String>>) -> RunOutcome {
    match ended {
        Some(Ok(Ok(()))) => RunOutcome::Ok,
        Some(Ok(Err(error))) => RunOutcome::Failed(error.to_string()),
        Some(Err(panic)) => RunOutcome::Panicked(panic),
        None => RunOutcome::Cancelled,
    }
}

/// The future, with its panic as an error. State that a panic leaves broken is the job's own: a run shares nothing with the
/// scheduler.
async fn caught<F: Future>(body: F) -> Result<F::Output, String> {
    let mut body = pin!(body);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(message(panic.as_ref()))),
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
