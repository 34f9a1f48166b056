//! Cron jobs under everything that can go wrong: several real processes run the same jobs, while leaders are killed around
//! their ticks, stopped and restarted, wall clocks differ and jump, and the store is restarted, held up and cut off; and it
//! is checked that no tick is lost, doubled, early, or run beside another one.
//!
//! - [`settings`]: what a chaos is to be like. [`cli`]: the command line. [`jobs`]: the jobs, and what each promises.
//! - [`plan`]: which faults strike when, by the seed. [`course`](run): all of it in time.
//! - [`member`]: what each process does. [`line`](Line): what it writes down. [`witness`](Witness): who asks the ledger, before
//!   it forgets, what it knows of processes that were killed.
//! - [`judge`]: what the lines must never show. [`Report`]: the figures.
//!
//! Counted is what bodies wrote themselves, as the first and the last thing they did. The ledger is asked only about a tick that
//! no body began: whether it had been claimed by a process that was then killed, or was given up because the store may have
//! lost its memory. Closeness in time excuses nothing.

pub mod cli;
mod course;
pub mod jobs;
pub mod judge;
mod line;
pub mod member;
pub mod plan;
pub(crate) mod progress;
pub mod settings;
mod witness;

pub use course::run;
pub use line::Line;
pub use settings::Settings;
pub use witness::{Known, Witness};

/// What one chaos did, and what the judge found.
pub type Report = crate::command::Report<judge::Figures, judge::Violation>;
