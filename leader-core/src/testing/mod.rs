//! For tests of applications and of stores (feature `testing`).

mod clock;
mod conformance;
mod faulty;
mod fixed;
mod foreign;
mod listener;
mod locks;

pub use clock::ManualClock;
pub use conformance::conformance;
pub use faulty::{Fault, FaultyStore};
pub use fixed::FixedElector;
pub use listener::Listener;

/// The election's state machine, for simulations and models. Not part of the stable API.
#[doc(hidden)]
pub mod election {
    pub use crate::election::*;
}

/// The locks' state machine and table, for simulations. Not part of the stable API.
#[doc(hidden)]
pub mod lock {
    pub use super::locks::{AskedNo, Attempt, LockTable, Manner};
}

/// What reads a configuration, for tests that hand in anything. Not part of the stable API.
#[doc(hidden)]
pub mod config {
    pub use super::foreign::*;
}

/// The ledger's rules, for comparisons and models. Not part of the stable API.
#[doc(hidden)]
pub mod ledger {
    pub use crate::store::ledger::history::{entry, line};
    pub use crate::store::ledger::record::{FIELDS, Record, Run, Texts, Unended};
    pub use crate::store::ledger::rules::{Change, Decision, Seen, decide};
}

/// The Redis store's script by itself, for simulations and models. Not part of the stable API.
#[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
#[doc(hidden)]
pub mod redis_script {
    pub use crate::store::redis::testing::*;
}
