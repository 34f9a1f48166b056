//! Waiting for a future on a thread that has no runtime to give, or must not ask its own.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Waits on this thread: the work is done by the driver's, so that it is no harm inside a runtime either, beyond the thread that
/// stands still.
///
/// A task around it may have used up what its runtime grants it in one step. Nothing is granted anew before the step ends, and
/// it ends only after this: so what is waited for here does not count.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(tokio::task::unconstrained(future));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            // A wake-up may have been meant for whoever else waits on this thread, around this.
            std::thread::current().unpark();
            return output;
        }
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Whoever polls the task that blocks may wait on this thread as well.
    #[test]
    fn a_wake_up_that_was_meant_for_somebody_else_is_passed_on() {
        let (told, tells) = mpsc::channel();
        std::thread::spawn(move || {
            std::thread::current().unpark();
            let (answer, question) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || answer.send(1));
            let answered = block_on(question);
            std::thread::park();
            told.send(answered).expect("somebody waits for it");
        });
        assert_eq!(tells.recv_timeout(Duration::from_secs(60)), Ok(Ok(1)));
    }
}
