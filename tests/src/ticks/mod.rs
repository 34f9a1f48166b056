//! A seeded simulation of jobs in a fleet: the real courses of several jobs on several instances, against the real rules of
//! the ledger, under the real election, with everything between them that can go wrong, in true time.
//!
//! The judge looks at what bodies did, not at what the ledger says. One run is one seed.

mod checker;
mod election;
pub mod faults;
mod host;
mod jobs;
mod ledger;
mod lock_judge;
mod locked;
mod locks;
mod many;
mod report;
mod runs;
mod settings;
mod topology;
mod upheaval;
mod verdict;
mod world;

pub use many::run_many;
pub use report::Report;
pub use settings::{Settings, Variant};
pub use world::{Outcome, run};
