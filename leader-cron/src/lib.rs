//! Cron jobs that run on exactly one instance of a fleet.

mod data;
mod registration;
mod tick;

#[doc(inline)]
pub use leader_macros::cron;
pub use registration::JobError;
pub use tick::Tick;

/// What an expanded `#[cron]` calls. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use leader_core::Site;

    pub use crate::data::Data;
    pub use crate::registration::{
        BoxFuture, Context, DataKey, FromContext, IntoOutcome, JobRegistration, Outcome, Run, Shared,
    };
}
