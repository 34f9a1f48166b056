//! The life of one connection, whichever client it is of: used until its first failure, and then never again.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::super::address::Address;
use super::super::connection::Failure;
use super::failure;

/// Dropping it ends the connection.
pub(in super::super) struct Life {
    address: Arc<Address>,
    /// Why it ended, once it has.
    end: Arc<watch::Sender<Option<Failure>>>,
    /// A call on it got no answer.
    given_up: AtomicBool,
    /// Calls without an answer yet.
    under_way: AtomicUsize,
    tasks: Vec<AbortHandle>,
}

impl Life {
    /// Of a connection that is over when `course` is, by what that says. These tasks end with it.
    pub(in super::super) fn begin(
        address: Arc<Address>,
        course: impl Future<Output = Failure> + Send + 'static,
        mut tasks: Vec<AbortHandle>,
    ) -> Self {
        let end = Arc::new(watch::Sender::new(None));
        let course = tokio::spawn({
            let end = Arc::clone(&end);
            async move { finish(&end, course.await) }
        });
        tasks.push(course.abort_handle());
        Self { address, end, given_up: AtomicBool::new(false), under_way: AtomicUsize::new(0), tasks }
    }

    /// One call: `sending` sends a command when it is polled first, and not after `timeout`.
    ///
    /// After any failure, and after a future that was dropped before it was ready, no further command is sent: it would be
    /// queued behind one that is stuck, and sent when nobody expects it any more. Commands that are under way go on.
    pub(in super::super) async fn call<T>(
        &self,
        timeout: Duration,
        sending: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        if timeout.is_zero() {
            return Err(Failure::TimedOut);
        }
        if let Some(cause) = self.end.borrow().clone() {
            return Err(cause);
        }
        if self.given_up.load(Ordering::Relaxed) {
            return Err(failure::given_up(&self.address));
        }
        let mut call = Call::begin(self);
        let answer = tokio::select! {
            biased;
            answer = sending => answer,
            cause = self.ended() => Err(cause),
        };
        call.answered = answer.is_ok();
        answer
    }

    pub(in super::super) fn has_ended(&self) -> bool {
        self.end.borrow().is_some() || self.given_up.load(Ordering::Relaxed)
    }

    /// Resolves when the connection has ended.
    pub(in super::super) async fn ended(&self) -> Failure {
        let mut end = self.end.subscribe();
        let cause = end.wait_for(Option::is_some).await.ok().and_then(|cause| cause.clone());
        cause.unwrap_or_else(|| failure::ended(&self.address))
    }

    fn abort(&self) {
        finish(&self.end, failure::ended(&self.address));
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.abort();
    }
}

/// The first cause is the one that counts.
fn finish(end: &watch::Sender<Option<Failure>>, cause: Failure) {
    end.send_if_modified(|known| known.is_none().then(|| *known = Some(cause)).is_some());
}

/// A call that is under way. If it is not answered when this is dropped, its connection takes no more calls, and ends with
/// the last of those that it has.
struct Call<'a> {
    life: &'a Life,
    answered: bool,
}

impl<'a> Call<'a> {
    fn begin(life: &'a Life) -> Self {
        life.under_way.fetch_add(1, Ordering::Relaxed);
        Self { life, answered: false }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let Life { given_up, under_way, .. } = self.life;
        given_up.fetch_or(!self.answered, Ordering::Relaxed);
        if under_way.fetch_sub(1, Ordering::Relaxed) == 1 && given_up.load(Ordering::Relaxed) {
            self.life.abort();
        }
    }
}
