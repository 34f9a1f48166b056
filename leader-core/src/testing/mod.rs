//! For tests of applications and of stores (feature `testing`).

mod clock;
mod fixed;

pub use clock::ManualClock;
pub use fixed::FixedElector;

/// The election's state machine, for simulations and models. Not part of the stable API.
#[doc(hidden)]
pub mod election {
    pub use crate::election::*;
}
