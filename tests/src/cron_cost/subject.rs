//! Who runs the jobs.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use leader_core::{Config, Elector};
use leader_cron::{Job, Running, Scheduler, Tick};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio_cron_scheduler::JobScheduler;

use super::Turn;
use super::tally::{Figures, Tally};
use crate::redis::Client;

const EACH_SECOND: &str = "* * * * * *";
const GROUP: &str = "crowd";
/// What is begun has settled after so long.
const SETTLE: u64 = 3;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// tokio-cron-scheduler, alone.
    Theirs,
    /// Jobs of no group: they run on each instance, and no store is asked.
    Everywhere,
    /// Each tick is claimed, and its end told, in the memory of the process.
    Memory,
    /// In an SQLite file.
    Sqlite,
    /// On a Redis server.
    Redis,
}

impl Subject {
    /// All, in the order of their turns.
    pub const ALL: [Self; 5] = [Self::Theirs, Self::Everywhere, Self::Memory, Self::Sqlite, Self::Redis];

    /// What the table calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Theirs => "tokio-cron-scheduler",
            Self::Everywhere => "leader, on every instance",
            Self::Memory => "leader, ledger in memory",
            Self::Sqlite => "leader, ledger on SQLite",
            Self::Redis => "leader, ledger on Redis",
        }
    }
}

/// Runs the jobs for as long as their turn lasts.
pub(super) fn measure(turn: &Turn) -> Result<Figures, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let tally = Arc::new(Tally::new(turn.jobs, turn.seconds));
        match turn.subject {
            Subject::Theirs => {
                let mut theirs = theirs(turn.jobs, &tally).await?;
                let figures = watch(turn, &tally).await;
                theirs.shutdown().await?;
                figures
            }
            Subject::Everywhere => {
                let elector = Elector::start(Config::new("memory:")).await?;
                let running = ours(&elector, None, turn.jobs, &tally)?;
                ended(turn, &tally, &elector, running).await
            }
            Subject::Memory | Subject::Sqlite | Subject::Redis => {
                let elector = Elector::start(Config::new(&turn.store).groups([GROUP])).await?;
                let mut changes = elector.subscribe(GROUP)?;
                while !elector.is_leader(GROUP) {
                    changes.next().await.ok_or("the elector has ended")?;
                }
                let running = ours(&elector, Some(GROUP), turn.jobs, &tally)?;
                ended(turn, &tally, &elector, running).await
            }
        }
    })
}

async fn ended(turn: &Turn, tally: &Tally, elector: &Elector, running: Running) -> Result<Figures, Box<dyn Error>> {
    let figures = watch(turn, tally).await;
    elector.shutdown(Duration::from_secs(10)).await?;
    drop(running);
    figures
}

fn ours(elector: &Elector, group: Option<&str>, jobs: usize, tally: &Arc<Tally>) -> Result<Running, Box<dyn Error>> {
    let mut scheduler = Scheduler::new(elector);
    for number in 0..jobs {
        let tally = Arc::clone(tally);
        let job = Job::new(format!("job-{number}"), EACH_SECOND, move |tick: Tick| {
            tally.note(number, u64::try_from(tick.unix_seconds()).ok());
            async {}
        });
        scheduler = scheduler.job(match group {
            Some(group) => job.group(group),
            None => job,
        });
    }
    Ok(scheduler.start()?)
}

async fn theirs(jobs: usize, tally: &Arc<Tally>) -> Result<JobScheduler, Box<dyn Error>> {
    let scheduler = JobScheduler::new().await?;
    for number in 0..jobs {
        let tally = Arc::clone(tally);
        let job = tokio_cron_scheduler::Job::new_async(EACH_SECOND, move |_, _| {
            let tally = Arc::clone(&tally);
            Box::pin(async move { tally.note(number, None) })
        });
        scheduler.add(job?).await?;
    }
    scheduler.start().await?;
    Ok(scheduler)
}

/// Lets the time pass that counts.
async fn watch(turn: &Turn, tally: &Tally) -> Result<Figures, Box<dyn Error>> {
    let mut server = (turn.subject == Subject::Redis).then(|| Client::at(&turn.store)).transpose()?;
    let mut used = || -> Result<(f64, f64), Box<dyn Error>> {
        let server = server.as_mut().map(server_seconds).transpose()?;
        Ok((own_seconds(), server.unwrap_or_default()))
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let first = now.as_secs() + SETTLE;
    tally.begin(first);
    // Between two ticks: all of the first one is counted, and nothing of the one before it.
    sleep_until(Duration::from_secs(first) - Duration::from_millis(1)).await?;
    let before = used()?;
    let last = Duration::from_secs(first + u64::from(turn.seconds)) - Duration::from_millis(1);
    sleep_until(last).await?;
    let after = used()?;
    let part = |before: f64, after: f64| (after - before) / f64::from(turn.seconds);
    // The last ones may be late.
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(tally.figures(part(before.0, after.0), part(before.1, after.1)))
}

async fn sleep_until(since_1970: Duration) -> Result<(), Box<dyn Error>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    tokio::time::sleep(since_1970.saturating_sub(now)).await;
    Ok(())
}

/// Processor time of this process.
fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn server_seconds(client: &mut Client) -> Result<f64, Box<dyn Error>> {
    let info: String = client.command(&["INFO", "cpu"])?;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let (user, system) = (field("used_cpu_user:"), field("used_cpu_sys:"));
    Ok(user.zip(system).map(|(user, system)| user + system).ok_or("INFO cpu tells no times")?)
}
