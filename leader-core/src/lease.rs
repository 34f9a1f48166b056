//! The right to lead: its number, and what this instance may believe of it without asking.

use std::fmt;

/// The number of one acquisition of a group's lease. It only grows, for ever, also when the store lost its memory: hand
/// it to what your work writes to, as a fencing token, and have older ones refused.
///
/// It is about the store's wall clock in microseconds at the acquisition, so it is larger than 2⁵⁰ and fits an `i64`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Term(u64);

impl Term {
    /// The term with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
