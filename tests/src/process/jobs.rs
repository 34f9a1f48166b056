//! Jobs of a node: each run is told, and does nothing else.

use std::time::Duration;

use leader_core::{BootInstant, Elector, Lease};
use leader_cron::{CronError, Job, Missed, Running, Scheduler, Tick};
use serde::{Deserialize, Serialize};

use super::fleet::Fleet;
use super::talk::Told;

/// A job that a node is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPlan {
    /// Its name.
    pub name: String,
    /// Its cron expression, in UTC.
    pub schedule: String,
    /// Its group, which the node takes part in.
    pub group: String,
    /// What becomes of ticks that were not run in time.
    pub missed: MissedTicks,
    /// How old a tick may be that is run, if not as usual.
    pub within: Option<Duration>,
}

/// [`Missed`], as a node is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedTicks {
    /// The newest is run.
    Once,
    /// None is run.
    Skip,
    /// All are run.
    All,
}

impl From<MissedTicks> for Missed {
    fn from(missed: MissedTicks) -> Self {
        match missed {
            MissedTicks::Once => Self::Once,
            MissedTicks::Skip => Self::Skip,
            MissedTicks::All => Self::All,
        }
    }
}

impl JobPlan {
    /// A job of the group `default`.
    #[must_use]
    pub fn new(name: &str, schedule: &str, missed: MissedTicks) -> Self {
        Self { name: name.to_owned(), schedule: schedule.to_owned(), group: "default".to_owned(), missed, within: None }
    }

    /// The same job in another group.
    #[must_use]
    pub fn of_group(self, group: &str) -> Self {
        Self { group: group.to_owned(), ..self }
    }

    /// The same job, which runs ticks of any age.
    #[must_use]
    pub fn forever(self) -> Self {
        Self { within: Some(Duration::MAX), ..self }
    }

    fn job(&self) -> Job {
        let name = self.name.clone();
        // Whoever listens may be slow to read.
        let job = Job::blocking(&self.name, &self.schedule, move |tick: Tick| tell(&name, &tick));
        let job = job.group(&self.group).missed(self.missed.into());
        match self.within {
            Some(within) => job.within(within),
            None => job,
        }
    }
}

fn tell(job: &str, tick: &Tick) {
    let run = JobRun {
        job: job.to_owned(),
        tick: tick.unix_seconds(),
        missed: tick.missed(),
        attempt: tick.attempt(),
        term: tick.lease().map_or(0, |lease: &Lease| lease.term().get()),
        at_ns: BootInstant::now().as_nanos(),
    };
    Told::Ran { run }.tell();
}

/// A run of a job, as its body saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRun {
    /// The job's name.
    pub job: String,
    /// The intended time, in seconds since 1970.
    pub tick: i64,
    /// How many ticks before it were not run.
    pub missed: u64,
    /// Which attempt at the tick this is.
    pub attempt: u32,
    /// Under which term.
    pub term: u64,
    /// When the body began, in nanoseconds of the boot clock.
    pub at_ns: u64,
}

/// Starts the jobs, if there are any.
pub(super) fn start(elector: &Elector, jobs: &[JobPlan]) -> Result<Option<Running>, CronError> {
    if jobs.is_empty() {
        return Ok(None);
    }
    let scheduler = jobs.iter().fold(Scheduler::new(elector), |scheduler, plan| scheduler.job(plan.job()));
    scheduler.start().map(Some)
}

impl Fleet {
    /// The runs of a job that the nodes have told of so far, in the order of their beginnings, each with its node's label.
    #[must_use]
    pub fn runs_of(&self, job: &str) -> Vec<(String, JobRun)> {
        let runs = self.told.iter().filter_map(|(label, told)| match told {
            Told::Ran { run } if run.job == job => Some((label.clone(), run.clone())),
            _ => None,
        });
        let mut runs: Vec<_> = runs.collect();
        runs.sort_by_key(|(_, run)| run.at_ns);
        runs
    }

    /// Waits until a node has told of a run of `job` that is wanted.
    ///
    /// # Panics
    /// If it does not for very long.
    pub fn runs(&mut self, label: &str, job: &str, what: &str, wanted: impl Fn(&JobRun) -> bool) -> JobRun {
        self.until(&format!("{label} runs {job}: {what}"), |fleet| {
            fleet.told_by(label).find_map(|told| match told {
                Told::Ran { run } if run.job == job && wanted(run) => Some(run.clone()),
                _ => None,
            })
        })
    }
}
