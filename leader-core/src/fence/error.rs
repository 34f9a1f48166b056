//! Why a guarded write was not done.

use std::fmt;

use crate::error::StoreError;
use crate::lease::FencingToken;

/// A guarded write was refused, or failed.
///
/// Its `Debug` is its message, as for every error that a `main` may return.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// It came too late: somebody may have begun since who holds the lease or the lock now. Nothing was written. Whoever
    /// gets this must not write what it has worked out in any other way either.
    #[error("the write{} under token {token} was refused: {}; nothing was written", of(key), reason(*newest))]
    Fenced {
        /// What was to be written; of several keys the one that was the reason. Empty for a script without keys.
        key: String,
        /// The token of the write.
        token: FencingToken,
        /// The newest token that has written there. `None`: the store knows none, or has lost its memory since, and this
        /// acquisition is over, or is not the one that the store knows as the present holder.
        newest: Option<FencingToken>,
    },
    /// The script failed. What it had written by then stays, and its token is noted.
    #[error("the guarded script failed: {error}; what it had written by then stays")]
    Script {
        /// What the server said.
        error: String,
    },
    /// The store did not do it, or there is no knowing: after [`StoreError::TimedOut`] and [`StoreError::Unavailable`] the
    /// write may have been executed, or may be yet, unless somebody newer writes first.
    #[error("{}", told(.0))]
    Store(StoreError),
    /// The elector has ended. Whether it was written is unknown.
    #[error("the write was not confirmed: the elector has ended")]
    Stopped,
}

impl FenceError {
    /// Whether it was refused because it came too late.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }
}

fn of(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!(" of `{key}`") }
}

fn reason(newest: Option<FencingToken>) -> String {
    match newest {
        Some(newest) => format!("token {newest} has written since"),
        None => {
            "the store remembers no write under a token, and this acquisition is over, or is not known to it as the \
                 present holder of its lease or lock"
                .to_owned()
        }
    }
}

fn told(error: &StoreError) -> String {
    let executed = match error {
        StoreError::Unavailable { .. } => "; it may have been executed or not, and is not tried again",
        StoreError::TimedOut { .. } => "; it may be executed or not, and is not tried again",
        StoreError::Refused { .. } => "",
    };
    format!("{}{executed}", error.in_the_end())
}

impl fmt::Debug for FenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
