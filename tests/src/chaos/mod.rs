//! Locks under everything that can go wrong: several real processes take locks, work under them and give them back, while
//! processes are killed and stopped, connections cut, delayed and lost, and the store is held up.
//!
//! - [`settings`]: what a chaos is to be like. [`cli`]: the command line.
//! - [`plan`]: which faults strike when, by the seed. [`ground`]: the store, and what is done to it. [`crew`]: the processes,
//!   and what is done to them. [`course`](run): all of it in time.
//! - [`member`]: what each process does. [`log`]: what it writes down. [`once`]: the same for work that is done once.
//! - [`check`]: what that must never show. [`Report`]: the figures.
//!
//! Bodies note each of their steps by the boot clock that all processes share; the checker lays the logs over each other.

pub mod check;
pub mod cli;
mod course;
pub mod crew;
pub mod ground;
pub mod log;
pub mod member;
pub mod once;
pub mod plan;
pub mod settings;

pub use course::run;
pub use once::run_once;
pub use settings::{Bad, Place, Settings};

/// What one chaos did, and what the checker found.
pub type Report = crate::command::Report<check::Figures, check::Violation>;
