//! What threads share the state of a group by.
//!
//! In one place, because the test `interleavings` compiles the same files with models of these in their place, and so tries
//! every order in which threads can meet, and every value that the memory model lets them see.

pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
pub(crate) use tokio::sync::watch;

/// An atomic for a `static`.
pub(crate) const fn atomic_in_static(value: u64) -> AtomicU64 {
    AtomicU64::new(value)
}

/// A counter for a `static`.
pub(crate) const fn counter_in_static() -> AtomicUsize {
    AtomicUsize::new(0)
}
