//! URLs of stores: what is refused says why, what is taken means the same when it is read again, and no password is ever shown.

use std::fmt::Debug;

use leader_core::Config;
use leader_core::store::RedisStore;
use leader_core::testing::{config, redis_script};

use super::assert_one_line;
use super::bytes::Bytes;

/// Stands at both ends of each password, so that no piece of one is shown unnoticed.
const MARK: &str = "sEcReT";

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    if bytes.flag() {
        made(&mut bytes);
    } else {
        any(&bytes.rest());
    }
}

/// Whatever it is.
fn any(url: &str) {
    let _ = all_that_is_shown(url);
    let Ok(store) = RedisStore::new(url) else { return };
    let shown = leader_core::store::LeaseStore::address(&store);
    assert_one_line(&shown);
    if shown.matches('@').count() == usize::from(shown.contains("***@")) {
        let without = shown.replacen("***@", "", 1);
        let again = RedisStore::new(&without).unwrap_or_else(|error| panic!("{url} is shown as {shown}: {error}"));
        assert_eq!(leader_core::store::LeaseStore::address(&again), without, "{url}");
    }
}

/// One with a password in it, somewhere.
fn made(bytes: &mut Bytes<'_>) {
    let scheme = bytes.choice(&[
        "redis://",
        "rediss://",
        "redis-sentinel://",
        "rediss-sentinel://",
        "redis-cluster://",
        "postgres://",
        "redis:",
        "",
    ]);
    let sentinels = scheme.contains("sentinel");
    let (encoded, with_user, as_sentinels) = (bytes.flag(), bytes.flag(), bytes.flag());
    let (user, inner) = (bytes.text(), bytes.text());
    let secret = format!("{MARK}{inner}{MARK}");
    let written = |text: &str| if encoded { percent_encoded(text) } else { text.to_owned() };
    let (user, password) = (if with_user { written(&user) } else { String::new() }, written(&secret));
    // Whoever forgets the host has a password in its place.
    let hosts = bytes.choice(&["@host", "@a:1,b", "@[::1]:7", "@host:0", "@ho st", "@", "", ":6379"]);
    let tail = bytes.choice(&["", "/0", "/service/1", "/service", "?ca=/a.pem", "?x=1", "#end", "/0/1"]);
    let url = match bytes.below(4) {
        // As the one to the sentinels, too.
        0 if sentinels && as_sentinels => {
            let tail = tail.split(['?', '#']).next().unwrap_or_default();
            format!("{scheme}{user}{hosts}{tail}?sentinel_password={password}")
        }
        1 => format!("{scheme}:{password}{hosts}{tail}"),
        _ => format!("{scheme}{user}:{password}{hosts}{tail}"),
    };
    // What nobody can tell from a host, from the name of a service, or from that of a store in memory, is one.
    let is_name = !encoded && !hosts.contains('@') && (inner.contains('@') || sentinels && user.contains('/'));
    let is_of_no_server = ["memory:", "sqlite:"].iter().any(|scheme| url.starts_with(scheme));
    if user.contains(MARK) || is_name || is_of_no_server {
        return;
    }
    for shown in all_that_is_shown(&url) {
        assert!(!shown.contains(MARK), "{url} is shown as {shown}");
    }
    if encoded && let Some(all) = redis_script::credentials(&url) {
        let found = all.iter().any(|(_, password)| password.as_deref() == Some(secret.as_str()));
        assert!(found, "the password in {url} is not the one that was encoded: {all:?}");
    }
}

/// In logs, messages, and errors.
fn all_that_is_shown(url: &str) -> Vec<String> {
    let config = Config::new(url);
    let mut shown = vec![format!("{config:?}"), format!("{config:#?}")];
    match config::store(&config) {
        Ok(store) => shown.push(store.address()),
        Err(error) => shown.extend(both(&error, error.to_string())),
    }
    match RedisStore::new(url) {
        Ok(store) => shown.push(format!("{store:?}")),
        Err(error) => shown.extend(both(&error, error.to_string())),
    }
    shown
}

fn both(error: &impl Debug, told: String) -> [String; 2] {
    [format!("{error:?}"), told]
}

fn percent_encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}
