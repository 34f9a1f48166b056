//! From jobs and data to jobs that run: everything is checked before anything starts.

use std::any::type_name;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use leader_core::__private::NamedJob;
use leader_core::store::JobName;
use leader_core::{Elector, GroupName, NotReady};

use crate::checks::{already_scheduled, check};
use crate::data::Data;
use crate::engine::Engine;
use crate::error::{CronError, JobProblem};
use crate::job::{self, Job};
use crate::live_job::LiveJob;
use crate::running::Running;
use crate::schedule::Schedule;
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
        let Self { elector, jobs, data, problems } = self;
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| CronError::NoRuntime)?;
        if matches!(elector.ready(), Err(NotReady::Stopped)) {
            return Err(CronError::ElectorEnded);
        }
        // A runtime without a timer panics here, where it is seen, and not in the waker.
        drop(tokio::time::sleep(Duration::ZERO));
        let mut jobs: Vec<Job> = job::registered().into_iter().chain(jobs).collect();
        jobs.sort_by(|a, b| a.name.cmp(&b.name));
        let start = SystemTime::now();
        let now = unix_seconds(start);
        let schedules = check(&jobs, &elector, &data, now, &[], problems)?;
        let named: Vec<_> = jobs.iter().zip(&schedules).map(|(job, schedule)| named(job, schedule)).collect();
        let claim = elector.__claim_jobs(&named).map_err(|taken| already_scheduled(&jobs, &taken))?;

        let jobs = jobs.into_iter().zip(schedules).enumerate();
        let jobs: Vec<_> = jobs.map(|(id, (job, schedule))| Arc::new(live(id, job, schedule))).collect();
        warn_if_there_is_none(&jobs);
        for job in &jobs {
            job.record().next = job.schedule.next_after(now);
            job.announce(now);
        }
        let (engine, orders) = Engine::new(elector, data, jobs);
        drop(runtime.spawn(waker::wake(Arc::clone(&engine), orders, start, SystemTime::now)));
        Ok(Running::new(engine, claim))
    }
}

/// A job, as other instances are told of it: with its group, if it has one, and its schedule.
pub(crate) fn named(job: &Job, schedule: &Schedule) -> NamedJob {
    let group = job.membership.group().and_then(|group| GroupName::new(group).ok());
    (Arc::from(job.name.as_str()), group.map(|group| (group, schedule.text())))
}

/// A job that was checked.
pub(crate) fn live(id: usize, job: Job, schedule: Schedule) -> LiveJob {
    LiveJob {
        id,
        name: job.name.into(),
        place: job.place,
        schedule,
        policy: job.policy,
        group: job.membership.group().and_then(|group| GroupName::new(group).ok()),
        membership: job.membership,
        renamed_from: job.renamed_from.and_then(|name| JobName::new(name).ok()),
        cancel_on_loss: job.cancel_on_loss,
        body: job.body,
        record: Mutex::new(Record::default()),
    }
}

fn warn_if_there_is_none(jobs: &[Arc<LiveJob>]) {
    if jobs.is_empty() {
        tracing::warn!(
            target: "leader",
            "there are no jobs; a library with #[cron] functions that the program never mentions is not linked: mention it \
             with `use the_library as _;`"
        );
    }
}
