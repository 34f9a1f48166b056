//! For tests of applications and of stores (feature `testing`).

mod clock;
mod conformance;
mod faulty;
mod fixed;
mod listener;

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
