//! Cron jobs that run on exactly one instance of a fleet.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bodies;
mod data;
mod engine;
mod error;
mod job;
mod registration;
mod run;
mod running;
mod schedule;
mod scheduler;
mod status;
mod tick;
mod timetable;

pub use error::{CronError, JobProblem, StillRunning};
pub use job::Job;
#[cfg(feature = "macros")]
pub use leader_macros::cron;
pub use registration::{IntoOutcome, JobError};
pub use running::Running;
pub use schedule::ScheduleError;
pub use scheduler::Scheduler;
pub use status::{JobStatus, LastRun, RunOutcome};
pub use tick::Tick;

/// What an expanded `#[cron]` calls. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use leader_core::Site;

    pub use crate::data::Data;
    pub use crate::registration::{
        BoxFuture, Context, DataKey, FromContext, IntoOutcome, JobRegistration, Outcome, Run,
    };
}
