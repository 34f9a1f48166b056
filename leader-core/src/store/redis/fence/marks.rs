//! The names of marks.

use super::super::slot;

/// What they end with.
pub(super) const SUFFIX: &str = ":fence";

/// All of them, as `ACL SETUSER` has it.
pub(super) const PATTERN: &str = "~{*}:*fence";

/// The mark of a key, in the same slot of a cluster.
pub(super) fn of(key: &[u8]) -> Vec<u8> {
    let mut name = vec![b'{'];
    match slot::tag(key) {
        Some(tag) => {
            name.extend(&key[tag]);
            name.extend(b"}:");
            name.extend(key);
        }
        None if !key.is_empty() && !key.contains(&b'}') => {
            name.extend(key);
            name.push(b'}');
        }
        // In braces it would be no tag, or end too early.
        None => {
            name.extend(slot::number_beside(key).to_string().as_bytes());
            name.extend(b"}:");
            name.extend(key);
        }
    }
    name.extend(SUFFIX.as_bytes());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_beside_its_key_and_each_key_has_its_own() {
        assert_eq!(of(b"balance:7"), b"{balance:7}:fence");
        assert_eq!(of(b"user:{7}:balance"), b"{7}:user:{7}:balance:fence");
        let keys: [&[u8]; 18] = [
            b"",
            b"a",
            b"{a}",
            b"a{b}c",
            b"a{b",
            b"a}b",
            b"a{}b",
            b"{}",
            b"}{",
            b"{",
            b"}",
            b"a{b}c}d{e",
            b"a{{b}}",
            b"{a}:{a}",
            b"\xff\x00",
            b"\xff{\xfe}",
            b"\xff}\r\n",
            b"{0}:}",
        ];
        let mut all = std::collections::BTreeSet::new();
        for key in keys {
            let mark = of(key);
            assert_eq!(slot::of(&mark), slot::of(key), "{key:?}");
            assert!(mark.starts_with(b"{") && mark.ends_with(SUFFIX.as_bytes()));
            assert!(all.insert(mark) && all.insert(key.to_vec()), "{key:?}");
        }
    }
}
