//! Asking for a lock.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::guard::{Claim, Outcome};
use super::machine::Rules;
use super::{HeldLock, LockError, LockGuard};
use crate::config::{MIN_TTL, Timing};
use crate::election::MAX_TTL;
use crate::elector::Elector;
use crate::scope::{self, Special};
use crate::shared::Shared;
use crate::store::{InvalidLockKey, LockKey};

impl Elector {
    /// A lock: at most one in the whole fleet has it at a time, leader or not.
    ///
    /// `key` is 1 to 512 bytes without control characters. Two locks on one elector exclude each other like those of two
    /// instances, so a task that asks for what it holds already waits for itself.
    ///
    /// ```
    /// # async fn charge() {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let elector = leader_core::Elector::start(leader_core::Config::new("memory:lock-of-elector")).await?;
    /// use std::time::Duration;
    ///
    /// let guard = elector.lock("billing:charge-run").wait(Duration::from_secs(5)).acquire().await?;
    /// charge().await;
    /// // Give the token to what is written to, and have older ones refused.
    /// println!("charged under {}", guard.token());
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, key: impl AsRef<str>) -> LockBuilder {
        LockBuilder::new(Some(Arc::clone(&self.0.shared)), LockKey::new(key))
    }
}

/// A lock of the current elector: the one of the [`scope`](Elector::scope), else the process's own.
///
/// Without an elector, taking it fails: nothing ever runs unlocked.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let error = leader_core::lock("billing:charge-run").acquire().await.unwrap_err();
/// assert!(error.to_string().contains("no elector"));
/// # }
/// ```
pub fn lock(key: impl AsRef<str>) -> LockBuilder {
    LockBuilder::new(current_elector(), LockKey::new(key))
}

/// The elector of the scope, else the process's own.
pub(crate) fn current_elector() -> Option<Arc<Shared>> {
    let scoped = if Special::any() { scope::current() } else { None };
    scoped.or_else(|| crate::bootstrap::current().map(|elector| Arc::clone(&elector.0.shared)))
}

/// How a lock is to be taken. See [`Elector::lock`].
#[must_use = "a lock is taken by `acquire` or `run`"]
pub struct LockBuilder {
    elector: Option<Arc<Shared>>,
    key: Result<LockKey, InvalidLockKey>,
    ttl: Option<Duration>,
    wait: Duration,
    renew: bool,
    once: bool,
    #[cfg(feature = "testing")]
    known_bad: Option<crate::election::KnownBad>,
}

impl LockBuilder {
    pub(crate) fn new(elector: Option<Arc<Shared>>, key: Result<LockKey, InvalidLockKey>) -> Self {
        Self {
            elector,
            key,
            ttl: None,
            wait: Duration::ZERO,
            renew: true,
            once: false,
            #[cfg(feature = "testing")]
            known_bad: None,
        }
    }

    /// How long the lock outlives a holder that has died: 100 ms to 1 h, the elector's ttl by default. It is renewed after each
    /// third of it. One that is shorter than some [operation time-outs](crate::Config::operation_timeout) may be lost by a
    /// single slow answer.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long to wait for the lock: not at all by default. Those who wait are served in the order in which they came. With a
    /// store that hangs it takes up to one [operation time-out](crate::Config::operation_timeout) more: the last question is
    /// asked at the end.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Whether the lock is renewed for as long as it is held: so by default. Otherwise it is lost after one ttl.
    pub fn renew(mut self, renew: bool) -> Self {
        self.renew = renew;
        self
    }

    /// This lock with a rule broken, so that a checker can show that it would notice: none but `NoDeadline` makes a difference.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn known_bad(mut self, variant: crate::election::KnownBad) -> Self {
        self.known_bad = Some(variant);
        self
    }

    pub(crate) fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Takes the lock, which is held for as long as the guard lives: give that a name. `let _ = lock.acquire().await?` drops the
    /// guard, and so gives the lock back, at once; `let _guard = …` keeps it to the end of the block.
    ///
    /// # Errors
    /// [`LockError::Busy`]: somebody else has it, and the time for waiting is over. [`LockError::Store`]: the store did not
    /// answer in that time, or refused. [`LockError::InvalidKey`], [`LockError::InvalidTtl`], [`LockError::NotStarted`],
    /// [`LockError::Stopped`]. In every case the lock is not held.
    ///
    /// # Cancel safety
    /// If the future is dropped, at whatever point, neither the lock nor a place among those who wait is left, after a round
    /// trip to the store.
    pub async fn acquire(self) -> Result<LockGuard, LockError> {
        match self.attempt().await? {
            Some(guard) => Ok(guard),
            None => unreachable!("only what is run once can be done"),
        }
    }

    /// Takes the lock; `None` if the key was completed by another one.
    pub(crate) async fn attempt(self) -> Result<Option<LockGuard>, LockError> {
        let key = self.key?;
        let Some(elector) = self.elector else { return Err(LockError::NotStarted { key }) };
        let timing = &elector.timing;
        let ttl = self.ttl.unwrap_or(timing.ttl);
        if !(MIN_TTL..=MAX_TTL).contains(&ttl) {
            return Err(LockError::InvalidTtl { ttl });
        }
        let rules = Rules {
            ttl,
            guard: timing.guard_of(ttl),
            renew: self.renew,
            wait_until: elector.clock.now().saturating_add(self.wait),
            retry: retry(timing, ttl),
            operation_timeout: timing.operation_timeout,
            once: self.once,
            #[cfg(feature = "testing")]
            known_bad: self.known_bad,
        };
        let (claim, answer) = Claim::new(elector, key, rules)?;
        match answer.await {
            Ok(Ok(Outcome::Won)) => Ok(Some(LockGuard::new(claim))),
            Ok(Ok(Outcome::Done)) => Ok(None),
            Ok(Err(error)) => Err(error),
            // The driver has ended.
            Err(_) => Err(LockError::Stopped { key: claim.key().clone() }),
        }
    }

    /// Takes the lock, runs `work` under it, and gives it back. The work is dropped at its next await when the lock is lost,
    /// or the grace of a shutdown is over; it is never started without the lock.
    ///
    /// Inside of the work, [`held_lock`](crate::held_lock) gives the lock, too. When this returns, the store has confirmed that the
    /// lock is free, or did not answer in time.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire): the work was not started. [`LockError::Lost`]: the lock was lost before the work had
    /// ended, though it may have come to its end. [`LockError::Stopped`]: the elector has ended, and the work was dropped.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, and then gives the lock back.
    ///
    /// ```
    /// # async fn charge() -> u32 { 3 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let elector = leader_core::Elector::start(leader_core::Config::new("memory:lock-run")).await?;
    /// let charged = elector.lock("billing:charge-run").run(|_lock| charge()).await?;
    /// assert_eq!(charged, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<T, F>(self, work: impl FnOnce(HeldLock) -> F) -> Result<T, LockError>
    where
        F: Future<Output = T>,
    {
        let guard = self.acquire().await?;
        let done = match guard.run_sync(|| work(guard.held())) {
            Some(work) => guard.run_cancellable(work).await,
            None => None,
        };
        guard.end(done).await.map_err(|(error, _)| error)
    }
}

/// Time from a failure to the next attempt: there have to be some before a short lock ends.
fn retry(timing: &Timing, ttl: Duration) -> Duration {
    timing.retry.min(ttl / 10)
}

impl fmt::Debug for LockBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockBuilder")
            .field("key", &self.key)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("renew", &self.renew)
            .finish_non_exhaustive()
    }
}
