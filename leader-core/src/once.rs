//! Work that is to be done once, in the whole fleet and for good.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::elector::Elector;
use crate::lock::mail::Mail;
use crate::lock::name::WORK;
use crate::lock::{LockBuilder, LockError, LockGuard, current_elector};
use crate::shared::Shared;
use crate::store::{InvalidLockKey, LockKey};

impl Elector {
    /// Work that is done once in the whole fleet, such as the migration to a version: at most one instance at a time runs it,
    /// and once it has succeeded nobody runs it again.
    ///
    /// `key` is 1 to 507 bytes without control characters, and says what the work is: `migrate:3`. If the work fails, or its
    /// instance dies, it is undone, and whoever asks next runs it again, from its beginning. So it has to be *idempotent up to
    /// its commit*, like a migration in one transaction: an instance may die after the commit and before this is noted.
    ///
    /// Why not let the leader do it? In a rolling update the old leader goes on leading while each new instance starts as a
    /// follower and skips the work; it runs nowhere. And old and new versions run side by side, each led by the other.
    ///
    /// ```
    /// # async fn migrate() -> Result<(), std::io::Error> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let elector = leader_core::Elector::start(leader_core::Config::new("memory:once-of-elector")).await?;
    /// use leader_core::Once;
    /// use std::time::Duration;
    ///
    /// let migration = elector.once("migrate:3").wait(Duration::from_secs(60));
    /// let work = || async {
    ///     migrate().await?;
    ///     Ok::<_, Box<dyn std::error::Error>>("by us")
    /// };
    /// match migration.run(work).await? {
    ///     Once::Ran(how) => println!("done {how}"),
    ///     Once::Done => println!("done before"),
    ///     Once::Busy => return Err("another instance is still at it".into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn once(&self, key: impl AsRef<str>) -> OnceBuilder {
        OnceBuilder::new(Some(Arc::clone(&self.0.shared)), key.as_ref())
    }

    /// Forgets that the work of `key` is done: it can be run once more. `Ok(false)`: it was not done.
    ///
    /// # Errors
    /// [`LockError::InvalidKey`]; [`LockError::NotForgotten`]: the store did not confirm it; [`LockError::Stopped`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may be forgotten all the same.
    pub async fn forget(&self, key: impl AsRef<str>) -> Result<bool, LockError> {
        let key = key_of(key.as_ref())?;
        let (reply, answer) = oneshot::channel();
        // If the driver has ended, the reply is dropped with the question.
        self.0.shared.locks.send(Mail::Forget { key: key.clone(), reply });
        answer.await.unwrap_or(Err(LockError::Stopped { key }))
    }
}

/// Work that is done once, of the current elector: the one of the [`scope`](Elector::scope), else the process's own. See
/// [`Elector::once`].
///
/// Without an elector nothing is run.
pub fn once(key: impl AsRef<str>) -> OnceBuilder {
    OnceBuilder::new(current_elector(), key.as_ref())
}

fn key_of(key: &str) -> Result<LockKey, InvalidLockKey> {
    LockKey::prefixed(WORK, key)
}

/// What became of work that is done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Once<T> {
    /// It was run here, has succeeded, and that is noted.
    Ran(T),
    /// It was done before, here or elsewhere.
    Done,
    /// Another instance is at it, and the time for waiting is over.
    Busy,
}

/// How work is to be done once. See [`Elector::once`].
///
/// How soon the work of an instance that died is free depends on the store. On SQLite it is at once, for others on that host
/// see that the process has gone. On Redis it is when the [`ttl`](Self::ttl) is over: whoever is to take the work over has to
/// [`wait`](Self::wait) for longer than that.
///
/// That work is done is known to the store and to nobody else. A store that loses its memory forgets it, as a Redis server
/// does that restarts without persistence, or evicts keys: then the work is done once more. So it has to bear that, or to find
/// out by itself that there is nothing left to do.
#[must_use = "the work is done by `run`"]
pub struct OnceBuilder {
    lock: LockBuilder,
    keep: Option<Duration>,
}

impl OnceBuilder {
    fn new(elector: Option<Arc<Shared>>, key: &str) -> Self {
        Self { lock: LockBuilder::new(elector, key_of(key)).once(), keep: None }
    }

    /// How long the claim on the work outlives an instance that died at it: 100 ms to 1 h, the elector's ttl by default. After
    /// that it is taken over. It is renewed for as long as the work runs.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lock = self.lock.ttl(ttl);
        self
    }

    /// How long to wait for another instance that is at it: not at all by default. Whoever waits is told when the work is done,
    /// or takes it over if it fails. To outlast one that died at it, on Redis, this has to exceed the [`ttl`](Self::ttl) of that
    /// one.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.lock = self.lock.wait(wait);
        self
    }

    /// How long the work counts as done: for ever by default. Without an end the store keeps a note for each key, so keys that
    /// are made of data should have one.
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Runs the work, unless it is done, or another instance is at it.
    ///
    /// Inside of the work, [`held_lock`](crate::held_lock) gives its claim, with a fencing token.
    ///
    /// The work is dropped at its next await when its claim is lost (the store was away for too long), or the grace of a
    /// shutdown is over.
    ///
    /// # Errors
    /// The work's own: it is undone. And a [`LockError`] made into one:
    ///
    /// - [`LockError::Store`], [`LockError::InvalidKey`], [`LockError::InvalidTtl`], [`LockError::NotStarted`]: nothing was run.
    /// - [`LockError::Stopped`]: nothing was run, or the work was dropped because the elector ends.
    /// - [`LockError::Lost`]: the claim was lost before the work had ended, or before that could be noted.
    /// - [`LockError::Unconfirmed`]: the work has run and succeeded, but no answer has confirmed, for as long as the claim
    ///   lasted, that this is noted.
    ///
    /// In each case the work is undone, and is run again by whoever asks next, but for one: with `Unconfirmed` the store may
    /// have noted it while every answer was lost. Whoever asks next is told which.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, and it is undone. Once the work has succeeded, that is noted though nobody waits.
    pub async fn run<T, E, F>(self, work: impl FnOnce() -> F) -> Result<Once<T>, E>
    where
        F: Future<Output = Result<T, E>>,
        E: From<LockError>,
    {
        let (guard, keep) = match self.claim().await {
            Ok((Some(guard), keep)) => (guard, keep),
            Ok((None, _)) => return Ok(Once::Done),
            Err(LockError::Busy { .. }) => return Ok(Once::Busy),
            Err(error) => return Err(error.into()),
        };
        let done = match guard.run_sync(work) {
            Some(work) => guard.run_cancellable(work).await,
            None => None,
        };
        match guard.end_once(done, Result::is_ok, keep).await {
            Ok(done) => done.map(Once::Ran),
            Err((_, Some(Err(error)))) => Err(error),
            Err((error, _)) => Err(error.into()),
        }
    }

    /// Claims the work, and says for how long it is to count as done; no claim: it is done.
    pub(crate) async fn claim(self) -> Result<(Option<LockGuard>, Option<Duration>), LockError> {
        Ok((self.lock.attempt().await?, self.keep))
    }
}

impl fmt::Debug for OnceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceBuilder").field("lock", &self.lock).field("keep", &self.keep).finish()
    }
}
