//! Work that runs under a lock: what it knows of that, and how it is dropped when the lock is lost.
//!
//! A future written by hand: an `async fn` around the work would hold it twice.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::task::futures::TaskLocalFuture;

use super::{HeldLock, LockGuard};

tokio::task_local! {
    static HELD: HeldLock;
}

/// The lock that the current work runs under; `None` outside of such work.
///
/// That is the work of [`#[with_lock]`](macro@crate::with_lock) and [`#[run_once]`](macro@crate::run_once), of
/// [`LockBuilder::run`](crate::LockBuilder::run) and [`OnceBuilder::run`](crate::OnceBuilder::run); the innermost lock, if one
/// is taken under another. It is not passed on by `tokio::spawn`: move the [`HeldLock`] into the task.
///
/// ```
/// # async fn write(_: &str, _: leader_core::FencingToken) {}
/// # async fn charge() {
/// if let Some(lock) = leader_core::held_lock() {
///     // Whoever is written to refuses older tokens.
///     write("charged", lock.token()).await;
/// }
/// # }
/// ```
#[must_use]
pub fn held_lock() -> Option<HeldLock> {
    HELD.try_with(HeldLock::clone).ok()
}

impl LockGuard {
    /// Runs `work` to its end, or drops it at its next await once the lock is lost, or the grace of a shutdown is over:
    /// `None`. The lock is looked at before each step, so that not even a step begins after it was lost.
    pub(crate) fn run_cancellable<F: Future>(&self, work: F) -> UnderLock<F> {
        self.set_cancellable();
        let waits = self.held();
        UnderLock { cancelled: Some(Box::pin(async move { waits.cancelled().await })), ..self.run(work) }
    }

    /// Runs `work` to its end, also if the lock is lost meanwhile; `None`: it was lost before the work began, because nobody
    /// polled this for so long.
    pub(crate) fn run<F: Future>(&self, work: F) -> UnderLock<F> {
        UnderLock { work: Some(HELD.scope(self.held(), work)), held: self.held(), cancelled: None, begun: false }
    }

    /// Runs work that does not await; `None`: the lock was lost before the work began.
    pub(crate) fn run_sync<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.is_held().then(|| HELD.sync_scope(self.held(), work))
    }
}

pin_project! {
    /// See [`LockGuard::run_cancellable`].
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct UnderLock<F> {
        #[pin]
        work: Option<TaskLocalFuture<HeldLock, F>>,
        held: HeldLock,
        cancelled: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
        begun: bool,
    }
}

impl<F: Future> Future for UnderLock<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let mut this = self.project();
        let Some(work) = this.work.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let ends = match this.cancelled {
            Some(cancelled) => cancelled.as_mut().poll(cx).is_ready() || !this.held.is_held(),
            None => !*this.begun && !this.held.is_held(),
        };
        *this.begun = true;
        if ends {
            // Here and now, before whoever awaits it gives the lock back.
            this.work.set(None);
            return Poll::Ready(None);
        }
        work.poll(cx).map(Some)
    }
}
