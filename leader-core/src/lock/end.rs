//! The end of work under a lock: what it resulted in counts only if the lock was held until then.

use std::time::Duration;

use super::{LockError, LockGuard};

/// What became of the work, and why that does not count.
pub(crate) type Lost<T> = (LockError, Option<T>);

impl LockGuard {
    /// Gives the lock back after work that came to this end; `None`: it was cancelled. The store has confirmed that, or has not
    /// answered in time.
    pub(crate) async fn end<T>(self, done: Option<T>) -> Result<T, Lost<T>> {
        match done {
            Some(done) if self.is_held() => match self.release().await {
                Err(error) if error.is_lost() => Err((error, Some(done))),
                // It was held to the end of the work; whatever became of its release.
                _ => Ok(done),
            },
            done => {
                let error = self.loss();
                if self.is_held() {
                    // The grace of a shutdown is over; the work is gone, so that the lock can go, too.
                    let _ = self.release().await;
                }
                Err((error, done))
            }
        }
    }

    /// The same for work that is done once: if it has succeeded, that is noted, for so long or for ever.
    pub(crate) async fn end_once<T>(
        self,
        done: Option<T>,
        has_succeeded: impl FnOnce(&T) -> bool,
        keep: Option<Duration>,
    ) -> Result<T, Lost<T>> {
        match done {
            Some(done) if self.is_held() && has_succeeded(&done) => match self.complete(keep).await {
                Ok(()) => Ok(done),
                Err(error) => Err((error, Some(done))),
            },
            done => self.end(done).await,
        }
    }
}
