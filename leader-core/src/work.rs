//! Gated work that is running: who runs, since when, under which lease; and how it is drained.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{BootInstant, Clock};
use crate::gate::OnLoss;
use crate::group::{GroupName, Site};
use crate::lease::Lease;
use crate::scope;

tokio::task_local! {
    static CONTEXT: Context;
}

/// What gated work runs under.
struct Context {
    lease: Lease,
    /// There until the body's own gate has taken it: the gate was passed for exactly that body, and is not asked a second
    /// time.
    claim: Cell<Option<Arc<Ticket>>>,
}

impl Context {
    fn new(lease: Lease, claim: Option<Arc<Ticket>>) -> Self {
        Self { lease, claim: Cell::new(claim) }
    }
}

/// The lease that the current work runs under; `None` outside of gated work.
///
/// The innermost one, if gated work calls gated work. It is not passed on by `tokio::spawn`: move the [`Lease`] into the
/// task.
///
/// ```
/// # async fn report() {
/// if let Some(lease) = leader_core::lease() {
///     tracing::info!(term = %lease.term(), "building the report");
/// }
/// # }
/// ```
#[must_use]
pub fn lease() -> Option<Lease> {
    CONTEXT.try_with(|context| context.lease.clone()).ok()
}

/// What was entered for the body that is about to be gated, if it is of this group. Taken once: whatever else that body
/// calls is gated again. From here on the gate says whether the work may be cancelled, as whoever entered cannot know it.
pub(crate) fn claimed(group: &str, on_loss: OnLoss) -> Option<Entry> {
    let claim = |context: &Context| {
        let lease = Some(&context.lease).filter(|lease| lease.group().as_str() == group)?.clone();
        Some((lease, context.claim.take()?))
    };
    let (lease, ticket) = CONTEXT.try_with(claim).ok().flatten()?;
    ticket.set_cancellable(on_loss == OnLoss::Cancel);
    Some(Entry { lease, ticket })
}

/// What is running, in a message or a status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RunningWork {
    /// The function, job or call.
    pub what: String,
    /// Its group; `None` for work that is not gated (a job that runs on every instance).
    pub group: Option<GroupName>,
    /// For how long it has been running.
    pub running_for: Duration,
}

impl fmt::Display for RunningWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:.1} s", self.what, self.running_for.as_secs_f64())?;
        match &self.group {
            Some(group) => write!(f, ", group {group})"),
            None => f.write_str(")"),
        }
    }
}

/// The name under which work is listed.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Site(Site),
    Named(Arc<str>),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Site(site) => site.fmt(f),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// The work of one group, or the ungated work of an elector.
#[derive(Debug)]
pub(crate) struct Work {
    group: Option<GroupName>,
    state: Mutex<State>,
    clock: Clock,
    /// Rung when the last work of a closed group has ended.
    idle: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    last: u64,
    running: BTreeMap<u64, Running>,
}

#[derive(Debug)]
struct Running {
    what: What,
    since: BootInstant,
    cancellable: bool,
}

impl Work {
    pub(crate) fn new(group: Option<GroupName>, clock: Clock, idle: Arc<Notify>) -> Self {
        Self { group, state: Mutex::default(), clock, idle }
    }

    /// Registers work that begins; `None` if no new work may start.
    pub(crate) fn begin(self: &Arc<Self>, what: What, cancellable: bool) -> Option<Ticket> {
        let since = self.clock.now();
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.running.insert(number, Running { what, since, cancellable });
        Some(Ticket { work: Arc::clone(self), number, cancelled: AtomicBool::new(false) })
    }

    /// No new work starts from here on.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    pub(crate) fn open(&self) {
        self.lock().closed = false;
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lock().running.is_empty()
    }

    /// Something is running that does not end by being cancelled.
    pub(crate) fn must_finish(&self) -> bool {
        self.lock().running.values().any(|r| !r.cancellable)
    }

    pub(crate) fn running(&self) -> Vec<RunningWork> {
        let now = self.clock.now();
        let state = self.lock();
        let describe = |r: &Running| RunningWork {
            what: r.what.to_string(),
            group: self.group.clone(),
            running_for: now.saturating_since(r.since),
        };
        state.running.values().map(describe).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work that is running; it has ended when this is dropped, by return, panic or cancellation.
#[derive(Debug)]
pub(crate) struct Ticket {
    work: Arc<Work>,
    number: u64,
    cancelled: AtomicBool,
}

impl Ticket {
    fn set_cancellable(&self, cancellable: bool) {
        if let Some(running) = self.work.lock().running.get_mut(&self.number) {
            running.cancellable = cancellable;
        }
    }

    fn was_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.work.lock();
        state.running.remove(&self.number);
        let ended = state.closed && state.running.is_empty();
        drop(state);
        if ended {
            self.work.idle.notify_one();
        }
    }
}

/// Permission to run one piece of gated work: the gate said yes.
#[derive(Debug)]
pub struct Entry {
    lease: Lease,
    /// Shared with the gate of the body, if that takes the entry over.
    ticket: Arc<Ticket>,
}

impl Entry {
    pub(crate) fn new(lease: Lease, ticket: Ticket) -> Self {
        Self { lease, ticket: Arc::new(ticket) }
    }

    /// The lease that the work runs under.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Runs `body` to its end, also if the lease is lost meanwhile.
    pub async fn run<F: Future>(self, body: F) -> F::Output {
        CONTEXT.scope(Context::new(self.lease.clone(), None), body).await
    }

    /// As [`run`](Self::run), for a body whose own gate, if it has one of the same group, is this entry. `None` if that gate
    /// cancelled the body.
    pub async fn run_claimed<F: Future>(self, body: F) -> Option<F::Output> {
        let _special = scope::Special::new();
        let context = Context::new(self.lease.clone(), Some(Arc::clone(&self.ticket)));
        let output = CONTEXT.scope(context, body).await;
        (!self.ticket.was_cancelled()).then_some(output)
    }

    /// As [`run_sync`](Self::run_sync), for a body whose own gate, if it has one of the same group, is this entry.
    pub fn run_sync_claimed<T>(self, body: impl FnOnce() -> T) -> T {
        let _special = scope::Special::new();
        CONTEXT.sync_scope(Context::new(self.lease.clone(), Some(Arc::clone(&self.ticket))), body)
    }

    /// Runs `body`, but drops it at its next await once the lease is lost, or the grace of a drain is over: `None`. The
    /// view is looked at before each step of the body, so that not even a step begins after it has ended.
    pub async fn run_cancellable<F: Future>(self, body: F) -> Option<F::Output> {
        let (lease, ticket) = (self.lease.clone(), Arc::clone(&self.ticket));
        let mut cancelled = pin!(lease.cancelled());
        let mut body = pin!(self.run(body));
        poll_fn(|cx| {
            if cancelled.as_mut().poll(cx).is_ready() || !lease.is_held() {
                ticket.cancelled.store(true, Ordering::Relaxed);
                return Poll::Ready(None);
            }
            body.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Runs a body that does not await.
    pub fn run_sync<T>(self, body: impl FnOnce() -> T) -> T {
        CONTEXT.sync_scope(Context::new(self.lease.clone(), None), body)
    }
}
