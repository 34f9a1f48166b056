//! For tests of applications and of stores (feature `testing`).

mod clock;

pub use clock::ManualClock;

/// The election's state machine, for simulations and models. Not part of the stable API.
#[doc(hidden)]
pub mod election {
    pub use crate::election::*;
}
