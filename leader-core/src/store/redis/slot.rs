//! The slots of a cluster: names that belong together have to be in the same one.

use std::ops::Range;
use std::sync::LazyLock;

pub(super) const SLOTS: u16 = 16_384;

/// What stands between the first opening brace and the next closing one, unless that is nothing: the slot is computed from
/// that alone.
pub(super) fn tag(name: &[u8]) -> Option<Range<usize>> {
    let begin = name.iter().position(|byte| *byte == b'{')? + 1;
    let length = name[begin..].iter().position(|byte| *byte == b'}')?;
    (length > 0).then_some(begin..begin + length)
}

/// A number whose slot is the one of this name, which has no tag.
pub(super) fn number_beside(name: &[u8]) -> u32 {
    TAGS[usize::from(of_all(name))]
}

/// The slot of a name.
pub(super) fn of(name: &[u8]) -> u16 {
    of_all(tag(name).map_or(name, |tag| &name[tag]))
}

/// The slot of a name without a tag.
fn of_all(name: &[u8]) -> u16 {
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
        let free = &mut tags[usize::from(of_all(number.to_string().as_bytes()))];
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

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(of_all(b"123456789"), 0x31c3);
        assert_eq!((of(b"foo"), of(b"{user1000}.following")), (12182, of(b"{user1000}.followers")));
        assert_eq!(of(b"foo{}{bar}"), of_all(b"foo{}{bar}"));
        assert_eq!(of(b"foo{{bar}}zap"), of_all(b"{bar"));
    }

    #[test]
    fn there_is_a_number_for_each_slot() {
        assert_eq!(TAGS.len(), usize::from(SLOTS));
        assert!(TAGS.iter().enumerate().all(|(n, tag)| usize::from(of_all(tag.to_string().as_bytes())) == n));
    }
}
