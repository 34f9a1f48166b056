//! Over which client tests speak to their servers: the default one, or the one that `LEADER_REDIS_CLIENT` names.

use std::process::Command;

use leader_core::store::RedisStore;
use leader_core::{Config, RedisClient};

const VARIABLE: &str = "LEADER_REDIS_CLIENT";

/// What the feature `redis` stands for, and the other one.
const DEFAULT: RedisClient = RedisClient::RedisRs;
const OTHER: RedisClient = RedisClient::Fred;

/// The client that the environment names.
fn chosen_client() -> Option<RedisClient> {
    let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
    Some(name.parse().unwrap_or_else(|error| panic!("{error}")))
}

/// The client that stores and configurations from here have.
///
/// # Panics
/// If the environment names a client that there is not.
#[must_use]
pub fn client() -> RedisClient {
    chosen_client().unwrap_or(DEFAULT)
}

/// A configuration for this URL.
///
/// # Panics
/// If the environment names a client that there is not.
pub fn config_at(url: impl Into<String>) -> Config {
    let config = Config::new(url);
    match chosen_client() {
        Some(client) => config.redis_client(client),
        None => config,
    }
}

/// A store at this URL.
///
/// # Panics
/// If the URL means none.
#[must_use]
pub fn store_at(url: &str) -> RedisStore {
    let store = RedisStore::new(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    match chosen_client() {
        Some(client) => store.client(client).unwrap_or_else(|error| panic!("{error}")),
        None => store,
    }
}

/// Runs these tests of this program once more, over the client that is not the default one. Nothing, where the environment
/// names a client: then all tests run over that one.
///
/// # Panics
/// If one fails, or there is none of that name.
#[allow(clippy::print_stderr)]
pub fn again_over_the_other_client(tests: &[&str]) {
    if chosen_client().is_some() {
        return;
    }
    let program = std::env::current_exe().expect("this program has a path");
    let run = Command::new(program)
        .args(tests)
        .args(["--exact", "--nocapture", "--test-threads", "2"])
        .env(VARIABLE, OTHER.to_string())
        .output()
        .expect("this program can be run");
    let (told, shown) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    eprintln!("{told}{shown}");
    assert!(run.status.success(), "over {OTHER}: {}", run.status);
    assert!(told.contains(&format!("test result: ok. {} passed", tests.len())), "some of {tests:?} are no tests");
}
