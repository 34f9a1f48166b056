//! Keys of locks: what the compiler lets pass is a key when the program runs.

use leader_core::LockKey;

use super::bytes::Bytes;

#[path = "../../../leader-macros/src/key/template.rs"]
mod template;

const SUCH: &str = "billing:charge-run";

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    if bytes.flag() {
        return made(&mut bytes);
    }
    let key = bytes.rest();
    let at_run_time = LockKey::new(&key);
    match template::check(&key, LockKey::LONGEST, SUCH) {
        Ok(false) => assert!(at_run_time.is_ok(), "{key:?} compiles, and is refused when it runs: {at_run_time:?}"),
        Ok(true) => assert!(key.contains(['{', '}'])),
        Err(reason) => {
            assert!(!reason.is_empty());
            assert!(at_run_time.is_err() || key.contains('{'), "{key:?} is a key, and does not compile: {reason}");
        }
    }
}

/// Of plain names, as `format!` takes them.
fn made(bytes: &mut Bytes<'_>) {
    let mut key = String::from("k");
    while !bytes.is_empty() {
        key += bytes.choice(&[
            "{id}",
            "{id:>5}",
            "{id:?}",
            "{id:.3}",
            "{id:>width$.places$}",
            "{{",
            "}}",
            "{{{id}}}",
            ":",
            "é",
        ]);
    }
    let interpolated = template::check(&key, LockKey::LONGEST, SUCH);
    let expected = key.contains(['{', '}']);
    assert!(interpolated == Ok(expected) || key.len() > LockKey::LONGEST, "{key:?}: {interpolated:?}");
}
