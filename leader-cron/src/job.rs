//! A job: its name, its schedule, its group, and the work.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use leader_core::__private::GroupRegistration;
use leader_core::Site;

use crate::policy::{Delivery, Missed, Overlap, Policy};
use crate::registration::{BoxFuture, Context, DataKey, IntoOutcome, JobRegistration, Outcome, Run};
use crate::schedule::Timing;
use crate::tick::Tick;

/// A job that is made by hand, equal to a function with `#[cron]` or `#[every]`.
///
/// ```
/// use std::time::Duration;
///
/// use leader_cron::{Job, Tick};
///
/// let report = Job::new("report", "0 0 6 * * MON-FRI", |tick: Tick| async move {
///     println!("the report of {}", tick.unix_seconds());
/// })
/// .tz("Europe/Berlin")
/// .group("reports");
///
/// // Several schedules: an instant that is due in two of them is one tick.
/// let refresh = Job::every("refresh", Duration::from_secs(300), |_| async {})
///     .also("0 0 9 * * MON-FRI")
///     .tz("America/New_York");
/// ```
///
/// Nothing is checked before [`Scheduler::start`](crate::Scheduler::start), and then everything is.
#[must_use = "a job runs once it is given to a Scheduler"]
pub struct Job {
    pub(crate) name: String,
    /// One at least.
    pub(crate) schedules: Vec<Timing<String>>,
    /// A time zone that was given before any cron expression was.
    pub(crate) stray_zone: Option<String>,
    pub(crate) membership: Membership,
    pub(crate) place: Place,
    pub(crate) needs: &'static [DataKey],
    pub(crate) body: Body,
    pub(crate) cancel_on_loss: bool,
    pub(crate) policy: Policy,
    pub(crate) renamed_from: Option<String>,
}

/// Where a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Membership {
    /// On every instance.
    None,
    /// On the leader of a group; the body has no gate of its own.
    Chosen(String),
    /// On the leader of the group that `#[leader_only]` on the function names: the body asks that gate.
    Declared(String),
}

impl Membership {
    pub(crate) fn group(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Chosen(group) | Self::Declared(group) => Some(group),
        }
    }
}

/// Where a job was made, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Function(Site),
    Call(&'static Location<'static>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(site) => site.fmt(f),
            Self::Call(place) => write!(f, "{}:{}", place.file(), place.line()),
        }
    }
}

/// The work.
#[derive(Clone)]
pub(crate) enum Body {
    /// A future that can be spawned.
    Async(Arc<dyn Fn(Context) -> BoxFuture<'static, Outcome> + Send + Sync>),
    /// A call that may block its thread.
    Blocking(Arc<dyn Fn(Context) -> Outcome + Send + Sync>),
}

impl Body {
    fn of_async<F, W>(work: W) -> Self
    where
        W: Fn(Tick) -> F + Send + Sync + 'static,
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        let work = Arc::new(work);
        Self::Async(Arc::new(move |cx| {
            let work = Arc::clone(&work);
            Box::pin(async move { work(cx.tick().clone()).await.into_outcome() })
        }))
    }

    fn of_blocking<R: IntoOutcome>(work: impl Fn(Tick) -> R + Send + Sync + 'static) -> Self {
        Self::Blocking(Arc::new(move |cx| work(cx.tick().clone()).into_outcome()))
    }
}

fn cron(expression: impl Into<String>) -> Timing<String> {
    Timing::Cron { expression: expression.into(), zone: None }
}

impl From<Run> for Body {
    fn from(run: Run) -> Self {
        match run {
            Run::Async(run) => Self::Async(Arc::new(move |cx| Box::pin(async move { run(&cx).await }))),
            Run::Blocking(run) => Self::Blocking(Arc::new(move |cx| run(&cx))),
        }
    }
}

impl Job {
    /// A job whose work is async. `schedule` is a cron expression of 5 fields (minute, hour, day of the month, month, day of
    /// the week), 6 (a second before them) or 7 (a year after them), or one of `@hourly`, `@daily`, `@weekly`, `@monthly`
    /// and `@yearly`; in UTC, unless [`tz`](Self::tz) says otherwise.
    ///
    /// The work returns `()` or a `Result<(), E>`, whose error is logged. It runs on the scheduler's runtime: what blocks a
    /// thread belongs into [`blocking`](Self::blocking).
    #[track_caller]
    pub fn new<F, W>(name: impl Into<String>, schedule: impl Into<String>, work: W) -> Self
    where
        W: Fn(Tick) -> F + Send + Sync + 'static,
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        Self::at(name.into(), cron(schedule), Body::of_async(work), Location::caller())
    }

    /// As [`new`](Self::new), but for work that blocks its thread: it runs in tokio's blocking pool.
    #[track_caller]
    pub fn blocking<R, W>(name: impl Into<String>, schedule: impl Into<String>, work: W) -> Self
    where
        W: Fn(Tick) -> R + Send + Sync + 'static,
        R: IntoOutcome,
    {
        Self::at(name.into(), cron(schedule), Body::of_blocking(work), Location::caller())
    }

    /// As [`new`](Self::new), but at an interval: whole seconds, from 1 s to 366 days. Its ticks are the multiples of `period`
    /// since 1970-01-01 00:00 UTC, so they are the same on every instance, and a restart does not move them: every 5 minutes
    /// is at :00, :05, :10; every 7 hours is at another hour each day. It has no time zone.
    #[track_caller]
    pub fn every<F, W>(name: impl Into<String>, period: Duration, work: W) -> Self
    where
        W: Fn(Tick) -> F + Send + Sync + 'static,
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        Self::at(name.into(), Timing::Every(period), Body::of_async(work), Location::caller())
    }

    /// As [`every`](Self::every), but for work that blocks its thread: it runs in tokio's blocking pool.
    #[track_caller]
    pub fn every_blocking<R, W>(name: impl Into<String>, period: Duration, work: W) -> Self
    where
        W: Fn(Tick) -> R + Send + Sync + 'static,
        R: IntoOutcome,
    {
        Self::at(name.into(), Timing::Every(period), Body::of_blocking(work), Location::caller())
    }

    fn at(name: String, timing: Timing<String>, body: Body, place: &'static Location<'static>) -> Self {
        Self::with_body(name, vec![timing], Place::Call(place), body)
    }

    fn with_body(name: String, schedules: Vec<Timing<String>>, place: Place, body: Body) -> Self {
        let (stray_zone, membership, needs, cancel_on_loss) = (None, Membership::None, &[][..], false);
        let policy = Policy::DEFAULT;
        let renamed_from = None;
        Self { name, schedules, stray_zone, membership, place, needs, body, cancel_on_loss, policy, renamed_from }
    }

    /// Adds a schedule: the job runs when that cron expression says so, too. An instant that is due in two schedules is one
    /// tick, and runs once.
    pub fn also(mut self, schedule: impl Into<String>) -> Self {
        self.schedules.push(cron(schedule));
        self
    }

    /// Adds a schedule, an interval as that of [`every`](Self::every): as [`also`](Self::also).
    pub fn also_every(mut self, period: Duration) -> Self {
        self.schedules.push(Timing::Every(period));
        self
    }

    /// Runs the job only where this instance leads `group`. The elector must take part in it:
    /// [`Config::groups`](leader_core::Config::groups).
    pub fn group(self, group: impl Into<String>) -> Self {
        Self { membership: Membership::Chosen(group.into()), ..self }
    }

    /// The time zone of the cron expression that was given last, by its name in the IANA database, such as `Europe/Berlin`.
    /// Without it, UTC. Others that the job has keep theirs; an interval has none.
    pub fn tz(mut self, zone: impl Into<String>) -> Self {
        let mut zones = self.schedules.iter_mut().rev().filter_map(|timing| match timing {
            Timing::Cron { zone, .. } => Some(zone),
            Timing::Every(_) => None,
        });
        *zones.next().unwrap_or(&mut self.stray_zone) = Some(zone.into());
        self
    }

    /// Drops a run at its next await when the lease is lost, or the grace of a drain is over, as
    /// `#[leader_only(on_loss = "cancel")]` does. Without it, a run goes on to its end. Of no effect without a
    /// [`group`](Self::group), or on [`blocking`](Self::blocking) work, which cannot be dropped.
    pub fn cancel_on_loss(self) -> Self {
        Self { cancel_on_loss: true, ..self }
    }

    /// What becomes of ticks that were not run in time: [`Missed::Once`] by default.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.policy.missed = missed;
        self
    }

    /// How old a missed tick may be that is still run: ten minutes by default. [`Duration::MAX`]: of any age, as anacron does.
    pub fn within(mut self, within: Duration) -> Self {
        self.policy.within = Some(within);
        self
    }

    /// Whether two runs of the job may be on at a time, in the whole fleet: not by default.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.policy.overlap = overlap;
        self
    }

    /// What becomes of a tick whose run died half-way: nothing by default.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.policy.delivery = delivery;
        self
    }

    /// How long a run may take. Async work is dropped at its next await after that; [`blocking`](Self::blocking) work cannot
    /// be.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = Some(timeout);
        self
    }

    /// Begins each run up to so much later than its tick, by a part that is chosen by name and tick, so that jobs of one
    /// schedule do not all begin at once. The tick stays the intended one.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.policy.jitter = jitter;
        self
    }

    /// The name that the job had before, in the same group (the history stays under that name): the ticks that were run under it are not run again, and those that
    /// nobody ran in between are made up for, as [`missed`](Self::missed) says. A run under the old name that is still on
    /// elsewhere is waited for, as one under the new name would be. A tick that was given back under the old name, or whose run
    /// died, is not run again; a pause does not go along: pause the job by its new name, too; and if the schedule has changed, too,
    /// it counts from now on, as always.
    ///
    /// A program that knows the job by its old name does not see runs under the new one. So unless runs may
    /// [overlap](Self::overlap), async work is dropped when its lease is lost; [`blocking`](Self::blocking) work cannot be, and may
    /// then run beside the next one.
    ///
    /// It may stay for as long as an instance with the old name may run, and is to go after that.
    ///
    /// ```
    /// use leader_cron::Job;
    ///
    /// let report = Job::new("nightly-report", "@daily", |_| async {}).group("reports").renamed_from("report");
    /// ```
    pub fn renamed_from(self, old_name: impl Into<String>) -> Self {
        Self { renamed_from: Some(old_name.into()), ..self }
    }

    fn from_registration(job: &JobRegistration) -> Self {
        let schedules = job.schedules.iter().map(Timing::to_owned).collect();
        let declared = groups_of(&job.site).next();
        Self {
            membership: declared.map_or(Membership::None, |group| Membership::Declared(group.to_owned())),
            needs: job.needs,
            policy: job.policy,
            renamed_from: job.renamed_from.map(str::to_owned),
            ..Self::with_body(job.name.to_owned(), schedules, Place::Function(job.site), job.run.into())
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name)
            .field("schedules", &self.schedules)
            .field("group", &self.membership.group())
            .field("place", &format_args!("{}", self.place))
            .finish_non_exhaustive()
    }
}

/// The groups that `#[leader_only]` at this place names.
pub(crate) fn groups_of(site: &Site) -> impl Iterator<Item = &'static str> {
    let own = move |group: &&GroupRegistration| group.site == *site;
    inventory::iter::<GroupRegistration>.into_iter().filter(own).map(|group| group.group)
}

/// Every job that this program declares by `#[cron]` or `#[every]`, in order of its place. The linker knows no order.
pub(crate) fn registered() -> Vec<Job> {
    let mut registrations: Vec<_> = inventory::iter::<JobRegistration>.into_iter().collect();
    registrations.sort_unstable_by_key(|job| job.site);
    registrations.into_iter().map(Job::from_registration).collect()
}
