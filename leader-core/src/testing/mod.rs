//! For tests of applications and of stores (feature `testing`).

/// The election's state machine, for simulations and models. Not part of the stable API.
#[doc(hidden)]
pub mod election {
    pub use crate::election::*;
}
