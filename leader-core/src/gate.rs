//! What an expanded `#[leader_only]` calls: one place for each call site, which finds its group's slot once.
//!
//! Each group name has one slot in the process. The elector that was bootstrapped writes it; a gate reads it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, OnceLock};

use crate::cell::Cell;
use crate::clock::BootInstant;
use crate::entry::{Claim, Entry, claimed};
use crate::group::{Site, is_valid};
use crate::lease::{LocalView, Look};
use crate::scope::{self, Special};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::work::What;

/// What a function returns where it is skipped: on a follower, or where it does not have its lock.
///
/// Implemented for `()`, `Option<T>` (`None`) and `Result<T, E>` (`Ok`, if `T` has a skipped value); implement it for a type
/// of your own, or write `skipped = EXPR` in the attribute.
///
/// ```
/// use leader_core::Skipped;
///
/// assert_eq!(Option::<u8>::skipped(), None);
/// assert_eq!(Result::<(), String>::skipped(), Ok(()));
/// ```
#[diagnostic::on_unimplemented(
    message = "nothing says what is returned as `{Self}` where the function is skipped",
    label = "a call that is skipped returns this type without running the body",
    note = "return `()`, `Option<T>`, `Result<(), E>` or `Result<Option<T>, E>`, or write what is returned then: `skipped = EXPR`",
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
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Who answers for this group.
    cell: Option<Arc<Cell>>,
    /// Until when the group is led.
    deadline: Option<BootInstant>,
    /// Each has a view of its own, so that a gate reads one word and follows no pointer.
    sites: Vec<&'static CallSite>,
}

impl State {
    fn is_answered_by(&self, cell: &Cell) -> bool {
        self.cell.as_deref().is_some_and(|owner| std::ptr::eq(owner, cell))
    }

    fn show_all(&self) {
        self.sites.iter().for_each(|site| self.show(site));
    }

    fn show(&self, site: &CallSite) {
        match (&self.cell, self.deadline) {
            (None, _) => site.view.unmanage(),
            (Some(_), None) => site.view.follow(),
            (Some(_), Some(deadline)) => site.view.lead_until(deadline),
        }
    }
}

impl Slot {
    /// The slot of `group`; made on first use and kept for the life of the process, for there are as many as names in the
    /// program.
    pub(crate) fn of(group: &str) -> &'static Self {
        type Registry = StdMutex<HashMap<String, &'static Slot>>;
        static SLOTS: OnceLock<Registry> = OnceLock::new();
        let mut slots = SLOTS.get_or_init(Default::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(group) {
            return slot;
        }
        let slot: &'static Self = Box::leak(Box::default());
        slots.insert(group.to_owned(), slot);
        slot
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on `cell` answers for this group.
    pub(crate) fn attach(&self, cell: &Arc<Cell>) {
        let mut state = self.lock();
        (state.cell, state.deadline) = (Some(Arc::clone(cell)), None);
        state.show_all();
    }

    /// `cell` answers no more: gates skip.
    pub(crate) fn detach(&self, cell: &Cell) {
        let mut state = self.lock();
        if state.is_answered_by(cell) {
            (state.cell, state.deadline) = (None, None);
            state.show_all();
        }
    }

    /// Writes the view, if `cell` still answers for this group.
    pub(crate) fn publish(&self, cell: &Cell, deadline: Option<BootInstant>) {
        let mut state = self.lock();
        if state.is_answered_by(cell) {
            state.deadline = deadline;
            state.show_all();
        }
    }

    /// From here on the view of `site` shows what this slot knows.
    fn join(&self, site: &'static CallSite) {
        let mut state = self.lock();
        if !state.sites.iter().any(|known| std::ptr::eq(*known, site)) {
            state.sites.push(site);
        }
        state.show(site);
    }
}

/// One place in the program that is gated.
#[derive(Debug)]
pub struct CallSite {
    group: &'static str,
    site: Site,
    /// Of the process's own elector. Unmanaged, too, until the slot knows of this place: then the gate asks it.
    view: LocalView,
    slot: OnceLock<&'static Slot>,
    warned: AtomicBool,
}

impl CallSite {
    /// The gate of `group` at `site`. In a `static`, as it is made for, a wrong name ends the compilation.
    #[must_use]
    pub const fn new(group: &'static str, site: Site) -> Self {
        assert!(is_valid(group), "a group is 1 to 64 ASCII letters, digits, `.`, `_` or `-`");
        Self { group, site, view: LocalView::unmanaged(), slot: OnceLock::new(), warned: AtomicBool::new(false) }
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
        if Special::any() {
            return self.is_leader_specially();
        }
        self.look() == Look::Leader
    }

    #[cfg(feature = "testing")]
    #[inline(never)]
    fn is_leader_specially(&'static self) -> bool {
        match scope::current() {
            Some(elector) => elector.cell_in_scope(self.group).view.look() == Look::Leader,
            None => self.look() == Look::Leader,
        }
    }

    #[inline]
    fn enter_own(&'static self, on_loss: OnLoss) -> Option<Entry> {
        match self.look() {
            Look::Leader => {
                let cell = self.slot().lock().cell.clone()?;
                cell.enter(What::Site(self.site), on_loss)
            }
            Look::Follower => None,
            Look::Unmanaged => {
                self.warn();
                None
            }
        }
    }

    #[inline]
    fn look(&'static self) -> Look {
        match self.view.look() {
            Look::Unmanaged => self.look_into_slot(),
            known => known,
        }
    }

    /// The first look, and each one while no elector answers.
    #[cold]
    fn look_into_slot(&'static self) -> Look {
        self.slot().join(self);
        self.view.look()
    }

    /// There is a scope or a claimed lease somewhere in this process, perhaps here. Out of line: the usual way needs no room
    /// on the stack for it.
    #[inline(never)]
    fn enter_specially(&'static self, on_loss: OnLoss) -> Option<Entry> {
        match claimed(self.group, on_loss) {
            Claim::Entered(entry) => return Some(entry),
            Claim::Ended => return None,
            Claim::None => {}
        }
        match scope::current() {
            Some(elector) => elector.cell_in_scope(self.group).enter(What::Site(self.site), on_loss),
            None => self.enter_own(on_loss),
        }
    }

    fn slot(&self) -> &'static Slot {
        self.slot.get_or_init(|| Slot::of(self.group))
    }

    /// Never fails open: without an elector nobody knows who leads.
    #[cold]
    fn warn(&self) {
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
    }
}
