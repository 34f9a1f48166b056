//! Start-up work that is done once for each version: by whichever instance comes first, while the others wait for it.
//!
//! # Why not `#[leader_only]`
//! In a rolling update the lease is still held by an instance of the old version whenever a new one starts. So each new one is a
//! follower and would skip the work, and nobody would do it for the new version. Here every instance asks, leader or not, and
//! the version is a part of the key.
//!
//! # What the work must stand
//! It is run again from its beginning if it fails, or if its instance dies, even after its last step. So it is to be harmless
//! when it is repeated: it replaces, or it is one transaction.

use std::error::Error;
use std::time::Duration;

use leader_core::{Config, Elector, LockError, run_once};

/// `None`: it was done by another one. Whoever waits takes it over if that one fails. The note that it is done is kept for
/// longer than the version is in use, but not for ever.
#[run_once(key = "warm-up:{version}", wait = "5m", keep = "90days")]
async fn warm_up(version: &str) -> Result<Option<usize>, LockError> {
    // Takes a while.
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(Some(128))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    // Three instances in one process stand for three that start at once.
    let mut instances = Vec::new();
    for _ in 0..3 {
        instances.push(Elector::start(Config::new(&store)).await?);
    }
    // A service asks with `env!("CARGO_PKG_VERSION")`.
    for version in ["1.4.0", "1.5.0"] {
        // Within the scope, annotated functions ask this elector; a service bootstraps one and needs no scope.
        let start = |n: usize| instances[n].scope(warm_up(version));
        let (a, b, c) = tokio::try_join!(start(0), start(1), start(2))?;
        // Each of them begins to serve only now, when the work is done, whoever did it.
        let by_us = [a, b, c].into_iter().flatten().collect::<Vec<_>>();
        println!("version {version}: warmed up by {} of 3 instances, {by_us:?} entries", by_us.len());
    }
    for instance in &instances {
        instance.shutdown(Duration::from_secs(10)).await?;
    }
    Ok(())
}
