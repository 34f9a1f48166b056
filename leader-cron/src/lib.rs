//! Cron jobs that run on exactly one instance of a fleet.
//!
//! Every instance schedules every job. A job with `#[leader_only]` (of leader-core) runs only where this instance
//! leads the job's group; without it, it runs everywhere.
//!
//! ```standalone_crate
//! use std::time::Duration;
//!
//! use leader_core::{Config, bootstrap, leader_only};
//! use leader_cron::{Scheduler, Tick, cron};
//! use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
//!
//! struct Archive(UnboundedSender<i64>);
//!
//! #[cron("* * * * * *")] // each second, in UTC
//! #[leader_only(group = "reports")]
//! async fn report(archive: &Archive, tick: Tick) -> Result<(), String> {
//!     archive.0.send(tick.unix_seconds()).map_err(|_| "the archive is closed".to_owned())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let leader = bootstrap(Config::new("memory:")).await?;
//!     let (sender, mut reports) = unbounded_channel();
//!     let jobs = Scheduler::new(&leader).data(Archive(sender)).start()?;
//!
//!     assert!(reports.recv().await.is_some());
//!     assert_eq!(jobs.jobs()[0].name, "report");
//!
//!     // No new run begins, those that are on are waited for, and only then leadership is given up.
//!     leader.shutdown(Duration::from_secs(10)).await?;
//!     Ok(())
//! }
//! ```
//!
//! # Jobs
//! A job is a function with `#[cron]` or `#[every]`, found by itself, or a [`Job`] that is given to the [`Scheduler`]. It takes
//! its state as `&T`, from [`Scheduler::data`], and, if it wants to, its [`Tick`]. With `#[cron_jobs]` on an `impl` block its
//! methods are jobs, too, with `self` from there. An `async fn` runs on the runtime; any other
//! function may block, and runs in the blocking pool. It returns `()` or a `Result<(), E>`.
//!
//! What is wrong with a job (its schedule, its time zone, its group, its name, missing data) is an error of
//! [`Scheduler::start`], which tells everything at once and then starts nothing.
//!
//! # Schedules
//! Five fields (minute, hour, day of the month, month, day of the week), six (a second before them) or seven (a year after
//! them), or one of `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. If both day fields are
//! given, either is enough. The time zone is UTC unless `tz` says otherwise.
//!
//! Or an interval, as `#[every("5m")]` and [`Job::every`] give it: the whole UTC seconds that are a multiple of it since 1970, the
//! same on every instance and after a restart. A job can have several schedules, each in its own time zone; an instant that is due
//! in two of them is one tick.
//!
//! When the clocks change: a fixed time that is left out comes once, at the end of the gap; one that comes twice is taken
//! the first time; an interval such as `*/30` goes on through both hours.
//!
//! # Ticks
//! A [`Tick`] is a whole second of the schedule, computed from the tick before it, never from the time of waking.
//! A job of a group claims each tick in the store's *ledger* before its body begins, under the leader's term:
//! - No tick is run by two instances, or twice by one, whatever happens around it: a hand-over, a crash, a stall, a clock that is
//!   wrong or jumps. A tick is due by the store's clock alone.
//! - Whoever leads next finds what nobody has claimed, and makes up for it, as [`Missed`] and [`Job::within`] say: by default the
//!   newest tick, unless it is older than ten minutes; [`Tick::missed`] says how many there were before it.
//! - One run of a job is on at a time in the whole fleet, unless [`Overlap::Allow`]; a tick that comes meanwhile waits.
//! - A run that died is not repeated, unless [`Delivery::AtLeastOnce`].
//! - After a store has lost its memory a tick may be lost, and is never doubled. The log says which.
//!
//! A job without a group runs on every instance, by its wall clock:
//! - No tick runs twice, also if the clock is set back: jobs then wait until it has caught up.
//! - An instance that was asleep, or whose clock jumped ahead, runs the newest tick once.
//! - Runs do not overlap: a tick that comes while the run before is still on is left out, logged as a warning, and told to the next
//!   run as missed.
//!
//! A panic or an error is logged and counted, and the job runs again at its next tick. [`Running::history`] and
//! [`Running::explain`] tell what became of a tick.
//!
//! # By hand
//! [`Running::trigger`] runs a job now, beside its ticks and consuming none. [`Running::pause`] lets no tick of a job be run in the
//! whole fleet. A job can be [added](Running::add) and [removed](Running::remove) as the program runs, and
//! [renamed](Job::renamed_from).
//!
//! # The end
//! [`Elector::shutdown`](leader_core::Elector::shutdown) ends the jobs, too; [`Running::stop`] ends the jobs and keeps
//! leadership. Dropping the [`Running`] lets no new run begin.
//!
//! # Features
//! - `macros` (on by default): `#[cron]`, `#[every]` and `#[cron_jobs]`.
//! - `serde`: [`JobStatus`] can be serialized.
//! - `tokio-cron-scheduler`: a `JobScheduler` of that crate that is there already wakes the jobs (`Running::tokio_cron`,
//!   `Running::wake_by`). What it loses is caught up, and what it doubles refused.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bodies;
mod by_hand;
mod checks;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for simulations, under `testing`"))]
mod course;
mod courses;
mod data;
mod engine;
mod error;
mod explain;
mod fnv;
mod job;
mod ledger_view;
mod live_job;
mod orders;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for simulations, under `testing`"))]
mod plan;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for simulations, under `testing`"))]
mod policy;
mod registration;
mod renames;
mod rings;
mod run;
mod running;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for simulations, under `testing`"))]
mod schedule;
mod scheduler;
mod status;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for simulations, under `testing`"))]
mod store_clock;
mod tick;
mod timetable;
#[cfg(feature = "tokio-cron-scheduler")]
mod tokio_cron;
mod waker;

pub use error::{CronError, JobProblem, LedgerError, StillRunning, TriggerError};
pub use explain::{Attempt, Explanation};
pub use job::Job;
#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
#[doc(inline)]
pub use leader_macros::{cron, cron_jobs, every};
pub use policy::{Delivery, Missed, Overlap};
pub use registration::{IntoOutcome, JobError};
pub use running::Running;
pub use schedule::ScheduleError;
pub use scheduler::Scheduler;
pub use status::{JobStatus, LastRun, RunOutcome};
pub use tick::Tick;

/// The course of a job by the ledger, for simulations. Not part of the stable API.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing {
    pub use crate::course::{Claimed, Course, Failure, Notice, Poll, Request, Rules};
    pub use crate::plan::{Gap, Reason};
    pub use crate::policy::Policy;
    pub use crate::schedule::Schedule;
    pub use crate::store_clock::StoreClock;
}

/// What expanded attributes call. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use leader_core::Site;

    pub use crate::__put_cron_jobs_on_the_impl_block_of_a_method as put_cron_jobs_on_the_impl_block_of_a_method;
    pub use crate::data::Data;
    pub use crate::policy::{Delivery, Missed, Overlap, Policy};
    pub use crate::registration::{
        BoxFuture, Context, DataKey, FromContext, IntoOutcome, JobRegistration, Outcome, Run, Shared,
    };
    pub use crate::schedule::Timing;
}
