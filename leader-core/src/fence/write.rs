//! What a guarded write asks of a store, and what a store answers.

use std::fmt;
use std::time::Duration;

use super::{Script, Value};
use crate::group::GroupName;
use crate::identity::Candidate;
use crate::lease::Term;
use crate::store::{LockKey, LockOwner};

/// A write that is refused if something newer has written there, or may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardedWrite {
    /// The elector through which it comes.
    pub candidate: Candidate,
    /// The acquisition that it is done under.
    pub holding: Holding,
    /// Whether that is still held, by the clock of whoever holds it. One that is over is not the present holder's, whatever the
    /// store says: it may have been rolled back.
    pub held: bool,
    /// What is to be written.
    pub change: Change,
    /// How long the call may take, from now; past that it is dropped.
    pub timeout: Duration,
}

/// One acquisition of a lease or of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// Of the lease of a group, by the elector that writes.
    Lease {
        /// The group.
        group: GroupName,
        /// The number of the acquisition.
        term: Term,
    },
    /// Of a lock.
    Lock {
        /// The lock.
        key: LockKey,
        /// Who took it.
        owner: LockOwner,
        /// The number of the acquisition.
        token: Term,
    },
}

impl Holding {
    /// The fencing token.
    #[must_use]
    pub fn token(&self) -> Term {
        match self {
            Self::Lease { term, .. } => *term,
            Self::Lock { token, .. } => *token,
        }
    }
}

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A value.
    Set {
        /// Where.
        key: Vec<u8>,
        /// It.
        value: Vec<u8>,
        /// How long it stays; `None` for ever.
        keep: Option<Duration>,
    },
    /// A key is deleted. The answer is how many there were.
    Delete {
        /// Which.
        key: Vec<u8>,
    },
    /// What a script does.
    Run(Script),
}

impl Change {
    /// The keys that are guarded.
    #[must_use]
    pub fn keys(&self) -> &[Vec<u8>] {
        match self {
            Self::Set { key, .. } | Self::Delete { key } => std::slice::from_ref(key),
            Self::Run(script) => script.keys(),
        }
    }
}

/// What became of a guarded write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardedAnswer {
    /// It was done; what it answered.
    Done(Value),
    /// Nothing was done.
    Fenced {
        /// Which of [`Change::keys`] was the reason; `None` if there are none.
        key: Option<usize>,
        /// The newest token that has written there, if that is the reason. Otherwise the store remembers no write of this
        /// key, or lost its memory since, and does not name the acquisition as the present holder.
        newest: Option<Term>,
    },
    /// A script failed; with its error. What it had written by then stays.
    Failed(String),
}

impl fmt::Display for GuardedWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.change {
            Change::Set { .. } => "guarded set",
            Change::Delete { .. } => "guarded delete",
            Change::Run(_) => "guarded script",
        };
        match self.change.keys().first() {
            Some(key) => write!(f, "{what} of `{}`", shown(key)),
            None => f.write_str(what),
        }
    }
}

/// A key as messages show it: in one line, and not without an end.
pub(super) fn shown(key: &[u8]) -> String {
    const MOST: usize = 80;
    let text = String::from_utf8_lossy(key);
    let begin: String = text.chars().take(MOST).collect();
    let more = if begin.len() < text.len() { "…" } else { "" };
    format!("{}{more}", begin.escape_debug())
}
