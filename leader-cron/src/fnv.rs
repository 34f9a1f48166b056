//! A hash that is the same on every instance, whatever its build: what those of the standard library do not promise.

/// FNV-1a.
pub(crate) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let bytes = bytes.into_iter();
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_one() {
        for (text, expected) in
            [("", 0xCBF2_9CE4_8422_2325), ("a", 0xAF63_DC4C_8601_EC8C), ("foobar", 0x8594_4171_F739_67E8)]
        {
            assert_eq!(fnv1a(text.bytes()), expected, "{text:?}");
        }
    }
}
