//! What has to be right about jobs before they start. Everything that is wrong is told at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leader_core::{Elector, GroupName};

use crate::data::Data;
use crate::error::{CronError, JobProblem};
use crate::job::{Body, Job};
use crate::live_job::LiveJob;
use crate::renames::check_renames;
use crate::schedule::{Schedule, ScheduleError};

/// Checks jobs that are to run on this elector with this data, from `now` on, in seconds, beside others that were started
/// before; and returns their schedules.
pub(crate) fn check(
    jobs: &[Job],
    elector: &Elector,
    data: &Data,
    now: i64,
    started: &[Arc<LiveJob>],
    mut problems: Vec<JobProblem>,
) -> Result<Vec<Schedule>, CronError> {
    problems.extend(check_names(jobs));
    problems.extend(check_renames(jobs, started));
    problems.extend(check_groups(jobs, &elector.groups()));
    problems.extend(check_data(jobs, data));
    let schedules = read_schedules(jobs, now).unwrap_or_else(|wrong| {
        problems.extend(wrong);
        Vec::new()
    });
    problems.extend(check_policies(jobs, &schedules, now));
    if problems.is_empty() { Ok(schedules) } else { Err(CronError::Invalid { problems }) }
}

pub(crate) fn already_scheduled(jobs: &[Job], taken: &[Arc<str>]) -> CronError {
    let twice = jobs.iter().filter(|job| taken.iter().any(|name| **name == *job.name));
    let problem = |job: &Job| JobProblem::AlreadyScheduled { job: job.name.clone(), place: job.place.to_string() };
    CronError::Invalid { problems: twice.map(problem).collect() }
}

fn check_names(jobs: &[Job]) -> Vec<JobProblem> {
    let mut problems = Vec::new();
    let mut seen: BTreeMap<&str, &Job> = BTreeMap::new();
    for job in jobs {
        // The name of a job is a part of keys in the store, as a group's is.
        if GroupName::new(&job.name).is_err() {
            problems.push(JobProblem::Name { job: job.name.clone(), place: job.place.to_string() });
        }
        if let Some(first) = seen.insert(&job.name, job) {
            let (first, second) = (first.place.to_string(), job.place.to_string());
            problems.push(JobProblem::DuplicateName { job: job.name.clone(), first, second });
        }
    }
    problems
}

fn check_policies(jobs: &[Job], schedules: &[Schedule], now: i64) -> Vec<JobProblem> {
    let check = |(job, schedule): (&Job, &Schedule)| {
        let first = schedule.next_after(now)?;
        let next = schedule.next_after(first);
        let period = next.map_or(Duration::MAX, |next| Duration::from_secs(next.abs_diff(first)));
        let place = job.place.to_string();
        let blocking = matches!(job.body, Body::Blocking(_));
        if let Some(warning) = job.policy.warning(period, blocking) {
            tracing::warn!(target: "leader", job = job.name, "job {} ({place}): {warning}", job.name);
        }
        let reason = job.policy.check(job.membership.group().is_some(), period).err()?;
        Some(JobProblem::Policy { job: job.name.clone(), place, reason })
    };
    jobs.iter().zip(schedules).filter_map(check).collect()
}

fn check_groups(jobs: &[Job], known: &[GroupName]) -> Vec<JobProblem> {
    let check = |job: &Job| {
        let group = job.membership.group().filter(|group| known.iter().all(|known| known.as_str() != *group))?;
        Some(JobProblem::UnknownGroup {
            job: job.name.clone(),
            place: job.place.to_string(),
            group: group.to_owned(),
            known: known.iter().map(ToString::to_string).collect(),
        })
    };
    jobs.iter().filter_map(check).collect()
}

fn check_data(jobs: &[Job], data: &Data) -> Vec<JobProblem> {
    let missing = |job: &Job| {
        let (name, place) = (job.name.clone(), job.place.to_string());
        let problem = move |need: crate::registration::DataKey| {
            let ty = need.type_name();
            let advice = if need.is_in_as_arc(data) {
                format!(
                    "an `Arc` of it was given with `.data(..)`, which is another type; write `.data_arc::<{ty}>(..)`"
                )
            } else if ty.starts_with("dyn ") {
                format!("`.data_arc::<{ty}>(Arc::new(..))`")
            } else {
                "`.data(..)`".to_owned()
            };
            JobProblem::MissingData { job: name.clone(), place: place.clone(), data: ty.to_owned(), advice }
        };
        job.needs.iter().copied().filter(|need| !need.is_in(data)).map(problem).collect::<Vec<_>>()
    };
    jobs.iter().flat_map(missing).collect()
}

fn read_schedules(jobs: &[Job], now: i64) -> Result<Vec<Schedule>, Vec<JobProblem>> {
    let read = |job: &Job| {
        let schedule = Schedule::parse(&job.schedule, job.zone.as_deref())?;
        match schedule.next_after(now) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never { expression: job.schedule.clone() }),
        }
    };
    let (mut schedules, mut problems) = (Vec::new(), Vec::new());
    for job in jobs {
        match read(job) {
            Ok(schedule) => schedules.push(schedule),
            Err(error) => {
                problems.push(JobProblem::Schedule { job: job.name.clone(), place: job.place.to_string(), error });
            }
        }
    }
    if problems.is_empty() { Ok(schedules) } else { Err(problems) }
}
