//! Environment variables: what is taken keeps the rules of a rhythm, and shows no password.

use std::ffi::OsString;
use std::time::Duration;

use leader_core::testing::config;

use super::bytes::Bytes;

const NAMES: [&str; 13] = [
    "LEADER_STORE",
    "LEADER_GROUPS",
    "LEADER_OBSERVE",
    "LEADER_INSTANCE_ID",
    "LEADER_TTL",
    "LEADER_HEARTBEAT",
    "LEADER_RETRY",
    "LEADER_OPERATION_TIMEOUT",
    "LEADER_PREFIX",
    "LEADER_LOCK_PREFIX",
    "LEADER_PORT",
    "LEADER_REPLICAS",
    "LEADER_REDIS_CLIENT",
];

/// A line is a variable: the first byte says which, the rest is its value.
pub(super) fn property(bytes: &[u8]) {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let mut line = Bytes::new(line);
        let name = match line.byte() {
            letter @ b'a'..=b'm' => NAMES[usize::from(letter - b'a')],
            other => NAMES[usize::from(other) % NAMES.len()],
        };
        variables.push((name.into(), line.rest().into()));
    }
    // Where the password can only come from the URL.
    let ours =
        !variables.iter().any(|(name, value)| name == "LEADER_STORE" || value.to_string_lossy().contains("sEcReT"));
    if !variables.iter().any(|(name, _)| name == "LEADER_STORE") {
        variables.push(("LEADER_STORE".into(), "redis://:sEcReT@host".into()));
    }
    let config = match config::from_variables(variables.into_iter()) {
        Ok(config) => config,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!ours || !format!("{config:?}").contains("sEcReT"), "{config:?}");
    let _ = config::store(&config);
    if let Ok(groups) = config::groups(&config) {
        assert!(groups.iter().any(|(group, _)| group.as_str() == "default"));
    }
    match config::rhythm(&config) {
        Ok([usable, heartbeat, operation_timeout]) => {
            assert!(
                heartbeat > Duration::ZERO && operation_timeout > Duration::ZERO && usable < Duration::from_secs(3600)
            );
            assert!(heartbeat + operation_timeout < usable, "{heartbeat:?} {operation_timeout:?} {usable:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
