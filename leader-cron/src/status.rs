//! What is known of the jobs, for people and dashboards.

use std::time::{Duration, SystemTime};

use leader_core::{GroupName, Term};

/// One job, as this instance sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct JobStatus {
    /// Its name.
    pub name: String,
    /// Its cron expression, or `every 5m`; several with `and` between them.
    pub schedule: String,
    /// The time zone of the schedule. If it has expressions in several, UTC, and `schedule` tells which has which.
    pub zone: String,
    /// The group on whose leader it runs; `None`: on every instance.
    pub group: Option<GroupName>,
    /// When it is due next; `None` if never, or if the jobs were stopped. Serialized in Unix seconds.
    #[cfg_attr(feature = "serde", serde(serialize_with = "unix_seconds::option"))]
    pub next_tick: Option<SystemTime>,
    /// A run is on.
    pub running: bool,
    /// The last run that ended.
    pub last_run: Option<LastRun>,
    /// Runs that began on this instance. A job with `#[with_lock]` or `#[run_once]` whose body was skipped, as its
    /// `on_busy = "skip"` says or because the work was done before, has run as any other, and well: it returned what it
    /// returns then. The log says that it was skipped.
    pub runs: u64,
    /// Those that returned an error.
    pub failures: u64,
    /// Those that panicked.
    pub panics: u64,
    /// Those that were dropped on the way: their lease was lost, or the runtime ended.
    pub cancelled: u64,
    /// Ticks that were not run because this instance did not lead the group.
    pub skipped: u64,
    /// Ticks that were not run because the run before was still on.
    pub overlapping: u64,
    /// Ticks that were not run because this instance was asleep or late; a newer one was run in their place.
    pub missed: u64,
}

/// How a run went.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LastRun {
    /// Its tick: the intended time. Serialized in Unix seconds.
    #[cfg_attr(feature = "serde", serde(serialize_with = "unix_seconds::plain"))]
    pub tick: SystemTime,
    /// The term it ran under.
    pub term: Option<Term>,
    /// How it ended.
    pub outcome: RunOutcome,
    /// How long it took.
    pub duration: Duration,
    /// It was run by hand, and consumed no tick: see [`Running::trigger`](crate::Running::trigger).
    pub manual: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RunOutcome {
    /// It returned.
    Ok,
    /// It returned this error.
    Failed(String),
    /// It panicked with this message.
    Panicked(String),
    /// It was dropped on the way.
    Cancelled,
    /// It took longer than the job may, and was dropped.
    TimedOut,
}

#[cfg(feature = "serde")]
mod unix_seconds {
    use std::time::SystemTime;

    use serde::{Serialize, Serializer};

    use crate::tick::unix_seconds;

    pub(super) fn plain<S: Serializer>(instant: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        unix_seconds(*instant).serialize(serializer)
    }

    // The signature that serde asks for.
    #[allow(clippy::ref_option)]
    pub(super) fn option<S: Serializer>(instant: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
        instant.map(unix_seconds).serialize(serializer)
    }
}

/// What is written down of one job as it runs.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// From the moment a run is spawned until it has ended.
    pub(crate) busy: u64,
    pub(crate) next: Option<i64>,
    pub(crate) last_run: Option<LastRun>,
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    pub(crate) panics: u64,
    pub(crate) cancelled: u64,
    pub(crate) skipped: u64,
    pub(crate) overlapping: u64,
    pub(crate) missed: u64,
    /// Ticks that the next run is told of as missed.
    pub(crate) owed: u64,
}

impl Record {
    pub(crate) fn ended(&mut self, run: LastRun) {
        match run.outcome {
            RunOutcome::Ok => {}
            RunOutcome::Failed(_) => self.failures += 1,
            RunOutcome::Panicked(_) => self.panics += 1,
            RunOutcome::Cancelled | RunOutcome::TimedOut => self.cancelled += 1,
        }
        self.last_run = Some(run);
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_serialized_with_ticks_in_unix_seconds() {
        let instant = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let outcome = RunOutcome::Failed("no paper".to_owned());
        let last_run =
            LastRun { tick: instant(60), term: Some(Term::new(7)), outcome, duration: Duration::ZERO, manual: false };
        let status = JobStatus {
            name: "report".to_owned(),
            schedule: "@hourly".to_owned(),
            zone: "UTC".to_owned(),
            group: None,
            next_tick: Some(instant(3_600)),
            running: false,
            last_run: Some(last_run),
            runs: 1,
            failures: 1,
            panics: 0,
            cancelled: 0,
            skipped: 0,
            overlapping: 0,
            missed: 0,
        };
        let json = serde_json::to_value(status).unwrap();
        assert_eq!(json["next_tick"], 3_600);
        assert_eq!(json["last_run"]["tick"], 60);
        assert_eq!(json["last_run"]["term"], 7);
        assert_eq!(json["last_run"]["outcome"]["failed"], "no paper");
    }
}
