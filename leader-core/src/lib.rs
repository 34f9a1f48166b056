//! Runs work on one instance of a fleet: leader election by leases.
//!
//! A service runs as several instances, each of them runs every scheduled job and every start-up hook, and the work has to
//! happen once. [`#[leader_only]`](macro@leader_only) on a function makes it run only where this instance leads the
//! function's *group*. Everywhere else it is skipped, and another instance takes over when the leader stops, crashes or stalls.
//!
//! ```standalone_crate
//! use leader_core::{Config, bootstrap, leader_only};
//! use std::time::Duration;
//!
//! #[leader_only(group = "reports")]
//! async fn build_report() -> Option<&'static str> {
//!     Some("built")
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // A fleet shares a server, `redis://host:6379`, or on one host a file, `sqlite:///var/lib/app/leader.db`.
//!     let leader = bootstrap(Config::new("memory:")).await?;
//!     assert_eq!(build_report().await, Some("built"));
//!     // Lets running work end, then gives the leases back: another instance leads.
//!     leader.shutdown(Duration::from_secs(10)).await?;
//!     assert_eq!(build_report().await, None);
//!     Ok(())
//! }
//! ```
//!
//! Cron jobs are declared with the crate `leader-cron`, whose `#[cron]` goes together with `#[leader_only]`.
//!
//! # Lease, lock, or once
//! | what has to happen | use |
//! |---|---|
//! | jobs and loops on one instance of a fleet, and on another as soon as that ends | a lease: [`#[leader_only]`](macro@leader_only) |
//! | an operation by one at a time, on whichever instance: for each account, for each file | a lock: [`#[with_lock]`](macro@with_lock) |
//! | scheduled runs of which no two may overlap, also while an older leader is not through with its last one | both |
//! | something once and for good: the migration to a version, a warm-up | [`#[run_once]`](macro@run_once), on every instance, and never "the leader does it" |
//! | a write that must not land late | any of these, and its [token](FencingToken) compared where it is written |
//!
//! # What holds
//! - At no moment do two instances believe to lead one group. A leader's view ends by a deadline that was taken before its
//!   request was sent, on a clock that goes on while the machine sleeps and that nobody can set.
//! - The gate does no I/O: it compares that deadline with that clock, at every call. A process that stood still for longer
//!   than its lease finds that it leads no more, in its first call.
//! - Nothing fails open: without an elector, without an answer of the store, gated work is skipped, and what needs a lock is
//!   not run.
//! - Each acquisition of a group has a larger [`Term`]: the fencing token. A lease is not a fence: a write that is under way
//!   when it ends can land after the next leader has begun, unless the written place compares the term: see [`fence`].
//!
//! # Map
//! | | |
//! |---|---|
//! | start and end | [`Config`], [`bootstrap`](bootstrap()), [`Elector::start`], [`Elector::shutdown`], `shutdown_signal` |
//! | who leads | [`Elector::is_leader`], [`Elector::lease`], [`Elector::leader_id`], [`Elector::subscribe`] |
//! | gated work | [`#[leader_only]`](macro@leader_only), [`Elector::run_if_leader`], [`Elector::while_leader`], [`lease()`], [`Lease::lost`], [`Skipped`] |
//! | giving leadership away | [`Elector::step_down`], [`Elector::drain`], [`Elector::resume`] |
//! | locks | [`#[with_lock]`](macro@with_lock), [`Elector::lock`], [`lock()`], [`LockGuard`], [`held_lock()`], [`HeldLock`]: one at a time in the whole fleet, leader or not |
//! | work that is done once | [`#[run_once]`](macro@run_once), [`Elector::once`], [`once()`], [`Elector::forget`] |
//! | writes that are too late | [`fence`]: refused where they land, by their tokens |
//! | operations | [`Elector::status`], [`Elector::doctor`], [`Elector::live`], [`Elector::ready`]; logs by `tracing`, target `leader` |
//! | policies | [`RenewalFailure`], [`Reclaim`], [`FreshStore`], [`RedisClient`] |
//! | stores | [`store`]: the trait [`LeaseStore`](store::LeaseStore), a Redis server, a file, a memory |
//! | tests | [`Elector::scope`], [`Elector::enter`]; `testing` |
//!
//! # Features
//! | feature | gives | default |
//! |---|---|---|
//! | `macros` | [`#[leader_only]`](macro@leader_only), [`#[with_lock]`](macro@with_lock), [`#[run_once]`](macro@run_once) | on |
//! | `redis` | the store for many hosts: `redis://host:6379`; it stands for `redis-rs` | on |
//! | `redis-rs`, `redis-fred` | the same by the crate `redis`, or by the crate `fred`: one of them is enough, and with both [`Config::redis_client`] decides | |
//! | `redis-tls` | the same over TLS, besides one of these: `rediss://host:6379` | |
//! | `sqlite` | the store for one host: `sqlite:///path` (Unix only) | on |
//! | `signal` | `shutdown_signal` | |
//! | `serde` | `Serialize` for [`Status`], [`Event`], [`Finding`] and their parts | |
//! | `testing` | the module `testing`: electors with a fixed answer, a manual clock, a faulty store, the conformance suite of stores | |
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "macros", feature = "testing"))]
mod block_on;
mod bootstrap;
mod cell;
mod clock;
mod config;
mod doctor;
mod driver;
mod election;
mod elector;
mod entry;
mod error;
mod event;
pub mod fence;
mod gate;
mod group;
mod identity;
mod jobs;
mod lease;
// Not in its file, which the test `interleavings` compiles once more.
#[cfg(all(test, feature = "testing"))]
#[path = "lease/tests.rs"]
mod lease_tests;
mod ledger;
mod lock;
mod once;
mod scope;
mod shared;
#[cfg(feature = "signal")]
mod signal;
mod status;
pub mod store;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
mod work;

pub use bootstrap::{bootstrap, current};
pub use clock::BootInstant;
pub use config::{Config, FreshStore, RedisClient};
pub use doctor::{Finding, Severity};
pub use election::{LossReason, Reclaim, RenewalFailure};
pub use elector::Elector;
pub use entry::lease;
pub use error::{
    ConfigError, DoctorError, DrainError, InspectError, NotLive, NotReady, StartError, StoreError, StoreUrlError,
    UnknownGroup,
};
pub use event::{Event, Role, Subscription};
pub use gate::Skipped;
pub use group::{GroupName, InvalidGroupName, Site, declared_groups};
pub use identity::{Candidate, Incarnation, InstanceId, InvalidInstanceId};
#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
#[doc(inline)]
pub use leader_macros::{leader_only, run_once, with_lock};
pub use lease::{FencingToken, Lease, Term};
pub use lock::{HeldLock, LockBuilder, LockError, LockGuard, held_lock, lock};
pub use once::{Once, OnceBuilder, once};
pub use scope::EnterGuard;
#[cfg(feature = "signal")]
pub use signal::shutdown_signal;
pub use status::{GroupStatus, LockStatus, LocksStatus, Problem, Standing, Status};
pub use store::{InvalidLockKey, LockKey};
pub use work::RunningWork;

/// What the attribute macros expand to. Not part of the stable API.
#[doc(hidden)]
pub mod __private {
    pub use crate::entry::{Entry, Hold};
    pub use crate::gate::{CallSite, OnLoss, Skipped};
    pub use crate::group::{GroupRegistration, Site};
    pub use crate::identity::random;
    pub use crate::jobs::{JobClaim, NamedJob};
    #[cfg(feature = "macros")]
    pub use crate::lock::attribute::{
        CarriesLockError, CarriesLoss, Completes, Holding, HoldingOnce, LockCall, Loss, OnceCall, key, log_skip,
        run_once, with_lock,
    };
    pub use crate::shared::ByHand;
    pub use inventory;
}
