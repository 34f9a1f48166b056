//! Start-up work for one instance: caches to warm, files to prefetch.
//!
//! # At most once, and in a rolling update usually never
//! The hook runs on the instance that leads when it starts. In a rolling update the lease is still held by an instance of
//! the old version whenever a new one starts, so each new one finds itself a follower and skips; and when the last old
//! instance goes, the lease falls to one whose hook was skipped long ago. So this is for work that is nice to have when a
//! whole fleet starts. What has to happen once for each version does not belong here: see `versioned_warm_up`, or do it in the
//! deployment. While an update is under way, the old and the new version run side by side, whoever leads.

use std::error::Error;
use std::time::Duration;

use leader_core::{Config, bootstrap, leader_only};

/// `None` where another instance leads.
#[leader_only]
async fn warm_caches() -> Option<usize> {
    Some(128)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    // The first round of the election is over when this returns, so the answer below already means something.
    let leader = bootstrap(Config::new(store)).await?;

    match warm_caches().await {
        Some(entries) => println!("this instance leads: {entries} cache entries are warm"),
        None => println!("another instance leads: nothing to do at start-up"),
    }

    // The same without an attribute; the work is lent the lease.
    let term = leader.run_if_leader("default", |lease| async move { lease.term() }).await;
    println!("led under term {term:?}");

    leader.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}
