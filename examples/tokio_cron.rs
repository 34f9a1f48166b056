//! A service that has a `JobScheduler` of tokio-cron-scheduler already keeps it: it wakes the jobs, and one instance runs them.
//!
//! ```text
//! cargo run --example tokio_cron --features tokio-cron-scheduler
//! ```
//! Runs for seven seconds. Start it twice with `LEADER_STORE=sqlite:///tmp/singleton.db` to see only one of them work.

use std::error::Error;
use std::time::Duration;

use leader_core::{Config, bootstrap, leader_only};
use leader_cron::{Job, Scheduler, Tick, cron};
use tokio_cron_scheduler::{Job as Plain, JobScheduler};

/// One that registers itself.
#[cron("*/2 * * * * *")]
#[leader_only(group = "cleanup")]
async fn cleanup() {
    println!("expired reports are removed");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    let leader = bootstrap(Config::new(store).groups(["reports"])).await?;
    let jobs = Scheduler::new(&leader).start()?;

    let mut scheduler = JobScheduler::new().await?;
    // What runs on every instance, as before.
    scheduler.add(Plain::new("*/3 * * * * *", |_id, _scheduler| println!("the cache is fresh"))?).await?;
    // All jobs that there are, and one more.
    jobs.wake_by(&scheduler).await?;
    let report = Job::new("report", "*/2 * * * * *", |tick: Tick| async move {
        println!("report-{} is built", tick.unix_seconds());
    });
    scheduler.add(jobs.tokio_cron(report.group("reports"))?).await?;
    scheduler.start().await?;

    // A service waits for `leader_core::shutdown_signal()` instead.
    tokio::time::sleep(Duration::from_secs(7)).await;
    scheduler.shutdown().await?;
    // Stops the jobs, waits for the runs that are on, and gives the leases back, so that another instance leads at once.
    leader.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}
