//! What an expanded `#[with_lock]` or `#[run_once]` calls.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::run::UnderLock;
use super::{LockError, LockGuard};
use crate::block_on::block_on;
use crate::group::Site;
use crate::lock::{LockBuilder, lock};
use crate::once::{OnceBuilder, once};

/// A key that is put together at the call.
#[must_use]
pub fn key(text: fmt::Arguments<'_>) -> String {
    text.to_string()
}

/// A call of a function with `#[with_lock]`. The key is only looked at: it may be an argument that the body takes.
pub fn with_lock<K: AsRef<str> + ?Sized>(key: &K, site: &'static Site) -> LockCall {
    LockCall { lock: lock(key), site }
}

/// A call of a function with `#[run_once]`.
pub fn run_once<K: AsRef<str> + ?Sized>(key: &K, site: &'static Site) -> OnceCall {
    OnceCall { once: once(key), site }
}

/// See [`with_lock`].
#[derive(Debug)]
#[must_use]
pub struct LockCall {
    lock: LockBuilder,
    site: &'static Site,
}

impl LockCall {
    /// See [`LockBuilder::ttl`].
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { lock: self.lock.ttl(ttl), ..self }
    }

    /// See [`LockBuilder::wait`].
    pub fn wait(self, wait: Duration) -> Self {
        Self { lock: self.lock.wait(wait), ..self }
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// Those of [`LockBuilder::acquire`].
    pub async fn take(self) -> Result<Holding, LockError> {
        Ok(Holding { guard: self.lock.acquire().await?, site: self.site })
    }

    /// The same for a function that is not async: its thread waits.
    ///
    /// # Errors
    /// Those of [`LockBuilder::acquire`].
    pub fn take_blocking(self) -> Result<Holding, LockError> {
        block_on(self.take())
    }
}

/// See [`run_once`].
#[derive(Debug)]
#[must_use]
pub struct OnceCall {
    once: OnceBuilder,
    site: &'static Site,
}

impl OnceCall {
    /// See [`OnceBuilder::ttl`].
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { once: self.once.ttl(ttl), ..self }
    }

    /// See [`OnceBuilder::wait`].
    pub fn wait(self, wait: Duration) -> Self {
        Self { once: self.once.wait(wait), ..self }
    }

    /// See [`OnceBuilder::keep`].
    pub fn keep(self, keep: Duration) -> Self {
        Self { once: self.once.keep(keep), ..self }
    }

    /// Claims the work; `None`: it is done.
    ///
    /// # Errors
    /// Those of [`LockBuilder::acquire`].
    pub async fn take(self) -> Result<Option<HoldingOnce>, LockError> {
        let (claimed, keep) = self.once.claim().await?;
        let Some(guard) = claimed else {
            tracing::debug!(target: "leader", "{} was skipped: it was done before", self.site);
            return Ok(None);
        };
        Ok(Some(HoldingOnce { holding: Holding { guard, site: self.site }, keep }))
    }

    /// The same for a function that is not async: its thread waits.
    ///
    /// # Errors
    /// Those of [`LockBuilder::acquire`].
    pub fn take_blocking(self) -> Result<Option<HoldingOnce>, LockError> {
        block_on(self.take())
    }
}

/// The lock that a body runs under. If this is dropped without [`end`](Self::end), by a panic or by whoever drops the function's
/// future, the lock is given back without waiting for that.
#[derive(Debug)]
pub struct Holding {
    guard: LockGuard,
    site: &'static Site,
}

impl Holding {
    /// Runs the body, and drops it at its next await when the lock is lost: `None`.
    pub fn run_cancellable<F: Future>(&self, body: F) -> UnderLock<F> {
        self.guard.run_cancellable(body)
    }

    /// Runs the body to its end; `None`: the lock was lost before it began.
    pub fn run<F: Future>(&self, body: F) -> UnderLock<F> {
        self.guard.run(body)
    }

    /// Runs a body that does not await to its end; `None`: the lock was lost before it began.
    pub fn run_sync<T>(&self, body: impl FnOnce() -> T) -> Option<T> {
        self.guard.run_sync(body)
    }

    /// Gives the lock back.
    ///
    /// # Errors
    /// [`Loss`]: the lock was not held until then.
    pub async fn end<T>(self, done: Option<T>) -> Result<T, Loss<T>> {
        let site = self.site;
        self.guard.end(done).await.map_err(|(error, done)| Loss { error, done, site })
    }

    /// The same on a thread that waits.
    ///
    /// # Errors
    /// [`Loss`]: the lock was not held until then.
    pub fn end_blocking<T>(self, done: Option<T>) -> Result<T, Loss<T>> {
        block_on(self.end(done))
    }
}

/// The claim that a body runs under which is to be run once.
#[derive(Debug)]
pub struct HoldingOnce {
    holding: Holding,
    keep: Option<Duration>,
}

impl HoldingOnce {
    /// See [`Holding::run_cancellable`].
    pub fn run_cancellable<F: Future>(&self, body: F) -> UnderLock<F> {
        self.holding.run_cancellable(body)
    }

    /// See [`Holding::run_sync`].
    pub fn run_sync<T>(&self, body: impl FnOnce() -> T) -> Option<T> {
        self.holding.run_sync(body)
    }

    /// Notes that the work is done, if it has succeeded, and gives the claim back.
    ///
    /// # Errors
    /// [`Loss`]: the claim was not held until then, or it could not be noted that the work is done.
    pub async fn end<T>(self, done: Option<T>, has_succeeded: fn(&T) -> bool) -> Result<T, Loss<T>> {
        let Holding { guard, site } = self.holding;
        guard.end_once(done, has_succeeded, self.keep).await.map_err(|(error, done)| Loss { error, done, site })
    }

    /// The same on a thread that waits.
    ///
    /// # Errors
    /// [`Loss`]: the claim was not held until then, or it could not be noted that the work is done.
    pub fn end_blocking<T>(self, done: Option<T>, has_succeeded: fn(&T) -> bool) -> Result<T, Loss<T>> {
        block_on(self.end(done, has_succeeded))
    }
}

/// A lock that was not held until the end of the body: what the body resulted in, if it came to its end, does not count as a
/// success.
#[derive(Debug)]
pub struct Loss<T> {
    error: LockError,
    done: Option<T>,
    site: &'static Site,
}

impl<T> Loss<T> {
    /// The function returns what its `lost = EXPR` says, where the error is not seen.
    pub fn log(&self) {
        tracing::warn!(
            target: "leader",
            "{} returned the value of its `lost`{}: {}",
            self.site,
            if self.done.is_some() { ", though it came to its end" } else { ", and was cancelled" },
            self.error,
        );
    }
}

impl<T, E: From<LockError>> Loss<Result<T, E>> {
    /// The body's own error, if it ended in one.
    fn into_result(self) -> Result<T, E> {
        match self.done {
            Some(Err(error)) => Err(error),
            _ => Err(self.error.into()),
        }
    }
}

/// The function is skipped, as its `on_busy = "skip"` says.
pub fn log_skip(error: &LockError, site: &'static Site) {
    if error.is_busy() {
        tracing::debug!(target: "leader", "{site} was skipped: {error}");
    } else {
        // Not for what it is meant for, and the caller does not see it.
        tracing::warn!(target: "leader", "{site} was skipped: {error}");
    }
}

/// What a function returns that tells its caller by an error that it had no lock.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot tell that the lock or claim was not had, or was lost",
    label = "the caller is told by an error of this type",
    note = "return `Result<_, E>` with an error `E: From<leader_core::LockError>`",
    note = "or have the call skipped where it is not had, and say what is returned where it was lost: `on_busy = \"skip\", lost = EXPR`"
)]
pub trait CarriesLockError: Sized {
    /// The lock was not had, and the body was not run.
    fn not_had(error: LockError) -> Self;

    /// The lock was lost before the body had ended.
    fn lost(loss: Loss<Self>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<LockError>> CarriesLockError for Result<T, E> {
    fn not_had(error: LockError) -> Self {
        Err(error.into())
    }

    fn lost(loss: Loss<Self>) -> Self {
        loss.into_result()
    }
}

/// The same, of a function that is skipped where it does not have the lock.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot tell that the lock or claim was lost while the body ran",
    label = "the caller is told by an error of this type",
    note = "return `Result<_, E>` with an error `E: From<leader_core::LockError>`, or say what is returned then: `lost = EXPR`"
)]
pub trait CarriesLoss: Sized {
    /// The lock was lost before the body had ended.
    fn lost(loss: Loss<Self>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<LockError>> CarriesLoss for Result<T, E> {
    fn lost(loss: Loss<Self>) -> Self {
        loss.into_result()
    }
}

/// What work returns that is to be run once.
#[diagnostic::on_unimplemented(
    message = "`#[run_once]` cannot tell whether `{Self}` is a success",
    label = "work that is run once has succeeded or failed",
    note = "return `Result<_, E>`, where an error leaves the work undone, or `()`, which is always a success"
)]
pub trait Completes {
    /// Whether the work is done.
    fn has_succeeded(&self) -> bool;
}

#[diagnostic::do_not_recommend]
impl Completes for () {
    fn has_succeeded(&self) -> bool {
        true
    }
}

#[diagnostic::do_not_recommend]
impl<T, E> Completes for Result<T, E> {
    fn has_succeeded(&self) -> bool {
        self.is_ok()
    }
}
