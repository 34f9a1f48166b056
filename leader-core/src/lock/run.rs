//! Work that runs under a lock, and is dropped when the lock is lost.
//!
//! A future written by hand: an `async fn` around the work would hold it twice.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::HeldLock;

pin_project! {
    /// Runs the work to its end, or drops it at its next await once the lock is lost, or the grace of a shutdown is over:
    /// `None`. The lock is looked at before each step, so that not even a step begins after it was lost.
    #[must_use = "futures do nothing unless they are awaited"]
    pub(super) struct UntilLost<F> {
        #[pin]
        work: Option<F>,
        held: HeldLock,
        cancelled: Pin<Box<dyn Future<Output = ()> + Send>>,
    }
}

impl<F> UntilLost<F> {
    pub(super) fn new(held: HeldLock, work: F) -> Self {
        let waits = held.clone();
        Self { work: Some(work), held, cancelled: Box::pin(async move { waits.cancelled().await }) }
    }
}

impl<F: Future> Future for UntilLost<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let mut this = self.project();
        let Some(work) = this.work.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        if this.cancelled.as_mut().poll(cx).is_ready() || !this.held.is_held() {
            // Here and now, before whoever awaits it gives the lock back.
            this.work.set(None);
            return Poll::Ready(None);
        }
        work.poll(cx).map(Some)
    }
}
