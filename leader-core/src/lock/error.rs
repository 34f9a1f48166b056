//! Why there is no lock, or no more.

use std::fmt;
use std::time::Duration;

use crate::error::StoreError;
use crate::identity::InstanceId;
use crate::lease::Term;
use crate::store::{InvalidLockKey, LockKey};

/// A lock was not taken, or did not last.
///
/// Its `Debug` is its message, as for every error that a `main` may return.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds it, or waits for it. Nothing was run.
    #[error("the lock `{key}` is busy: {}", busy(holder.as_ref(), *remaining, *ahead))]
    Busy {
        /// The lock.
        key: LockKey,
        /// Who holds it, where that can be told.
        holder: Option<InstanceId>,
        /// How long it lasts unless renewed.
        remaining: Duration,
        /// How many waited who came before.
        ahead: u32,
    },
    /// The store did not do it. If it was to be taken: nothing was run, and whatever the store may hold is released.
    #[error("the store did not do what was asked of the lock `{key}`: {error}")]
    Store {
        /// The lock.
        key: LockKey,
        /// What the store said.
        #[source]
        error: StoreError,
    },
    /// It was lost before it was given back: another one may have held it meanwhile.
    #[error(
        "the lock `{key}` (token {token}) was lost before it was given back: another one may have held it meanwhile; where \
         that does harm, have writes with older tokens refused"
    )]
    Lost {
        /// The lock.
        key: LockKey,
        /// The acquisition that was lost.
        token: Term,
    },
    /// No lock has such a name.
    #[error(transparent)]
    InvalidKey(#[from] InvalidLockKey),
    /// A ttl that cannot be kept.
    #[error(
        "a lock of {ttl:?} is not possible: the rule is 100ms <= ttl <= 1h; it is renewed for as long as it is needed"
    )]
    InvalidTtl {
        /// The ttl that was asked for.
        ttl: Duration,
    },
    /// There is no elector to ask.
    #[error(
        "the lock `{key}` was not taken: this process has no elector; call leader_core::bootstrap before, or with \
         Elector::start use elector.lock(..), or elector.scope(..), which tokio::spawn leaves"
    )]
    NotStarted {
        /// The lock.
        key: LockKey,
    },
    /// The elector has ended, or is about to.
    #[error("the lock `{key}` is not to be had, or no more: the elector has ended, or is about to")]
    Stopped {
        /// The lock.
        key: LockKey,
    },
}

impl LockError {
    /// Whether somebody else holds the lock, or waits for it: it may be had later.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// Whether it was had, and lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }
}

fn busy(holder: Option<&InstanceId>, remaining: Duration, ahead: u32) -> String {
    let left = remaining.as_secs_f64();
    match (holder, ahead) {
        (Some(holder), 0) => format!("{holder} holds it, {left:.1} s left"),
        (Some(holder), ahead) => format!("{holder} holds it, {left:.1} s left, and {ahead} wait for it"),
        (None, 0) => format!("an unknown holder has it, {left:.1} s left"),
        (None, ahead) => format!("{ahead} wait for it who came before"),
    }
}

impl fmt::Debug for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_a_busy_lock_is_said() {
        let key = LockKey::new("k").unwrap();
        let holder = InstanceId::new("pod-7").ok();
        let remaining = Duration::from_millis(2_500);
        for (holder, ahead, said) in [
            (holder.clone(), 0, "pod-7 holds it, 2.5 s left"),
            (holder, 2, "and 2 wait"),
            (None, 0, "an unknown holder"),
            (None, 3, "3 wait for it who came before"),
        ] {
            let error = LockError::Busy { key: key.clone(), holder, remaining, ahead };
            assert!(error.to_string().contains(said) && format!("{error:?}").contains("`k`"), "{error}");
            assert!(error.is_busy() && !error.is_lost());
        }
    }
}
