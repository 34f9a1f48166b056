//! What an expanded `#[leader_only]` calls: one place for each call site, which finds its group's slot once.
//!
//! Each group name has one slot in the process. The elector that was bootstrapped writes it; a gate reads it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::cell::Cell;
use crate::clock::BootInstant;
use crate::entry::{Entry, claimed};
use crate::group::{Site, is_valid};
use crate::lease::{LocalView, Look};
use crate::scope::{self, Special};
use crate::work::What;

/// What a function that is gated returns on a follower.
///
/// Implemented for `()`, `Option<T>` (`None`) and `Result<T, E>` (`Ok`, if `T` has a skipped value); implement it for a type
/// of your own, or write `#[leader_only(skipped = EXPR)]`.
///
/// ```
/// use leader_core::Skipped;
///
/// assert_eq!(Option::<u8>::skipped(), None);
/// assert_eq!(Result::<(), String>::skipped(), Ok(()));
/// ```
#[diagnostic::on_unimplemented(
    message = "`#[leader_only]` does not know what a follower returns as `{Self}`",
    label = "a follower returns this type without running the body",
    note = "return `()`, `Option<T>` or `Result<(), E>`, or write what a follower returns: `#[leader_only(skipped = EXPR)]`",
    note = "for a type of your own, implement `leader_core::Skipped`"
)]
pub trait Skipped {
    /// The value that stands for "did not run here".
    fn skipped() -> Self;
}

#[diagnostic::do_not_recommend]
impl Skipped for () {
    fn skipped() -> Self {}
}

#[diagnostic::do_not_recommend]
impl<T> Skipped for Option<T> {
    fn skipped() -> Self {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<T: Skipped, E> Skipped for Result<T, E> {
    fn skipped() -> Self {
        Ok(T::skipped())
    }
}

/// What becomes of work whose lease is lost while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// It runs to its end.
    Finish,
    /// It is dropped at its next await.
    Cancel,
}

/// The process-wide place of one group.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) view: LocalView,
    cell: Mutex<Option<Arc<Cell>>>,
}

impl Slot {
    /// The slot of `group`; made on first use and kept for the life of the process, for there are as many as names in the
    /// program.
    pub(crate) fn of(group: &str) -> &'static Self {
        static SLOTS: OnceLock<Mutex<HashMap<String, &'static Slot>>> = OnceLock::new();
        let mut slots = SLOTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(group) {
            return slot;
        }
        let slot: &'static Self = Box::leak(Box::new(Self { view: LocalView::unmanaged(), cell: Mutex::new(None) }));
        slots.insert(group.to_owned(), slot);
        slot
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Cell>>> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on `cell` answers for this group.
    pub(crate) fn attach(&self, cell: &Arc<Cell>) {
        let mut owner = self.lock();
        *owner = Some(Arc::clone(cell));
        // Under the lock, as every write of the view.
        self.view.follow();
    }

    /// `cell` answers no more: gates skip.
    pub(crate) fn detach(&self, cell: &Cell) {
        let mut owner = self.lock();
        if owner.as_deref().is_some_and(|o| std::ptr::eq(o, cell)) {
            self.view.unmanage();
            *owner = None;
        }
    }

    /// Writes the view, if `cell` still answers for this group.
    pub(crate) fn publish(&self, cell: &Cell, deadline: Option<BootInstant>) {
        let owner = self.lock();
        if owner.as_deref().is_some_and(|o| std::ptr::eq(o, cell)) {
            match deadline {
                Some(deadline) => self.view.lead_until(deadline),
                None => self.view.follow(),
            }
        }
    }
}

/// One place in the program that is gated.
#[derive(Debug)]
pub struct CallSite {
    group: &'static str,
    site: Site,
    slot: OnceLock<&'static Slot>,
    warned: AtomicBool,
}

impl CallSite {
    /// The gate of `group` at `site`. In a `static`, as it is made for, a wrong name ends the compilation.
    #[must_use]
    pub const fn new(group: &'static str, site: Site) -> Self {
        assert!(is_valid(group), "a group is 1 to 64 ASCII letters, digits, `.`, `_` or `-`");
        Self { group, site, slot: OnceLock::new(), warned: AtomicBool::new(false) }
    }

    /// Asks the gate, and registers the work that is about to run. `None` on a follower: skip it.
    #[inline]
    pub fn enter(&'static self, on_loss: OnLoss) -> Option<Entry> {
        if Special::any() {
            return self.enter_specially(on_loss);
        }
        self.enter_own(on_loss)
    }

    /// Asks the gate alone, for measurements.
    #[cfg(feature = "testing")]
    #[inline]
    pub fn is_leader(&'static self) -> bool {
        if Special::any()
            && let Some(elector) = scope::current()
        {
            return elector.cell_in_scope(self.group).view.look() == Look::Leader;
        }
        self.slot().view.look() == Look::Leader
    }

    #[inline]
    fn enter_own(&'static self, on_loss: OnLoss) -> Option<Entry> {
        let slot = self.slot();
        match slot.view.look() {
            Look::Leader => {
                let cell = slot.lock().clone()?;
                cell.enter(What::Site(self.site), on_loss)
            }
            Look::Follower => None,
            Look::Unmanaged => {
                self.unmanaged();
                None
            }
        }
    }

    /// There is a scope or a claimed lease somewhere in this process, perhaps here.
    fn enter_specially(&'static self, on_loss: OnLoss) -> Option<Entry> {
        if let Some(entry) = claimed(self.group, on_loss) {
            return Some(entry);
        }
        match scope::current() {
            Some(elector) => elector.cell_in_scope(self.group).enter(What::Site(self.site), on_loss),
            None => self.enter_own(on_loss),
        }
    }

    #[inline]
    fn slot(&self) -> &'static Slot {
        self.slot.get_or_init(|| Slot::of(self.group))
    }

    /// Never fails open: without an elector nobody knows who leads.
    #[cold]
    fn unmanaged(&self) -> bool {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target: "leader",
                group = self.group,
                "{} was skipped: no elector of this process takes part in group {}; call leader_core::bootstrap before it, \
                 and see that it was not shut down; with Elector::start, call it inside of elector.scope(..), which tokio::spawn leaves",
                self.site,
                self.group,
            );
        }
        false
    }
}
