//! Lease-based leader election.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod election;
mod error;
mod gate;
mod group;
mod identity;
mod lease;
mod skipped;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use clock::BootInstant;
pub use election::{LossReason, Reclaim, RenewalFailure};
pub use error::StoreError;
pub use group::{GroupName, GroupRegistration, InvalidGroupName, Site, declared_groups};
pub use identity::{Candidate, Incarnation, InstanceId, InvalidInstanceId};
pub use lease::Term;
pub use skipped::Skipped;

#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
#[doc(inline)]
pub use leader_macros::leader_only;

/// What expanded attributes call. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use inventory;

    pub use crate::gate::{CallSite, Entry, OnLoss, set_leader};
    pub use crate::group::{GroupRegistration, Site};
    pub use crate::skipped::Skipped;
}
