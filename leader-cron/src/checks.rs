//! What has to be right about jobs before they start. Everything that is wrong is told at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leader_core::{Elector, GroupName, Site};

use crate::data::Data;
use crate::error::{CronError, JobProblem};
use crate::job::{Body, Job, Place, groups_of};
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
    problems.extend(check_places(jobs));
    problems.extend(check_renames(jobs, started));
    problems.extend(check_groups(jobs, &elector.groups()));
    problems.extend(check_data(jobs, data));
    let schedules = read_schedules(jobs, now, &mut problems);
    problems.extend(check_policies(jobs, &schedules, now));
    let schedules: Vec<_> = schedules.into_iter().flatten().collect();
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

/// A function and its `#[leader_only]` find each other by their place. Those that one call of a `macro_rules!` makes can have
/// one place, if they are methods of one name: which of the groups is whose cannot be seen then.
fn check_places(jobs: &[Job]) -> Vec<JobProblem> {
    let mut by_place: BTreeMap<Site, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        if let Place::Function(site) = job.place {
            by_place.entry(site).or_default().push(job);
        }
    }
    let check = |(site, jobs): (Site, Vec<&Job>)| {
        let groups: Vec<_> = groups_of(&site).collect();
        let alike = groups.windows(2).all(|pair| pair[0] == pair[1]);
        if groups.is_empty() || (alike && groups.len() >= jobs.len()) {
            return None;
        }
        let jobs = jobs.iter().map(|job| job.name.clone()).collect();
        let groups = groups.into_iter().map(str::to_owned).collect();
        Some(JobProblem::AmbiguousGroup { jobs, place: site.to_string(), groups })
    };
    by_place.into_iter().filter_map(check).collect()
}

fn check_policies(jobs: &[Job], schedules: &[Option<Schedule>], now: i64) -> Vec<JobProblem> {
    let check = |(job, schedule): (&Job, &Option<Schedule>)| {
        let period = schedule.as_ref()?.shortest_distance(now).unwrap_or(Duration::MAX);
        let place = job.place.to_string();
        let blocking = matches!(job.body, Body::Blocking(_));
        let warnings =
            schedule.iter().flat_map(|schedule| schedule.warnings(now)).chain(job.policy.warning(period, blocking));
        for warning in warnings {
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

/// The schedule of each job, if nothing is wrong with it.
fn read_schedules(jobs: &[Job], now: i64, problems: &mut Vec<JobProblem>) -> Vec<Option<Schedule>> {
    let mut read = |job: &Job| {
        let mut wrong: Vec<_> =
            job.stray_zone.iter().map(|zone| ScheduleError::StrayZone { zone: zone.clone() }).collect();
        let schedule = Schedule::of(&job.schedules).map_err(|errors| wrong.extend(errors)).ok();
        wrong.extend(schedule.iter().flat_map(|schedule| schedule.never(now)));
        let is_right = wrong.is_empty();
        let problem = |error| JobProblem::Schedule { job: job.name.clone(), place: job.place.to_string(), error };
        problems.extend(wrong.into_iter().map(problem));
        schedule.filter(|_| is_right)
    };
    jobs.iter().map(&mut read).collect()
}
