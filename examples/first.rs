//! The first program: start it in several terminals with the same LEADER_STORE, such as `sqlite:///tmp/first.db`, and one
//! of them sends the digests; stop that one, and another goes on. Ctrl-C stops it.

use leader_core::{Config, bootstrap, leader_only, shutdown_signal};
use leader_cron::{Scheduler, cron};
use std::sync::atomic::{AtomicU64, Ordering};

#[cron("*/2 * * * * *")]
#[leader_only]
async fn send_digest(sent: &AtomicU64) {
    println!("digest {}", sent.fetch_add(1, Ordering::Relaxed) + 1);
}

#[leader_only]
async fn warm_up() {
    println!("this instance leads, so it warms the caches; Ctrl-C stops it");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let leader = bootstrap(Config::from_env()?).await?;
    let _jobs = Scheduler::new(&leader).data(AtomicU64::new(0)).start()?;
    warm_up().await;
    shutdown_signal().await?;
    Ok(leader.shutdown(std::time::Duration::from_secs(10)).await?)
}
