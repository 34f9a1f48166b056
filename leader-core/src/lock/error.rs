//! Why there is no lock, or no more.

use std::fmt;
use std::time::Duration;

use super::name::{is_work, quoted};
use crate::error::StoreError;
use crate::identity::InstanceId;
use crate::lease::Term;
use crate::store::{InvalidLockKey, LockKey};

/// A lock was not taken, or did not last. Work that is run once has such a lock of its own, and its messages name the work.
///
/// Its `Debug` is its message, as for every error that a `main` may return.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds it, or waits for it. Nothing was run.
    #[error("{} is busy: {}", quoted(key), busy(key, holder.as_ref().map(|holder| (holder, *own)), *remaining, *ahead))]
    Busy {
        /// The lock.
        key: LockKey,
        /// Who holds it, where that can be told.
        holder: Option<InstanceId>,
        /// That is this very instance: another of its tasks, or the one that asks. No lock is re-entrant.
        own: bool,
        /// How long it lasts unless renewed.
        remaining: Duration,
        /// How many waited who came before.
        ahead: u32,
    },
    /// The store did not give it: nothing was run, and whatever the store may hold is released.
    #[error("{}: {}; nothing was run", not_had(key), error.in_the_end())]
    Store {
        /// The lock.
        key: LockKey,
        /// What the store said last.
        error: StoreError,
    },
    /// The lock was held to the end of the work, and the store did not confirm what came then: the release of the lock, or the
    /// note that work is done that is run once. The work has run.
    #[error("{}", unconfirmed(key, error))]
    Unconfirmed {
        /// The lock.
        key: LockKey,
        /// The acquisition.
        token: Term,
        /// What the store said last.
        error: StoreError,
    },
    /// It was lost before it was given back: another one may have held it meanwhile.
    #[error("{}", lost(key, *token))]
    Lost {
        /// The lock.
        key: LockKey,
        /// The acquisition that was lost.
        token: Term,
    },
    /// The store did not confirm that the note on the work of this key was removed.
    #[error("{} may still be noted as done: {}; ask once more", quoted(key), error.in_the_end())]
    NotForgotten {
        /// The lock of the work.
        key: LockKey,
        /// What the store said.
        error: StoreError,
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
        "{}: this process has no elector: none was started, or it has ended; call leader_core::bootstrap before, or with \
         Elector::start use its own methods, or elector.scope(..), which tokio::spawn leaves",
        not_had(key)
    )]
    NotStarted {
        /// The lock.
        key: LockKey,
    },
    /// The elector has ended, or is about to: the lock was not taken, or the grace for the work under it is over.
    #[error("{}, or what ran was dropped: the elector has ended, or is about to", not_had(key))]
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

    /// Whether the work has run under the lock to its end, and only what came then was not confirmed.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        matches!(self, Self::Unconfirmed { .. })
    }
}

/// `holder`: and whether that is this instance.
fn busy(key: &LockKey, holder: Option<(&InstanceId, bool)>, remaining: Duration, ahead: u32) -> String {
    let left = format!("{:.1} s left unless it is renewed", remaining.as_secs_f64());
    let queue = if ahead > 0 { format!(", and {ahead} wait for it") } else { String::new() };
    match holder {
        Some((holder, true)) if is_work(key) => format!("{holder} is at it, which is this instance{queue}"),
        Some((holder, true)) => format!("{holder} holds it, which is this instance{queue}: a lock is not re-entrant"),
        Some((holder, false)) if is_work(key) => format!("{holder} is at it, {left}{queue}"),
        Some((holder, false)) => format!("{holder} holds it, {left}{queue}"),
        None if ahead > 0 => format!("{ahead} wait for it who came before"),
        None => format!("an unknown holder has it, {left}"),
    }
}

fn not_had(key: &LockKey) -> String {
    format!("{} was not {}", quoted(key), if is_work(key) { "begun" } else { "taken" })
}

fn unconfirmed(key: &LockKey, error: &StoreError) -> String {
    let (name, error) = (quoted(key), error.in_the_end());
    if is_work(key) {
        format!(
            "{name} has run, but that it is done could not be noted: {error}; unless the note arrived all the same, it will \
             be done again"
        )
    } else {
        format!(
            "{name} was held to the end, but its release was not confirmed: {error}; it ends by itself within its ttl"
        )
    }
}

fn lost(key: &LockKey, token: Term) -> String {
    let (what, before, another) = if is_work(key) {
        ("the claim on ", "the work was noted as done, so it counts as undone", "be at it")
    } else {
        ("", "it was given back", "have held it meanwhile")
    };
    let name = quoted(key);
    format!(
        "{what}{name} (token {token}) was lost before {before}: another one may {another}; where that does harm, have writes \
         with older tokens refused"
    )
}

impl fmt::Debug for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::name::WORK;

    fn lock() -> LockKey {
        LockKey::new("k").unwrap()
    }

    fn work() -> LockKey {
        LockKey::new(format!("{WORK}r1")).unwrap()
    }

    fn away() -> StoreError {
        StoreError::Unavailable { attempted: "lock on here".to_owned(), cause: "connection refused".to_owned() }
    }

    #[test]
    fn who_holds_a_busy_lock_is_said() {
        let holder = InstanceId::new("pod-7").ok();
        let remaining = Duration::from_millis(2_500);
        for (holder, own, ahead, said) in [
            (holder.clone(), false, 0, "pod-7 holds it, 2.5 s left unless it is renewed"),
            (holder.clone(), false, 2, "unless it is renewed, and 2 wait"),
            (holder, true, 0, "pod-7 holds it, which is this instance: a lock is not re-entrant"),
            (None, false, 0, "an unknown holder"),
            (None, false, 3, "3 wait for it who came before"),
        ] {
            let error = LockError::Busy { key: lock(), holder, own, remaining, ahead };
            assert!(error.to_string().contains(said) && format!("{error:?}").contains("`k`"), "{error}");
            assert!(error.is_busy() && !error.is_lost() && !error.is_unconfirmed());
        }
    }

    #[test]
    fn what_is_not_tried_again_is_not_said_to_be() {
        let timed_out = StoreError::TimedOut { attempted: "lock on here".to_owned(), after: Duration::from_secs(1) };
        for (error, said) in [(away(), "failed: connection refused"), (timed_out, "got no answer within 1s")] {
            let (key, token) = (lock(), Term::new(3));
            let store = LockError::Store { key: key.clone(), error: error.clone() };
            assert!(store.to_string().ends_with(&format!("{said}; nothing was run")), "{store}");
            for error in [
                store,
                LockError::Unconfirmed { key: key.clone(), token, error: error.clone() },
                LockError::NotForgotten { key: work(), error: error.clone() },
            ] {
                assert!(error.to_string().contains(said) && !error.to_string().contains("trying again"), "{error}");
                // Nor by whoever prints the causes, too.
                assert!(std::error::Error::source(&error).is_none());
            }
        }
    }

    #[test]
    fn work_that_is_run_once_is_called_by_its_own_name() {
        let (key, token, remaining) = (work(), Term::new(3), Duration::ZERO);
        for error in [
            LockError::Busy { key: key.clone(), holder: None, own: false, remaining, ahead: 0 },
            LockError::Store { key: key.clone(), error: away() },
            LockError::Unconfirmed { key: key.clone(), token, error: away() },
            LockError::Lost { key: key.clone(), token },
            LockError::NotForgotten { key: key.clone(), error: away() },
            LockError::NotStarted { key: key.clone() },
            LockError::Stopped { key },
        ] {
            let text = error.to_string();
            assert!(text.contains("the work `r1`") && !text.contains("the lock") && !text.contains(WORK), "{text}");
        }
    }

    #[test]
    fn what_was_not_confirmed_tells_whether_it_is_done_again() {
        let token = Term::new(3);
        let release = LockError::Unconfirmed { key: lock(), token, error: away() };
        let note = LockError::Unconfirmed { key: work(), token, error: away() };
        assert!(release.to_string().contains("held to the end") && release.to_string().contains("within its ttl"));
        assert!(note.to_string().contains("has run") && note.to_string().contains("will be done again"));
        assert!(release.is_unconfirmed() && note.is_unconfirmed() && !note.is_lost());
    }
}
