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

/// Why a URL means no store. It never shows more of the URL than its scheme: the rest may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// The text does not begin with a scheme.
    #[error("the store's URL has no scheme; use `sqlite:///path/to/leader.db` or `memory:`")]
    NoScheme,
    /// No store has this scheme.
    #[error("no store has the scheme `{scheme}`; use `sqlite:///path/to/leader.db` or `memory:`")]
    UnknownScheme {
        /// What precedes the colon.
        scheme: String,
    },
    /// The store with this scheme is not part of this build.
    #[error(
        "`{scheme}` needs the cargo feature `{feature}` of leader-core, which {since} offers; this build has none of it"
    )]
    NotBuiltIn {
        /// What precedes the colon.
        scheme: String,
        /// The feature to enable.
        feature: &'static str,
        /// Which version offers that feature.
        since: &'static str,
    },
    /// A SQLite URL without a usable path.
    #[error(
        "a SQLite URL needs the path of a file: `sqlite:///var/lib/app/leader.db` (absolute) or `sqlite:leader.db` \
         (relative to the working directory), without `?` and `#`"
    )]
    SqlitePath,
}
