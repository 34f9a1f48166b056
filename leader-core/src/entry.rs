//! Running gated work: what it knows of its lease, and how it is cancelled.
//!
//! The futures here are written by hand: an `async fn` around a body would hold it twice, as its argument and while it is
//! awaited.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::futures::TaskLocalFuture;

use crate::gate::OnLoss;
use crate::lease::Lease;
use crate::scope::Special;
use crate::work::Ticket;

tokio::task_local! {
    static CONTEXT: Context;
}

/// What gated work runs under.
pub(crate) struct Context {
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
/// task. A lock that the work runs under beside that is [`held_lock`](crate::held_lock).
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

/// What was entered for a body, as its own gate finds it.
pub(crate) enum Claim {
    /// Nothing was: the gate is asked as usual.
    None,
    /// The body runs under this entry.
    Entered(Entry),
    /// The lease ended before the body came to its gate: it must not begin, under no other lease either.
    Ended,
}

/// What was entered for the body that is about to be gated, if it is of this group. Taken once: whatever else that body
/// calls is gated again. From here on the gate says whether the work may be cancelled, as whoever entered cannot know it.
pub(crate) fn claimed(group: &str, on_loss: OnLoss) -> Claim {
    let claim = |context: &Context| {
        let lease = Some(&context.lease).filter(|lease| lease.group().as_str() == group)?.clone();
        Some((lease, context.claim.take()?))
    };
    let Some((lease, ticket)) = CONTEXT.try_with(claim).ok().flatten() else { return Claim::None };
    if !lease.is_held() {
        ticket.refuse();
        return Claim::Ended;
    }
    ticket.set_cancellable(on_loss == OnLoss::Cancel);
    Claim::Entered(Entry { lease, ticket })
}

/// See [`Entry::hold`].
#[derive(Debug)]
pub struct Hold(Arc<Ticket>);

impl Hold {
    /// From here on a drain whose grace is over gives it a moment, and goes on.
    pub fn set_cancellable(&self) {
        self.0.set_cancellable(true);
    }

    /// The body's own gate found that the lease had ended: the body did not begin.
    #[must_use]
    pub fn was_refused(&self) -> bool {
        self.0.was_refused()
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

    /// Until it is dropped, the work counts as running, though its body may have ended: the lease is not given back.
    pub fn hold(&self) -> Hold {
        Hold(Arc::clone(&self.ticket))
    }

    /// Whether a drain whose grace is over goes on without the work, once it was given a moment.
    pub fn set_cancellable(&self, cancellable: bool) {
        self.ticket.set_cancellable(cancellable);
    }

    /// Runs `body` to its end, also if the lease is lost meanwhile.
    pub fn run<F: Future>(self, body: F) -> Running<F> {
        let context = Context::new(self.lease.clone(), None);
        Running { body: CONTEXT.scope(context, body), _entry: self }
    }

    /// Runs `body`, but drops it at its next await once the lease is lost, or the grace of a drain is over: `None`. The
    /// view is looked at before each step of the body, so that not even a step begins after it has ended.
    pub fn run_cancellable<F: Future>(self, body: F) -> Cancellable<F> {
        let lease = self.lease.clone();
        let cancelled = Box::pin(async move { lease.cancelled().await });
        Cancellable { body: Some(self.run(body)), cancelled }
    }

    /// Runs a body that does not await.
    pub fn run_sync<T>(self, body: impl FnOnce() -> T) -> T {
        CONTEXT.sync_scope(Context::new(self.lease.clone(), None), body)
    }

    /// As [`run`](Self::run), for a body whose own gate, if it has one of the same group, is this entry. `None` if that gate
    /// cancelled the body.
    pub fn run_claimed<F: Future>(self, body: F) -> Claimed<F> {
        let context = Context::new(self.lease.clone(), Some(Arc::clone(&self.ticket)));
        Claimed { body: CONTEXT.scope(context, body), _special: Special::new(), entry: self }
    }

    /// As [`run_sync`](Self::run_sync), for a body whose own gate, if it has one of the same group, is this entry.
    pub fn run_sync_claimed<T>(self, body: impl FnOnce() -> T) -> T {
        let _special = Special::new();
        CONTEXT.sync_scope(Context::new(self.lease.clone(), Some(Arc::clone(&self.ticket))), body)
    }
}

pin_project! {
    /// See [`Entry::run`].
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Running<F> {
        #[pin]
        body: TaskLocalFuture<Context, F>,
        // Behind the body: the work is listed until its body is dropped.
        _entry: Entry,
    }
}

impl<F: Future> Future for Running<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        self.project().body.poll(cx)
    }
}

pin_project! {
    /// See [`Entry::run_cancellable`].
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Cancellable<F> {
        #[pin]
        body: Option<Running<F>>,
        cancelled: Pin<Box<dyn Future<Output = ()> + Send>>,
    }
}

impl<F: Future> Future for Cancellable<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<F::Output>> {
        let mut this = self.project();
        let Some(running) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let entry = &running.as_ref().get_ref()._entry;
        if this.cancelled.as_mut().poll(cx).is_ready() || !entry.lease.is_held() {
            entry.ticket.cancel();
            // The body is dropped here and now, before whoever awaits it goes on.
            this.body.set(None);
            return Poll::Ready(None);
        }
        running.poll(cx).map(Some)
    }
}

pin_project! {
    /// See [`Entry::run_claimed`].
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Claimed<F> {
        #[pin]
        body: TaskLocalFuture<Context, F>,
        _special: Special,
        entry: Entry,
    }
}

impl<F: Future> Future for Claimed<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        let output = ready!(this.body.poll(cx));
        Poll::Ready((!this.entry.ticket.was_cancelled()).then_some(output))
    }
}

macro_rules! debug_by_name {
    ($($future:ident),*) => {$(
        impl<F> fmt::Debug for $future<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($future))
            }
        }
    )*};
}
debug_by_name!(Running, Cancellable, Claimed);
