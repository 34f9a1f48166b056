//! Lease-based leader election.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod election;
mod error;
mod group;
mod identity;
mod lease;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use clock::BootInstant;
pub use election::{LossReason, Reclaim, RenewalFailure};
pub use error::{StoreError, StoreUrlError};
pub use group::{GroupName, GroupRegistration, InvalidGroupName, Site, declared_groups};
pub use identity::{Candidate, Incarnation, InstanceId, InvalidInstanceId};
pub use lease::Term;
