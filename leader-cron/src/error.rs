//! What can go wrong at start and at stop, and what to do about it.

use std::fmt;
use std::time::Duration;

use leader_core::{InstanceId, RunningWork, StoreError};

use crate::schedule::ScheduleError;

/// The jobs were not started. None of them runs.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CronError {
    /// Bodies run on a tokio runtime, and there is none.
    #[error(
        "no job was started: there is no tokio runtime here to run them on; call Scheduler::start inside of one (in \
         an async fn under #[tokio::main], or after Runtime::enter)"
    )]
    NoRuntime,
    /// The elector has ended, or the jobs that one was to be added to were stopped.
    #[error(
        "no job was started: the elector has been shut down, or the jobs that this one was to be added to were stopped; start a new \
         Scheduler, on an elector that has not ended"
    )]
    ElectorEnded,
    /// Something is wrong with jobs or data: everything that is.
    #[error("no job was started: {}", list(problems))]
    Invalid {
        /// All of it.
        problems: Vec<JobProblem>,
    },
}

fn list(problems: &[JobProblem]) -> String {
    match problems {
        [problem] => problem.to_string(),
        problems => problems.iter().map(|problem| format!("\n- {problem}")).collect(),
    }
}

fn rename(of_one_function: bool) -> &'static str {
    if of_one_function {
        "an attribute that was imported under another name is not known for a schedule of the same job: write `#[cron]` and \
         `#[every]` by their own names"
    } else {
        "give one of them another name: #[cron(…, name = \"…\")], or the first argument of Job::new"
    }
}

/// What is wrong with one job, or with the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobProblem {
    /// A job's name.
    #[error(
        "`{job}` ({place}) cannot be the name of a job; use 1 to 64 ASCII letters, digits, `.`, `_` or `-`: \
         #[cron(…, name = \"nightly-cleanup\")]"
    )]
    Name {
        /// The name.
        job: String,
        /// Where the job was made.
        place: String,
    },
    /// Two jobs have one name.
    #[error("two jobs are called `{job}`: {first} and {second}; {}", rename(first == second))]
    DuplicateName {
        /// The name.
        job: String,
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// Another scheduler of this elector has the job: its ticks would run twice.
    #[error(
        "a job called `{job}` is scheduled on this elector already, so this one ({place}) is not: take the other out \
         (Running::remove), give this one another name, or, if there are two Schedulers, give all jobs and data to one"
    )]
    AlreadyScheduled {
        /// The job.
        job: String,
        /// Where it was made.
        place: String,
    },
    /// A job's schedule or time zone.
    #[error("job `{job}` ({place}): {error}")]
    Schedule {
        /// The job.
        job: String,
        /// Where it was made.
        place: String,
        /// What is wrong.
        error: ScheduleError,
    },
    /// A job belongs to a group that the elector has no part in.
    #[error(
        "job `{job}` ({place}) runs on the leader of group `{group}`, but this elector takes no part in it (it has \
         {known:?}); add it: Config::groups([\"{group}\"])"
    )]
    UnknownGroup {
        /// The job.
        job: String,
        /// Where it was made.
        place: String,
        /// The group.
        group: String,
        /// The groups that the elector has.
        known: Vec<String>,
    },
    /// Jobs and groups of one place: which belongs to which cannot be seen.
    #[error(
        "`#[leader_only]` names the groups {groups:?} for the jobs {jobs:?}, all at {place}, and which is whose cannot be \
         seen: one job has one group, and methods that a macro makes need names of their own"
    )]
    AmbiguousGroup {
        /// The jobs.
        jobs: Vec<String>,
        /// The place.
        place: String,
        /// The groups that are named there.
        groups: Vec<String>,
    },
    /// A job takes a value that was not given.
    #[error("job `{job}` ({place}) takes a `&{data}`, which was not given; give it before the start: {advice}")]
    MissingData {
        /// The job.
        job: String,
        /// Where it was made.
        place: String,
        /// The type.
        data: String,
        /// How.
        advice: String,
    },
    /// The name that a job had before, as it says.
    #[error("job `{job}` ({place}) is renamed from `{old_name}`, but {reason}")]
    OldName {
        /// The job.
        job: String,
        /// Where it was made.
        place: String,
        /// The old name.
        old_name: String,
        /// What is wrong, and what would do.
        reason: String,
    },
    /// A job's policies do not go together.
    #[error("job `{job}` ({place}): {reason}")]
    Policy {
        /// The job.
        job: String,
        /// Where it was made.
        place: String,
        /// What is wrong, and what would do.
        reason: String,
    },
    /// Two values of one type were given.
    #[error(
        "two values of the type `{data}` were given as data, and a job gets one by its type; wrap one in a type of its own"
    )]
    DuplicateData {
        /// The type.
        data: String,
    },
}

/// A question about one job was not answered.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// There is no such job.
    #[error("there is no job `{job}`; there are {known:?}")]
    Unknown {
        /// The name that was asked for.
        job: String,
        /// The names of the jobs.
        known: Vec<String>,
    },
    /// The job belongs to no group: each instance runs it, and nobody keeps a record.
    #[error(
        "job `{job}` runs on every instance, so the ledger has no record of it; give it a group: #[leader_only], Job::group"
    )]
    NotInLedger {
        /// The job.
        job: String,
    },
    /// No instance has registered the job since the store forgot it.
    #[error(
        "the ledger has no record of job `{job}` yet: an instance that runs it makes one as soon as it reaches the store"
    )]
    NoRecord {
        /// The job.
        job: String,
    },
    /// Somebody else has written into the job's record.
    #[error("the record of job `{job}` cannot be read (`{field}`): remove it, and the job begins anew")]
    Corrupt {
        /// The job.
        job: String,
        /// Which part of it.
        field: &'static str,
    },
    /// The store did not answer, or refused.
    #[error("job `{job}`: {}", .error.__in_the_end())]
    Store {
        /// The job.
        job: String,
        /// What the store said.
        error: StoreError,
    },
}

/// A job was not run by hand: [`Running::trigger`](crate::Running::trigger).
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// This instance does not lead the job's group, is about to give it up, or lost it before the body began.
    #[error(
        "job `{job}` was not run: it runs on the leader of group `{group}`, which this instance is not{}",
        .leader.as_ref().map_or_else(
            || "; nobody is known to be: try again, on the instance that leads by then".to_owned(),
            |leader| format!("; trigger it on instance {leader}")
        )
    )]
    NotLeading {
        /// The job.
        job: String,
        /// Its group.
        group: String,
        /// The instance that leads it; `None` if that is unknown.
        leader: Option<InstanceId>,
    },
    /// A run of the job is on, and runs of it exclude each other.
    #[error(
        "job `{job}` was not run: a run of it is on, on instance {instance}, for {running_for:.0?}; wait for its end (if \
         that instance died, its place ends within a ttl), or let runs overlap (Overlap::Allow)"
    )]
    Busy {
        /// The job.
        job: String,
        /// Where.
        instance: InstanceId,
        /// For how long; of a run elsewhere, since its tick was claimed.
        running_for: Duration,
    },
    /// The jobs were stopped, the job was removed, or the elector ends.
    #[error("job `{job}` was not run: the jobs of this instance were stopped, or the job was removed")]
    Stopped {
        /// The job.
        job: String,
    },
    /// There is no such job, or the ledger could not be asked whether it is free.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Runs have outlived the grace of [`Running::stop`](crate::Running::stop). No new one starts.
#[derive(Clone, thiserror::Error)]
#[error("the jobs were stopped, but runs have not ended within the grace: {}", .running.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
#[non_exhaustive]
pub struct StillRunning {
    /// What still runs.
    pub running: Vec<RunningWork>,
}

/// A `main` that returns an error prints its Debug: let it be the message.
macro_rules! debug_is_display {
    ($($error:ty),*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_is_display!(CronError, LedgerError, StillRunning, TriggerError);
