//! Locks: mutual exclusion for the length of one operation, as opposed to the lease of a role.
//!
//! The handles are here ([`builder`], [`guard`]), and what one attempt does, as a pure state machine ([`machine`]). The
//! driver runs these beside the elections.

#[cfg(feature = "macros")]
pub(crate) mod attribute;
mod builder;
mod end;
mod error;
mod guard;
pub(crate) mod machine;
pub(crate) mod mail;
pub(crate) mod name;
mod run;

pub(crate) use builder::current_elector;
pub use builder::{LockBuilder, lock};
pub use error::LockError;
pub(crate) use guard::{Cell, Outcome};
pub use guard::{HeldLock, LockGuard};
pub use run::held_lock;
