//! Measures how late runs begin: `cargo run --release -p leader-cron --example lateness -- JOBS SECONDS`.
//!
//! Each of JOBS jobs is due every second. Printed: runs that were expected and that began, and how long after its tick a run
//! began (median, 99 of 100, worst).
#![allow(clippy::print_stdout)] // It is what this program is for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use leader_core::{Config, Elector};
use leader_cron::{Job, Scheduler, Tick};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u32>());
    let jobs = numbers.next().unwrap_or(Ok(1_000))?;
    let seconds = numbers.next().unwrap_or(Ok(10))?;

    let elector = Elector::start(Config::new("memory:")).await?;
    let lateness: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let mut scheduler = Scheduler::new(&elector);
    for number in 0..jobs {
        let lateness = Arc::clone(&lateness);
        scheduler = scheduler.job(Job::new(format!("job-{number}"), "* * * * * *", move |tick: Tick| {
            let late = SystemTime::now().duration_since(tick.intended()).unwrap_or_default();
            lateness.lock().unwrap_or_else(PoisonError::into_inner).push(late);
            async {}
        }));
    }
    // From the middle of one second to the middle of another, so that just so many ticks lie between.
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    tokio::time::sleep(Duration::from_millis(u64::from(1_500 - since_epoch.subsec_millis()))).await;
    let end = tokio::time::Instant::now() + Duration::from_secs(u64::from(seconds));
    let running = scheduler.start()?;
    tokio::time::sleep_until(end).await;
    running.stop(Duration::from_secs(10)).await?;

    let mut lateness = std::mem::take(&mut *lateness.lock().unwrap_or_else(PoisonError::into_inner));
    lateness.sort_unstable();
    let at = |share: usize| lateness.get((lateness.len() * share / 100).min(lateness.len().saturating_sub(1)));
    println!(
        "{jobs} jobs a second for {seconds} s: {} of {} runs; lateness p50 {:?}, p99 {:?}, max {:?}",
        lateness.len(),
        jobs * seconds,
        at(50).copied().unwrap_or_default(),
        at(99).copied().unwrap_or_default(),
        lateness.last().copied().unwrap_or_default(),
    );
    elector.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}
