//! Lease-based leader election.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bootstrap;
mod cell;
mod clock;
mod config;
mod driver;
mod election;
mod elector;
mod error;
mod event;
mod gate;
mod group;
mod identity;
mod lease;
mod scope;
#[cfg(feature = "signal")]
mod signal;
mod status;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod work;

pub use bootstrap::{bootstrap, current};
pub use clock::BootInstant;
pub use config::{Config, FreshStore};
pub use election::{LossReason, Reclaim, RenewalFailure};
pub use elector::Elector;
pub use error::{
    ConfigError, DrainError, InspectError, NotLive, NotReady, StartError, StoreError, StoreUrlError, UnknownGroup,
};
pub use event::{Event, Role, Subscription};
pub use gate::Skipped;
pub use group::{GroupName, InvalidGroupName, Site, declared_groups};
pub use identity::{Candidate, Incarnation, InstanceId, InvalidInstanceId};
#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
#[doc(inline)]
pub use leader_macros::leader_only;
pub use lease::{Lease, Term};
pub use scope::EnterGuard;
#[cfg(feature = "signal")]
pub use signal::shutdown_signal;
pub use status::{GroupStatus, Problem, Standing, Status};
pub use work::{RunningWork, lease};

/// What the attribute macros expand to. Not part of the stable API.
#[doc(hidden)]
pub mod __private {
    pub use crate::gate::{CallSite, OnLoss, Skipped};
    pub use crate::group::{GroupRegistration, Site};
    pub use crate::work::Entry;
    pub use inventory;
}
