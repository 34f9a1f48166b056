//! A seeded simulation of a fleet: the real election against the real script of the Redis store, or the model of its rules,
//! with everything between them that can go wrong, in true time.
//!
//! One run is one seed: the same seed and settings give the same run, on any machine.

pub mod agenda;
mod backend;
pub mod checker;
pub mod clock;
pub mod cluster;
pub mod fault_set;
pub mod faults;
mod many;
mod network;
mod report;
pub mod rng;
mod settings;
pub mod store;
mod topology;
mod upheaval;
mod world;

pub use many::run_many;
pub use report::Report;
pub use settings::{Settings, StoreKind, Variant};
pub use world::{Outcome, run};
