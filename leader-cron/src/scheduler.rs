//! From jobs and data to jobs that run: everything is checked before anything starts.

use std::any::type_name;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use leader_core::{Elector, GroupName, NotReady};

use crate::data::Data;
use crate::engine::Engine;
use crate::error::{CronError, JobProblem};
use crate::job::{self, Job};
use crate::live_job::LiveJob;
use crate::running::Running;
use crate::schedule::{Schedule, ScheduleError};
use crate::status::Record;
use crate::tick::unix_seconds;
use crate::waker;

/// Takes what the jobs need, and starts them: every `#[cron]` of the program, and those that are given to it.
#[derive(Debug)]
#[must_use = "no job runs before `start`"]
pub struct Scheduler {
    elector: Elector,
    jobs: Vec<Job>,
    data: Data,
    problems: Vec<JobProblem>,
}

impl Scheduler {
    /// A scheduler whose jobs ask this elector who leads. Start one for each elector: a job that is scheduled already is an
    /// error of the [`start`](Self::start) of another, because its ticks would run twice.
    pub fn new(elector: &Elector) -> Self {
        Self { elector: elector.clone(), jobs: Vec::new(), data: Data::default(), problems: Vec::new() }
    }

    /// Gives a value, which jobs take as `&T`. One of each type.
    pub fn data<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.data_arc(Arc::new(value))
    }

    /// Gives a value that is shared with others, which jobs take as `&T`. It may be `dyn Trait`, if the trait has `Send` and
    /// `Sync` as supertraits:
    ///
    /// ```standalone_crate
    /// use std::sync::Arc;
    /// use leader_cron::{Scheduler, cron};
    ///
    /// trait Mailer: Send + Sync {
    ///     fn send(&self, text: &str);
    /// }
    ///
    /// #[cron("@hourly")]
    /// fn remind(mailer: &dyn Mailer) {
    ///     mailer.send("an hour has passed");
    /// }
    ///
    /// fn with_mailer(scheduler: Scheduler, mailer: Arc<dyn Mailer>) -> Scheduler {
    ///     scheduler.data_arc(mailer)
    /// }
    /// # fn main() {}
    /// ```
    pub fn data_arc<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        if self.data.insert(value) {
            self.problems.push(JobProblem::DuplicateData { data: type_name::<T>().to_owned() });
        }
        self
    }

    /// Adds a job.
    pub fn job(mut self, job: Job) -> Self {
        self.jobs.push(job);
        self
    }

    /// Starts the jobs, on the current tokio runtime, from the next tick of each. Logs each with its schedule, group and next
    /// tick.
    ///
    /// # Errors
    /// [`CronError`]: there is no runtime, the elector has ended, or something is wrong with the jobs: all that is, at once.
    /// Nothing was started.
    ///
    /// # Panics
    /// If the runtime was built without its timer (`enable_time`).
    pub fn start(self) -> Result<Running, CronError> {
        let Self { elector, jobs, data, mut problems } = self;
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| CronError::NoRuntime)?;
        if matches!(elector.ready(), Err(NotReady::Stopped)) {
            return Err(CronError::ElectorEnded);
        }
        // A runtime without a timer panics here, where it is seen, and not in the waker.
        drop(tokio::time::sleep(Duration::ZERO));
        let mut jobs: Vec<Job> = job::registered().into_iter().chain(jobs).collect();
        jobs.sort_by(|a, b| a.name.cmp(&b.name));
        problems.extend(check_names(&jobs));
        problems.extend(check_groups(&jobs, &elector.groups()));
        problems.extend(check_data(&jobs, &data));
        let start = SystemTime::now();
        let now = unix_seconds(start);
        let schedules = read_schedules(&jobs, now).unwrap_or_else(|wrong| {
            problems.extend(wrong);
            Vec::new()
        });
        problems.extend(check_policies(&jobs, &schedules, now));
        if !problems.is_empty() {
            return Err(CronError::Invalid { problems });
        }
        let names = jobs.iter().map(|job| Arc::from(job.name.as_str())).collect();
        let claim = elector.__claim_jobs(names).map_err(|taken| already_scheduled(&jobs, &taken))?;

        let jobs = jobs.into_iter().zip(schedules).enumerate();
        let jobs: Vec<_> = jobs.map(|(id, (job, schedule))| Arc::new(live(id, job, schedule))).collect();
        announce(&jobs, now);
        let (engine, orders) = Engine::new(elector, data, jobs);
        drop(runtime.spawn(waker::wake(Arc::clone(&engine), orders, start, SystemTime::now)));
        Ok(Running::new(engine, claim))
    }
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
        if let Some(warning) = job.policy.warning(period) {
            tracing::warn!(target: "leader", job = job.name, "job {} ({place}): {warning}", job.name);
        }
        let reason = job.policy.check(job.membership.group().is_some(), period).err()?;
        Some(JobProblem::Policy { job: job.name.clone(), place, reason })
    };
    jobs.iter().zip(schedules).filter_map(check).collect()
}

fn already_scheduled(jobs: &[Job], taken: &[Arc<str>]) -> CronError {
    let twice = jobs.iter().filter(|job| taken.iter().any(|name| **name == *job.name));
    let problem = |job: &Job| JobProblem::AlreadyScheduled { job: job.name.clone(), place: job.place.to_string() };
    CronError::Invalid { problems: twice.map(problem).collect() }
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

/// A job that was checked.
pub(crate) fn live(id: usize, job: Job, schedule: Schedule) -> LiveJob {
    LiveJob {
        id,
        name: job.name.into(),
        schedule,
        policy: job.policy,
        group: job.membership.group().and_then(|group| GroupName::new(group).ok()),
        membership: job.membership,
        cancel_on_loss: job.cancel_on_loss,
        body: job.body,
        place: job.place,
        record: Mutex::new(Record::default()),
    }
}

/// What people look for in a log when a job does not run.
fn announce(jobs: &[Arc<LiveJob>], now: i64) {
    if jobs.is_empty() {
        tracing::warn!(
            target: "leader",
            "there are no jobs; a library with #[cron] functions that the program never mentions is not linked: mention it \
             with `use the_library as _;`"
        );
    }
    for job in jobs {
        let (name, group) = (&*job.name, job.group_name());
        let place = group.map_or_else(|| "on every instance".to_owned(), |group| format!("on the leader of {group}"));
        let next = job.schedule.next_after(now);
        let next = next.map_or_else(|| "never".to_owned(), |next| job.schedule.local_time(next));
        let expression = job.schedule.expression();
        tracing::info!(target: "leader", job = name, group, "job {name}: `{expression}` {place}, next at {next}");
    }
}
