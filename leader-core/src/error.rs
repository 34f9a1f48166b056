//! What can go wrong, and what to do about it.

use std::time::Duration;

/// A store did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached, or is busy, for now.
    #[error("{attempted} failed: {cause}; trying again")]
    Unavailable {
        /// What was tried, on what: `acquire on sqlite:///var/lib/app/leader.db`.
        attempted: String,
        /// What the store or the system said.
        cause: String,
    },
    /// No answer came in time; whether the command was executed is unknown.
    #[error("{attempted} got no answer within {after:?}; trying again")]
    TimedOut {
        /// What was tried, on what.
        attempted: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The store will go on refusing until somebody does something.
    #[error("{attempted} was refused: {cause}; {advice}")]
    Refused {
        /// What was tried, on what.
        attempted: String,
        /// What the store or the system said.
        cause: String,
        /// What to do.
        advice: String,
    },
}

impl StoreError {
    /// Whether the error will not pass by itself: wrong password, missing permission, a file that is not ours.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}
