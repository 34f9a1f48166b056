//! The right to lead: its number, and what this instance may believe of it without asking.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{BootInstant, Clock};
use crate::group::GroupName;
use crate::sync::{AtomicU64, Ordering, atomic_in_static, watch};

/// The number of one acquisition of a group's lease. It only grows, for ever, also when the store lost its memory: hand
/// it to what your work writes to, as a fencing token, and have older ones refused.
///
/// It is about the store's wall clock in microseconds at the acquisition, so it is larger than 2⁵⁰ and fits an `i64`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Term(u64);

/// What to hand to the places that work writes to, so that they refuse whoever comes with an older one: the term of a
/// [`Lease`], or the token of a lock. How, is told in [`fence`](crate::fence).
pub type FencingToken = Term;

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

/// What a gate reads: one group's deadline, in nanoseconds of the boot clock.
#[derive(Debug)]
pub(crate) struct LocalView {
    deadline: AtomicU64,
    clock: Clock,
}

/// What a gate finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Leader,
    Follower,
    /// No elector takes part in this group.
    Unmanaged,
}

/// No deadline lies so early, so these two need no word of their own.
const UNMANAGED: u64 = 0;
const FOLLOWER: u64 = 1;

impl LocalView {
    /// A view that no elector answers for yet.
    pub(crate) const fn unmanaged() -> Self {
        Self { deadline: atomic_in_static(UNMANAGED), clock: Clock::Boot }
    }

    /// A follower's view.
    pub(crate) fn follower(clock: Clock) -> Self {
        Self { deadline: AtomicU64::new(FOLLOWER), clock }
    }

    /// One load, and only if the answer may be yes, one reading of the clock. No I/O.
    #[inline]
    pub(crate) fn look(&self) -> Look {
        let deadline = self.deadline.load(Ordering::Acquire);
        if deadline <= FOLLOWER {
            return if deadline == UNMANAGED { Look::Unmanaged } else { Look::Follower };
        }
        if self.clock.now().as_nanos() < deadline { Look::Leader } else { Look::Follower }
    }

    pub(crate) fn lead_until(&self, deadline: BootInstant) {
        self.deadline.store(deadline.as_nanos().max(FOLLOWER), Ordering::Release);
    }

    pub(crate) fn follow(&self) {
        self.deadline.store(FOLLOWER, Ordering::Release);
    }

    pub(crate) fn unmanage(&self) {
        self.deadline.store(UNMANAGED, Ordering::Release);
    }
}

/// One acquisition, shared by all that run under it. Term and deadline are a pair because the term never changes.
#[derive(Debug)]
pub(crate) struct Acquisition {
    group: GroupName,
    term: Term,
    /// Since that acquisition nobody else can have led.
    unbroken_since: Term,
    deadline: AtomicU64,
    phase: watch::Sender<Phase>,
    clock: Clock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Held,
    /// A drain has begun: finish.
    Ending,
    /// The grace of a drain is over: work that may be cancelled is dropped.
    Cancelled,
    Lost,
}

impl Acquisition {
    pub(crate) fn new(
        group: GroupName,
        (term, unbroken_since): (Term, Term),
        deadline: BootInstant,
        clock: Clock,
    ) -> Self {
        Self {
            group,
            term,
            unbroken_since,
            deadline: AtomicU64::new(deadline.as_nanos()),
            phase: watch::Sender::new(Phase::Held),
            clock,
        }
    }

    pub(crate) fn term(&self) -> Term {
        self.term
    }

    pub(crate) fn extend(&self, deadline: BootInstant) {
        self.deadline.fetch_max(deadline.as_nanos(), Ordering::AcqRel);
    }

    /// The view has ended: first no reader believes in it any more, then those who wait are told.
    pub(crate) fn end(&self) {
        self.deadline.store(0, Ordering::Release);
        self.phase.send_replace(Phase::Lost);
    }

    pub(crate) fn begin_drain(&self) {
        self.advance(Phase::Ending);
    }

    pub(crate) fn cancel(&self) {
        self.advance(Phase::Cancelled);
    }

    /// A drain that did not succeed is taken back: who was not cancelled yet goes on.
    pub(crate) fn abandon_drain(&self) {
        self.phase.send_if_modified(|p| *p != Phase::Lost && std::mem::replace(p, Phase::Held) != Phase::Held);
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|p| {
            let forward = *p < to;
            *p = to.max(*p);
            forward
        });
    }

    async fn reached(&self, phase: Phase) {
        // The sender lives as long as this future borrows it, so there is no error to meet.
        let _ = self.phase.subscribe().wait_for(|p| *p >= phase).await;
    }
}

/// The right to lead one group, as work holds it: cheap to clone, to be moved into spawned tasks.
///
/// It belongs to one acquisition. If this instance loses the group and wins it again, that is another lease.
#[derive(Clone)]
pub struct Lease(pub(crate) Arc<Acquisition>);

impl Lease {
    /// The group that is led.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        &self.0.group
    }

    /// The number of this acquisition: the fencing token.
    #[must_use]
    pub fn term(&self) -> Term {
        self.0.term
    }

    /// Until when this instance may believe that it leads, if no further renew is confirmed. Moves on with each renew; lies
    /// in the past once the lease is lost.
    #[must_use]
    pub fn deadline(&self) -> BootInstant {
        BootInstant::from_nanos(self.0.deadline.load(Ordering::Acquire))
    }

    /// Time until the [`deadline`](Self::deadline); zero once the lease is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline().saturating_since(self.0.clock.now())
    }

    /// Whether this instance still leads under this term. Does no I/O.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let deadline = self.deadline();
        self.0.clock.now() < deadline
    }

    /// Resolves when the view of this lease has ended, as soon as the elector's thread gets to tell: normally before the
    /// store lets another instance lead, later if this machine stalls. [`is_held`](Self::is_held) is never late.
    ///
    /// # Cancel safety
    /// Can be dropped and called again at any time.
    pub async fn lost(&self) {
        self.0.reached(Phase::Lost).await;
    }

    /// Resolves when a drain, a step-down or the shutdown has begun and asks the work to finish, or the lease is lost. The
    /// lease is still renewed, for as long as the grace lasts.
    ///
    /// # Cancel safety
    /// Can be dropped and called again at any time.
    pub async fn ending(&self) {
        self.0.reached(Phase::Ending).await;
    }

    /// A drain, a step-down or the shutdown has begun, or the lease is lost.
    #[doc(hidden)]
    #[must_use]
    pub fn __is_ending(&self) -> bool {
        *self.0.phase.borrow() >= Phase::Ending
    }

    /// Since the acquisition of this term nobody but this elector can have led.
    #[doc(hidden)]
    #[must_use]
    pub fn __unbroken_since(&self) -> Term {
        self.0.unbroken_since
    }

    /// Resolves when work that may be cancelled is to be dropped.
    pub(crate) async fn cancelled(&self) {
        self.0.reached(Phase::Cancelled).await;
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("group", self.group())
            .field("term", &self.term())
            .field("remaining", &self.remaining())
            .finish()
    }
}
