//! How many scopes exist.

use crate::sync::{AtomicUsize, Ordering, counter_in_static};

/// How many scopes, and bodies with a claimed lease, exist in this process.
///
/// Relaxed is enough: whoever runs inside a scope sees that it was counted, because the scope was entered by the same
/// thread, or before the task was handed to it.
#[derive(Debug)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) const fn in_static() -> Self {
        Self(counter_in_static())
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}
