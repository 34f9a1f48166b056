//! One run of a job: from a tick that is due to the record of how its body ended.

use std::any::Any;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use leader_core::__private::{Entry, Hold};
use leader_core::Term;
use leader_core::store::{RunEnd, RunOutcome as Ending};
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

use crate::bodies::Begun;
use crate::engine::Engine;
use crate::job::{Body, Membership};
use crate::live_job::LiveJob;
use crate::orders::{Order, Tell};
use crate::registration::{BoxFuture, Context, Outcome};
use crate::status::{LastRun, RunOutcome};
use crate::tick::{Tick, instant};

/// A tick that is to be run.
pub(crate) struct Run {
    engine: Arc<Engine>,
    job: Arc<LiveJob>,
    tick: Tick,
    origin: Origin,
}

/// Where a tick comes from.
enum Origin {
    /// This instance's own timetable: each instance runs it. While it lives, no other run of the job is made.
    Own,
    /// A claim in the ledger.
    Claim(Claim),
}

struct Claim {
    nonce: u128,
    /// From the gate, which was asked before the claim was.
    entry: Option<Entry>,
    /// Resolves when another instance may run the job.
    cut: Option<oneshot::Receiver<()>>,
    /// Whether the course was told how it ended.
    told: bool,
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
    /// Of a job that each instance runs, and that was marked as busy.
    pub(crate) fn own(engine: Arc<Engine>, job: Arc<LiveJob>, tick: Tick) -> Self {
        Self { engine, job, tick, origin: Origin::Own }
    }

    /// Of a tick that was claimed by this nonce.
    pub(crate) fn claimed(
        engine: Arc<Engine>,
        job: Arc<LiveJob>,
        tick: Tick,
        nonce: u128,
        entry: Option<Entry>,
        cut: oneshot::Receiver<()>,
    ) -> Self {
        job.record().busy += 1;
        let claim = Claim { nonce, entry, cut: Some(cut), told: false };
        Self { engine, job, tick, origin: Origin::Claim(claim) }
    }

    /// Runs the body, on the current runtime.
    pub(crate) fn spawn(self) {
        match self.job.body.clone() {
            Body::Async(start) => drop(tokio::spawn(self.in_task(start))),
            Body::Blocking(call) => drop(tokio::task::spawn_blocking(move || self.on_thread(&*call))),
        }
    }

    async fn in_task(mut self, start: Arc<dyn Fn(Context) -> BoxFuture<'static, Outcome> + Send + Sync>) {
        let engine = Arc::clone(&self.engine);
        let job = Arc::clone(&self.job);
        let cut = self.take_cut();
        let Some(Start { permit, context, span, mut report }) = self.begin() else { return };
        let body = caught(async move { start(context).await }).instrument(span);
        let body: BoxFuture<'_, _> = if engine.scoped { Box::pin(engine.elector.scope(body)) } else { Box::pin(body) };
        let body = async {
            match permit {
                Permit::Led(entry) if job.has_own_gate() => entry.run_claimed(body).await,
                Permit::Led(entry) if job.cancel_on_loss => entry.run_cancellable(body).await,
                Permit::Led(entry) => Some(entry.run(body).await),
                Permit::Ungated(_until_it_ends) => Some(body.await),
            }
        };
        report.outcome = tokio::select! {
            biased;
            // First: another instance may run the job already.
            () = cut => RunOutcome::Cancelled,
            ended = body => outcome(ended),
            () = timeout(job.policy.timeout) => RunOutcome::TimedOut,
        };
        report.tell().await;
    }

    fn on_thread(self, call: &(dyn Fn(Context) -> Outcome + Send + Sync)) {
        let engine = Arc::clone(&self.engine);
        let job = Arc::clone(&self.job);
        let Some(Start { permit, context, span, mut report }) = self.begin() else { return };
        let scope = engine.scoped.then(|| engine.elector.enter());
        let body =
            || span.in_scope(|| catch_unwind(AssertUnwindSafe(|| call(context))).map_err(|p| message(p.as_ref())));
        report.outcome = outcome(Some(match permit {
            Permit::Led(entry) if job.has_own_gate() => entry.run_sync_claimed(body),
            Permit::Led(entry) => entry.run_sync(body),
            Permit::Ungated(_until_it_ends) => body(),
        }));
        drop(scope);
        report.tell_from_thread();
    }

    fn take_cut(&mut self) -> impl Future<Output = ()> + use<> {
        let cut = match &mut self.origin {
            Origin::Own => None,
            Origin::Claim(claim) => claim.cut.take(),
        };
        async move {
            let Some(cut) = cut else { return pending().await };
            // Without a sender it will not be cut any more.
            if cut.await.is_err() {
                pending().await
            }
        }
    }

    /// All that has to say yes to the tick is asked here, as the last thing before the body: what was true when it was
    /// spawned may be over by now. Each yes also registers the body with whoever waits for its end.
    fn begin(mut self) -> Option<Start> {
        let engine = Arc::clone(&self.engine);
        let job = Arc::clone(&self.job);
        let begun = engine.bodies.begin(&job)?;
        let mut held: Option<Hold> = None;
        let (permit, tick) = match &mut self.origin {
            Origin::Claim(claim) => {
                claim.entry.as_ref().filter(|entry| entry.lease().is_held())?;
                let entry = claim.entry.take()?;
                held = Some(entry.hold());
                entry.set_cancellable(job.cancel_on_loss && matches!(job.body, Body::Async(_)));
                let tick = self.tick.clone().with_lease(entry.lease().clone());
                (Permit::Led(entry), tick)
            }
            Origin::Own => (Permit::Ungated(Box::new(engine.elector.__begin_ungated(&job.name)?)), self.tick.clone()),
        };
        job.record().runs += 1;
        let term = tick.lease().map(leader_core::Lease::term);
        let span = tracing::info_span!(
            target: "leader", "leader.cron.tick",
            job = %job.name, tick = tick.unix_seconds(), group = job.group_name(), term = term.map(Term::get)
        );
        let context = Context::new(Arc::clone(&engine.data), tick);
        let (began, began_at) = (Instant::now(), SystemTime::now());
        let outcome = RunOutcome::Cancelled;
        let report = Report { term, began, began_at, outcome, run: self, held, _begun: begun };
        Some(Start { permit, context, span, report })
    }

    /// The body never began: the tick is due again.
    fn refuse(&mut self) {
        if let Origin::Claim(claim) = &mut self.origin
            && !std::mem::replace(&mut claim.told, true)
        {
            let held = claim.entry.as_ref().map(Entry::hold);
            self.engine.order(Order::Refused { job: self.job.id, nonce: claim.nonce, held });
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.refuse();
        self.job.record().busy -= 1;
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
    began_at: SystemTime,
    outcome: RunOutcome,
    run: Run,
    /// Keeps the lease from being given back before the ledger knows of the end.
    held: Option<Hold>,
    _begun: Begun,
}

impl Report {
    /// Tells the course how the run ended. Resolves when the ledger knows; without an answer in the time of some calls, it is
    /// told in the background.
    async fn tell(&mut self) {
        let (tell, told) = oneshot::channel();
        if self.end(Tell::Task(tell)) {
            // In time, or not: the course goes on telling it.
            let _ = tokio::time::timeout(self.patience(), told).await;
        }
    }

    /// The same on a thread that may block; the runtime may be about to end.
    fn tell_from_thread(&mut self) {
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
        let Origin::Claim(claim) = &mut self.run.origin else { return false };
        if std::mem::replace(&mut claim.told, true) {
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
        let (job, nonce) = (self.run.job.id, claim.nonce);
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
        job.record().ended(LastRun { tick: instant(tick), term: self.term, outcome, duration });
    }
}

/// Resolves when a run has taken longer than it may.
async fn timeout(after: Option<Duration>) {
    match after {
        Some(after) => tokio::time::sleep(after).await,
        None => pending().await,
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
