//! The names of a lock's keys.

use super::super::rights::Rights;
use super::super::slot;
use crate::store::LockKey;

/// What a user of the server must be allowed to, besides what it is for the leases.
pub(in crate::store::redis) const COMMANDS: &str = "+exists +zadd +zcard +zrange +zrank +zrem +zscore";

/// What the names begin with.
#[derive(Debug, Clone)]
pub(in crate::store::redis) struct LockKeys {
    prefix: Box<str>,
}

/// One lock's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::redis) struct Names {
    /// The lock itself. Other implementations of the same locks know it, too.
    pub(in crate::store::redis) lock: String,
    /// Those who wait, by arrival.
    pub(in crate::store::redis) queue: String,
    /// Those who wait, by the end of their place.
    pub(in crate::store::redis) waiting: String,
    /// The note that the work is done.
    pub(in crate::store::redis) done: String,
}

impl LockKeys {
    pub(in crate::store::redis) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into() }
    }

    /// All four are in the same slot of a cluster. None of the last three is the lock of another key: no prefix begins with a
    /// brace.
    pub(in crate::store::redis) fn names(&self, key: &LockKey) -> Names {
        let lock = format!("{}{key}", self.prefix);
        let beside = match slot::tag(lock.as_bytes()) {
            // What the slot of the lock is computed from.
            Some(tag) => format!("{{{}}}:{lock}", &lock[tag]),
            None if !lock.contains('}') => format!("{{{lock}}}"),
            // In braces it would end too early.
            None => format!("{{{}}}:{lock}", slot::number_beside(lock.as_bytes())),
        };
        Names {
            queue: format!("{beside}:queue"),
            waiting: format!("{beside}:waiting"),
            done: format!("{beside}:done"),
            lock,
        }
    }

    /// What locks need, where this is what leases need.
    pub(in crate::store::redis) fn rights(&self, leases: Rights) -> Rights {
        Rights { keys: self.patterns(), ..leases.with(COMMANDS) }
    }

    /// What permits the locks, as in `ACL SETUSER`.
    pub(in crate::store::redis) fn patterns(&self) -> String {
        let prefix = &self.prefix;
        format!("~{prefix}* ~{{{prefix}* ~{{*}}:{prefix}*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(key: &str) -> Names {
        LockKeys::new("_lock:").names(&LockKey::new(key).unwrap())
    }

    fn slot_of(name: &str) -> u16 {
        slot::of(name.as_bytes())
    }

    #[test]
    fn a_lock_has_the_name_that_others_know() {
        let names = names("billing:charge-run");
        assert_eq!(names.lock, "_lock:billing:charge-run");
        assert_eq!(names.queue, "{_lock:billing:charge-run}:queue");
        assert_eq!(names.waiting, "{_lock:billing:charge-run}:waiting");
        assert_eq!(names.done, "{_lock:billing:charge-run}:done");
    }

    #[test]
    fn all_names_of_a_lock_are_in_one_slot_whatever_its_key_and_no_two_locks_share_one() {
        let keys = [
            "a",
            "a{b}c",
            "a{b",
            "a}b",
            "a{}b",
            "{}",
            "}{",
            "{",
            "}",
            "a{b}c}d{e",
            "a{{b}}",
            "{a}:_lock:b",
            "b}:_lock:a{b",
            "a:queue",
            "a{b}:queue",
            "ü{é}",
            "x}:queue",
            "{0}:_lock:}",
        ];
        let mut all = std::collections::BTreeSet::new();
        for key in keys {
            let Names { lock, queue, waiting, done } = names(key);
            for name in [&queue, &waiting, &done] {
                assert_eq!(slot_of(name), slot_of(&lock), "{name} beside {lock}");
                assert!(name.starts_with('{'));
            }
            for name in [lock, queue, waiting, done] {
                assert!(all.insert(name.clone()), "{name} is there twice");
            }
        }
    }
}
