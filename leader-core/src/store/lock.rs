//! What a lock asks of a store, and what a store answers.
//!
//! A lock excludes all others for the length of one operation. Unlike a lease it is taken by whoever asks first, those who
//! wait for it have a queue, and nothing of it is left in the store once it has been given back.

pub(super) mod rules;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::LeaseStore;
use crate::error::StoreError;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::lease::Term;

/// The answers to a batch of lock commands: one for each, in the same order.
pub type LockAnswers = Vec<Result<LockAnswer, StoreError>>;

/// What is locked: 1 to 512 bytes of text without control characters, such as `billing:charge-run`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockKey(Arc<str>);

impl LockKey {
    /// The longest key, in bytes.
    pub const LONGEST: usize = 512;

    /// Checks `key` and takes it as it is.
    ///
    /// # Errors
    /// [`InvalidLockKey`] with the reason: empty, too long, or a control character.
    ///
    /// ```
    /// use leader_core::LockKey;
    ///
    /// assert_eq!(LockKey::new("billing:charge-run")?.as_str(), "billing:charge-run");
    /// assert!(LockKey::new("").is_err());
    /// # Ok::<_, leader_core::InvalidLockKey>(())
    /// ```
    pub fn new(key: impl AsRef<str>) -> Result<Self, InvalidLockKey> {
        Self::prefixed("", key.as_ref())
    }

    /// One that begins with what it is not called by: messages are of the rest.
    pub(crate) fn prefixed(prefix: &'static str, key: &str) -> Result<Self, InvalidLockKey> {
        let longest = Self::LONGEST - prefix.len();
        let reason = if key.is_empty() {
            "it is empty".to_owned()
        } else if key.len() > longest {
            format!("it has {} bytes", key.len())
        } else if let Some(c) = key.chars().find(|c| c.is_control()) {
            format!("it contains `{}`", c.escape_default())
        } else {
            return Ok(Self(format!("{prefix}{key}").into()));
        };
        // What is shown of it is shown in one line.
        let shown = key.chars().take(80).collect::<String>().escape_debug().to_string();
        Err(InvalidLockKey { key: shown, reason, longest })
    }

    /// The text of the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for LockKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Why a text is not a [`LockKey`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{key}` cannot be the key of {}: {reason}; use 1 to {longest} bytes without control characters, such as {}",
    if *longest == LockKey::LONGEST { "a lock" } else { "work" },
    if *longest == LockKey::LONGEST { "`billing:charge-run`" } else { "`migrate:3`" }
)]
pub struct InvalidLockKey {
    key: String,
    reason: String,
    /// In bytes. It tells the key of a lock from that of work.
    longest: usize,
}

/// Who asks for a lock: one attempt to get it, and all that follows from that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockOwner {
    /// The elector that the attempt belongs to.
    pub candidate: Candidate,
    /// Random for each attempt, so that two of one elector exclude each other.
    pub nonce: u128,
}

impl LockOwner {
    /// A new owner that belongs to this elector; no two are equal.
    #[must_use]
    pub fn new(candidate: Candidate) -> Self {
        Self { candidate, nonce: Incarnation::random().as_u128() }
    }
}

/// Lock commands that go out in one round trip: all of one elector, at most one for each owner.
#[derive(Debug, Clone)]
pub struct LockBatch {
    /// What to do.
    pub commands: Vec<LockCommand>,
    /// How long the call may take, from now; past that the driver drops it.
    pub timeout: Duration,
}

/// One lock command of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockCommand {
    /// The lock that it is about.
    pub key: LockKey,
    /// Who asks.
    pub owner: LockOwner,
    /// How long a lock lasts that this command takes or renews.
    pub ttl: Duration,
    /// What it asks.
    pub op: LockOp,
}

/// The changes of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockOp {
    /// Take the lock if nobody holds it and nobody whose place in the queue has not ended came before.
    ///
    /// If the owner holds it already, because the answer to an earlier acquire was lost, it is won again under the *same*
    /// token: that it was held all the time is what makes it one acquisition.
    Acquire {
        /// The largest token that this elector has seen, of any lock.
        floor: Term,
        /// If the lock is not won: keep the owner's place in the queue, or put it at the end, for so long from now. `None`:
        /// give it up.
        queue: Option<Duration>,
        /// Answer [`LockAnswer::Done`] if the key was completed, whoever holds the lock.
        once: bool,
    },
    /// Extend the lock of this acquisition by the ttl.
    Renew {
        /// Which acquisition.
        token: Term,
    },
    /// End the lock of this acquisition.
    Release {
        /// Which acquisition; `None` for whatever this owner holds, and its place in the queue, too.
        token: Option<Term>,
    },
    /// Note that the work of this key is done, and end the lock; only if it is still this acquisition's.
    Complete {
        /// Which acquisition.
        token: Term,
        /// How long the note stays; `None` for ever.
        keep: Option<Duration>,
    },
    /// Remove the note that the work of this key is done.
    Forget,
}

impl LockOp {
    /// What messages call it: `lock`, `renew`, `release`, `complete`, `forget`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Acquire { .. } => "lock",
            Self::Renew { .. } => "renew",
            Self::Release { .. } => "release",
            Self::Complete { .. } => "complete",
            Self::Forget => "forget",
        }
    }
}

/// The answer to one lock command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockAnswer {
    /// To an acquire: the lock is the owner's.
    Won {
        /// The number of this acquisition: larger than that of any before it.
        token: Term,
    },
    /// To an acquire: it is not.
    Busy(Busy),
    /// To an acquire: the work of this key was done already. The owner's place in the queue has ended.
    Done,
    /// To a renew: extended.
    Renewed,
    /// To a renew or a complete: the acquisition that it names is over.
    Lost,
    /// To a release: ended, and whoever waits first was told.
    Released,
    /// To a release: the acquisition that it names was over already.
    NotHeld,
    /// To a complete: noted, and ended.
    Completed,
    /// To a forget: whether there was a note.
    Forgotten(bool),
}

/// A lock that another one holds, or waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Busy {
    /// Who holds it; `None` if nobody does and others wait for it, or if the holder cannot be told (another implementation
    /// of the same keys, which tells nobody of its releases).
    pub holder: Option<InstanceId>,
    /// The number of that acquisition, where it is known.
    pub token: Option<Term>,
    /// How long it lasts unless renewed; if nobody holds it, how long the place of the first who waits lasts.
    pub remaining: Duration,
    /// How many wait who came before; a store may count no further than 100.
    pub ahead: u32,
}

/// What a store without locks answers.
pub(super) fn no_locks(store: &(impl LeaseStore + ?Sized)) -> StoreError {
    StoreError::Refused {
        attempted: format!("a lock on {}", store.address()),
        cause: "this store has no locks".to_owned(),
        advice: "use a store that has them, or give it some: implement LeaseStore::execute_locks".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_line_of_text() {
        let long = "é".repeat(256);
        for good in ["a", "billing:charge-run", "a b{c}", "ключ", &long] {
            assert_eq!(LockKey::new(good).unwrap().as_str(), good);
        }
        for (bad, reason) in [
            ("", "is empty"),
            ("a\nb", "contains `\\n`"),
            ("a\0", "contains `\\u{0}`"),
            ("\u{85}", "contains `\\u{85}`"),
            (&"x".repeat(513), "has 513 bytes"),
        ] {
            let text = LockKey::new(bad).unwrap_err().to_string();
            assert!(text.contains(reason) && text.contains("billing:charge-run"), "{text}");
            assert!(!text.contains(char::is_control) && text.len() < 300, "{text:?}");
        }
        let text = LockKey::prefixed("once:", &"x".repeat(508)).unwrap_err().to_string();
        assert!(text.contains("of work: it has 508 bytes; use 1 to 507 bytes") && !text.contains("once:"), "{text}");
    }

    #[test]
    fn no_two_owners_are_equal() {
        let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
        assert_ne!(LockOwner::new(candidate.clone()), LockOwner::new(candidate));
    }
}
