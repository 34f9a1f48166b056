//! A job that every instance schedules and one instance runs, in two groups that elect their leaders independently.
//!
//! Runs for five seconds. Start it twice with `LEADER_STORE=sqlite:///tmp/singleton.db` to see only one of them work.

use std::error::Error;
use std::time::Duration;

use leader_core::{Config, bootstrap, leader_only};
use leader_cron::{Scheduler, Tick, cron, cron_jobs, every};

/// What the jobs share: each asks for it by reference.
struct Reports {
    folder: &'static str,
}

/// Its jobs may be methods, too.
#[cron_jobs]
impl Reports {
    async fn build(&self, name: &str) {
        println!("{}/{name} is built", self.folder);
    }

    /// In a group of its own: another instance may lead it.
    #[every("2s")]
    #[leader_only(group = "cleanup")]
    async fn remove_expired(&self) {
        println!("expired reports are removed from {}", self.folder);
    }
}

/// In the group `default`. The tick is the intended time, so that a report that begins late is still about its own hour
/// (here: second).
#[cron("* * * * * *")]
#[leader_only]
async fn hourly_report(reports: &Reports, tick: Tick) {
    reports.build(&format!("report-{}", tick.unix_seconds())).await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = std::env::var("LEADER_STORE").unwrap_or_else(|_| "memory:".to_owned());
    // Both groups are known from the attributes.
    let leader = bootstrap(Config::new(store)).await?;
    for group in leader.status().groups {
        println!("{}: {:?}", group.group, group.standing);
    }
    let _jobs = Scheduler::new(&leader).data(Reports { folder: "reports" }).start()?;

    // A service waits for `leader_core::shutdown_signal()` instead.
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Stops the jobs, waits for the runs that are on, and gives the leases back, so that another instance leads at once.
    leader.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}
