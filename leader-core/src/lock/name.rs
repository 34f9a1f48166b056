//! What messages call a lock: by its key, and the claim on work that is run once by that of the work.

use std::fmt;

use crate::store::LockKey;

/// Before the key of the work, to make its lock another one than that of [`Elector::lock`](crate::Elector::lock) with the same
/// key: work may be run once, and under a lock, by one name.
pub(crate) const WORK: &str = "once:";

/// In an error, between backticks: ``the lock `billing` ``, ``the work `migrate:3` ``.
pub(crate) fn quoted(key: &LockKey) -> impl fmt::Display + '_ {
    Name { key, quote: "`" }
}

/// In the log and in lists: `the lock billing`, `the work migrate:3`.
pub(crate) fn plain(key: &LockKey) -> impl fmt::Display + '_ {
    Name { key, quote: "" }
}

/// Whether the key is that of work that is run once.
pub(crate) fn is_work(key: &LockKey) -> bool {
    key.as_str().starts_with(WORK)
}

struct Name<'a> {
    key: &'a LockKey,
    quote: &'static str,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, key) = match self.key.as_str().strip_prefix(WORK) {
            Some(key) => ("work", key),
            None => ("lock", self.key.as_str()),
        };
        let quote = self.quote;
        write!(f, "the {kind} {quote}{key}{quote}")
    }
}
