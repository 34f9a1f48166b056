//! One run of a job: from a tick that is due, or the wish of a person, to the record of how its body ended.

mod report;

use std::any::Any;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use leader_core::__private::{ByHand, Entry, Hold};
use leader_core::Lease;
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

use self::report::{Report, Step};
use crate::by_hand::{Asked, Denied};
use crate::engine::Engine;
use crate::job::{Body, Membership};
use crate::live_job::LiveJob;
use crate::orders::Order;
use crate::registration::{BoxFuture, Context, Outcome};
use crate::status::{LastRun, RunOutcome};
use crate::tick::{Tick, unix_seconds};

/// A tick that is to be run.
pub(crate) struct Run {
    engine: Arc<Engine>,
    job: Arc<LiveJob>,
    tick: Tick,
    origin: Origin,
    /// Who asked for it by hand; `None` for a tick's run.
    asked: Option<Asked>,
    /// How it went, once it has ended.
    went: Option<LastRun>,
    /// Keeps others from running the job beside a run by hand.
    alone: Option<ByHand>,
}

/// Where a run comes from.
enum Origin {
    /// This instance's own timetable: each instance runs it. While it lives, no other run of the job is made.
    Own,
    /// The job's course: a claim in the ledger, or a run by hand.
    Course(Permission),
}

/// What the course permits.
struct Permission {
    /// What the course knows the run by.
    nonce: u128,
    /// From the gate, which was asked before the course was.
    entry: Option<Entry>,
    ends: Ends,
    /// Whether the course was told how it ended.
    told: bool,
}

/// When a run has to end before its body does, because another instance may run the job.
enum Ends {
    /// The course says so.
    Told(oneshot::Receiver<()>),
    /// With its lease.
    WithLease,
    /// Whichever is first.
    ToldOrWithLease(oneshot::Receiver<()>),
    /// Never.
    Freely,
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
    step: Step,
    report: Report,
}

impl Run {
    /// Of a job that each instance runs, and that was marked as busy.
    pub(crate) fn own(engine: Arc<Engine>, job: Arc<LiveJob>, tick: Tick, asked: Option<Asked>) -> Self {
        Self { engine, job, tick, origin: Origin::Own, asked, went: None, alone: None }
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
        // A program that knows the job by its old name may lead next, and knows nothing of a run under the new one.
        let ends = match &job.renamed_from {
            Some(_) if job.policy.is_exclusive() => Ends::ToldOrWithLease(cut),
            _ => Ends::Told(cut),
        };
        let permission = Permission { nonce, entry, ends, told: false };
        Self { engine, job, tick, origin: Origin::Course(permission), asked: None, went: None, alone: None }
    }

    /// By hand, of a job that runs where its group is led.
    pub(crate) fn by_hand(
        engine: Arc<Engine>,
        job: Arc<LiveJob>,
        nonce: u128,
        entry: Entry,
        alone: Option<ByHand>,
        asked: Asked,
    ) -> Self {
        job.record().busy += 1;
        let ends = if alone.is_some() { Ends::WithLease } else { Ends::Freely };
        let permission = Permission { nonce, entry: Some(entry), ends, told: false };
        let tick = Tick::at(SystemTime::now()).by_hand();
        Self { engine, job, tick, origin: Origin::Course(permission), asked: Some(asked), went: None, alone }
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
        let ends = self.take_ends();
        let Some(Start { permit, context, span, step, mut report }) = self.begin() else { return };
        let lease = permit.lease();
        let every_step = matches!(ends, Ends::WithLease | Ends::ToldOrWithLease(_));
        let body = stepping(step, every_step, caught(async move { start(context).await }).instrument(span));
        let body: BoxFuture<'_, _> = if engine.scoped { Box::pin(engine.elector.scope(body)) } else { Box::pin(body) };
        let body = async {
            match permit {
                Permit::Led(entry) if job.has_own_gate() => entry.run_claimed(body).await.flatten(),
                Permit::Led(entry) if job.cancel_on_loss => entry.run_cancellable(body).await.flatten(),
                Permit::Led(entry) => entry.run(body).await,
                Permit::Ungated(_until_it_ends) => body.await,
            }
        };
        report.outcome = tokio::select! {
            biased;
            // First: another instance may run the job already.
            () = ends.reached(lease) => RunOutcome::Cancelled,
            ended = body => outcome(ended),
            () = timeout(job.policy.timeout) => RunOutcome::TimedOut,
        };
        report.tell().await;
    }

    fn on_thread(self, call: &(dyn Fn(Context) -> Outcome + Send + Sync)) {
        let engine = Arc::clone(&self.engine);
        let job = Arc::clone(&self.job);
        let Some(Start { permit, context, span, step, mut report }) = self.begin() else { return };
        let scope = engine.scoped.then(|| engine.elector.enter());
        let body = || {
            let call = || span.in_scope(|| catch_unwind(AssertUnwindSafe(|| call(context))));
            step.begins().then(|| call().map_err(|p| message(p.as_ref())))
        };
        report.outcome = outcome(match permit {
            Permit::Led(entry) if job.has_own_gate() => entry.run_sync_claimed(body),
            Permit::Led(entry) => entry.run_sync(body),
            Permit::Ungated(_until_it_ends) => body(),
        });
        drop(scope);
        report.tell_from_thread();
    }

    fn take_ends(&mut self) -> Ends {
        match &mut self.origin {
            Origin::Own => Ends::Freely,
            Origin::Course(permission) => std::mem::replace(&mut permission.ends, Ends::Freely),
        }
    }

    /// All that has to say yes to the run is asked here, as the last thing but one before the body: what was true when it was
    /// spawned may be over by now. Each yes also registers the body with whoever waits for its end.
    fn begin(mut self) -> Option<Start> {
        let engine = Arc::clone(&self.engine);
        let job = Arc::clone(&self.job);
        // One that was taken out meanwhile begins no more.
        engine.job(job.id)?;
        let begun = engine.bodies.begin(&job)?;
        let mut held: Option<Hold> = None;
        let began_at = SystemTime::now();
        if self.tick.is_manual() {
            // It may have waited for a thread.
            self.tick = Tick::at(began_at).by_hand();
        }
        let (permit, tick) = match &mut self.origin {
            Origin::Course(permission) => {
                permission.entry.as_ref().filter(|entry| entry.lease().is_held())?;
                let entry = permission.entry.take()?;
                held = Some(entry.hold());
                entry.set_cancellable(job.cancel_on_loss && matches!(job.body, Body::Async(_)));
                let tick = self.tick.clone().with_lease(entry.lease().clone());
                (Permit::Led(entry), tick)
            }
            Origin::Own => (Permit::Ungated(Box::new(engine.elector.__begin_ungated(&job.name)?)), self.tick.clone()),
        };
        let term = tick.lease().map(Lease::term);
        let span = tracing::info_span!(
            target: "leader", "leader.cron.tick",
            job = %job.name, tick = unix_seconds(tick.intended()), group = job.group_name(), term = term.map(leader_core::Term::get)
        );
        let step = Step::new(Arc::clone(&job), permit.lease());
        let context = Context::new(Arc::clone(&engine.data), tick);
        let report = Report::new(self, began_at, term, step.clone(), held, begun);
        Some(Start { permit, context, span, step, report })
    }

    /// The body never began: the tick is due again.
    fn refuse(&mut self, held: Option<Hold>) {
        if let Origin::Course(permission) = &mut self.origin
            && !std::mem::replace(&mut permission.told, true)
        {
            let held = held.or_else(|| permission.entry.as_ref().map(Entry::hold));
            self.engine.order(Order::Refused { job: self.job.id, nonce: permission.nonce, held });
        }
    }
}

impl Permit {
    fn lease(&self) -> Option<Lease> {
        match self {
            Self::Led(entry) => Some(entry.lease().clone()),
            Self::Ungated(_) => None,
        }
    }
}

impl Ends {
    async fn reached(self, lease: Option<Lease>) {
        match (self, lease) {
            (Self::Told(cut), _) | (Self::ToldOrWithLease(cut), None) => told(cut).await,
            (Self::WithLease, Some(lease)) => lease.lost().await,
            (Self::ToldOrWithLease(cut), Some(lease)) => tokio::select! {
                () = told(cut) => {}
                () = lease.lost() => {}
            },
            (Self::WithLease, None) | (Self::Freely, _) => pending().await,
        }
    }
}

async fn told(cut: oneshot::Receiver<()>) {
    // Without a sender it will not be cut any more.
    if cut.await.is_err() {
        pending().await
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.refuse(None);
        self.job.record().busy -= 1;
        self.alone = None;
        // Last: who is told may ask for another run at once.
        if let Some(asked) = self.asked.take() {
            let is_out = || self.engine.job(self.job.id).is_none();
            // A job without a group needs no lease.
            let stopped = self.engine.bodies.is_closed() || self.job.group.is_none() || is_out();
            let denied = || if stopped { Denied::Stopped } else { Denied::NotLeading };
            // Who asked may have gone.
            let _ = asked.send(self.went.take().ok_or_else(denied));
        }
    }
}

impl LiveJob {
    /// The function asks the group's gate itself.
    fn has_own_gate(&self) -> bool {
        matches!(self.membership, Membership::Declared(_))
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

/// The body, whose first step is taken only if the lease is held then; if `every_step`, so is each. `None`: one was not.
async fn stepping<F: Future>(step: Step, every_step: bool, body: F) -> Option<F::Output> {
    let mut body = pin!(body);
    poll_fn(|cx| {
        if !step.goes_on(every_step) {
            return Poll::Ready(None);
        }
        body.as_mut().poll(cx).map(Some)
    })
    .await
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
