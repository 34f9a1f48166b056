//! The names of a lock's keys.

use std::sync::LazyLock;

use crate::store::LockKey;

/// The slots of a cluster.
const SLOTS: u16 = 16_384;

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
        let beside = match tag(&lock) {
            // What the slot of the lock is computed from.
            Some(tag) => format!("{{{tag}}}:{lock}"),
            None if !lock.contains('}') => format!("{{{lock}}}"),
            // In braces it would end too early.
            None => format!("{{{}}}:{lock}", TAGS[usize::from(slot(lock.as_bytes()))]),
        };
        Names {
            queue: format!("{beside}:queue"),
            waiting: format!("{beside}:waiting"),
            done: format!("{beside}:done"),
            lock,
        }
    }

    /// What a user of the server must be allowed to, besides what it is for the leases: arguments of `ACL SETUSER`.
    pub(in crate::store::redis) fn permissions(&self) -> String {
        let prefix = &self.prefix;
        format!("~{prefix}* ~{{{prefix}* ~{{*}}:{prefix}* +exists +zadd +zcard +zrange +zrank +zrem +zscore")
    }
}

/// What stands between the first opening brace and the next closing one, unless that is nothing.
fn tag(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

/// The slot of a name without a tag.
fn slot(name: &[u8]) -> u16 {
    let mut crc = 0_u16;
    for byte in name {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
        }
    }
    crc % SLOTS
}

/// For each slot the smallest number that is in it.
static TAGS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let mut tags = vec![None; usize::from(SLOTS)];
    let mut missing = SLOTS;
    for number in 0_u32.. {
        let free = &mut tags[usize::from(slot(number.to_string().as_bytes()))];
        if free.is_none() {
            *free = Some(number);
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    tags.into_iter().flatten().collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    fn names(key: &str) -> Names {
        LockKeys::new("_lock:").names(&LockKey::new(key).unwrap())
    }

    /// As a cluster does it.
    fn slot_of(name: &str) -> u16 {
        slot(tag(name).unwrap_or(name).as_bytes())
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
    fn slots_are_those_of_the_specification() {
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!((slot_of("foo"), slot_of("{user1000}.following")), (12182, slot_of("{user1000}.followers")));
        assert_eq!(slot_of("foo{}{bar}"), slot(b"foo{}{bar}"));
        assert_eq!(slot_of("foo{{bar}}zap"), slot(b"{bar"));
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

    #[test]
    fn there_is_a_number_for_each_slot() {
        assert_eq!(TAGS.len(), usize::from(SLOTS));
        assert!(TAGS.iter().enumerate().all(|(n, tag)| usize::from(slot(tag.to_string().as_bytes())) == n));
    }
}
