//! The view of a group and its lease, between the driver and those who read.

use std::sync::Arc;

use loom::thread;
use tokio::sync::Notify;

use crate::cell::Cell;
use crate::clock::{BootInstant, Clock, NOW};
use crate::election::LossReason;
use crate::event::Event;
use crate::group::GroupName;
use crate::lease::{Lease, Look, Term};

pub(crate) const FIRST: Term = Term::new(1);
pub(crate) const SECOND: Term = Term::new(2);

pub(crate) const fn deadline(number: u64) -> BootInstant {
    BootInstant::from_nanos(NOW + number)
}

pub(crate) fn cell() -> Arc<Cell> {
    let group = GroupName::new("g").unwrap();
    Cell::new(group, Clock::Boot, false, Arc::new(Notify::new()))
}

fn leads(cell: &Cell) -> bool {
    cell.view.look() == Look::Leader
}

fn lose(cell: &Cell, term: Term) {
    cell.follow();
    cell.tell_lost(term, LossReason::Expired);
}

/// The driver loses the group and wins it again, while another thread looks.
pub(crate) fn lost_and_won_again(look: impl Fn(&Cell, &Lease) + Sync + Send + Copy + 'static) {
    loom::model(move || {
        let cell = cell();
        cell.lead(FIRST, deadline(10), FIRST);
        let first = cell.lease().unwrap();
        let driver = Arc::clone(&cell);
        let driver = thread::spawn(move || {
            lose(&driver, FIRST);
            driver.lead(SECOND, deadline(20), SECOND);
        });
        look(&cell, &first);
        driver.join().unwrap();
        assert!(!first.is_held() && leads(&cell));
        assert_eq!(cell.lease().unwrap().term(), SECOND);
    });
}

/// Who saw the lease end sees no gate that still says yes for it.
pub(crate) fn a_lost_lease_is_the_last_to_say_so(cell: &Cell, first: &Lease) {
    if !first.is_held() && leads(cell) {
        assert_eq!(cell.lease().map(|lease| lease.term()), Some(SECOND), "the gate speaks of a lost lease");
    }
}

/// Who sees the gate say no, and then yes again, sees that the first lease has ended.
pub(crate) fn a_new_yes_is_not_of_the_old_lease(cell: &Cell, first: &Lease) {
    if !leads(cell) && leads(cell) {
        assert!(!first.is_held(), "the lease outlives its view");
    }
}

#[test]
fn who_sees_a_lease_end_sees_no_gate_that_still_says_yes_for_it() {
    lost_and_won_again(a_lost_lease_is_the_last_to_say_so);
}

#[test]
fn who_sees_the_gate_say_yes_again_sees_that_the_lost_lease_has_ended() {
    lost_and_won_again(a_new_yes_is_not_of_the_old_lease);
}

#[test]
fn of_two_leases_of_a_group_no_two_are_held_at_once() {
    lost_and_won_again(|cell, first| {
        if let Some(lease) = cell.lease()
            && lease.term() == SECOND
        {
            assert!(!first.is_held() && first.deadline() < deadline(0));
        }
    });
}

#[test]
fn term_and_deadline_are_of_one_acquisition_and_a_deadline_that_fell_is_over_for_good() {
    loom::model(|| {
        let cell = cell();
        cell.lead(FIRST, deadline(10), FIRST);
        let driver = Arc::clone(&cell);
        let driver = thread::spawn(move || {
            driver.lead(FIRST, deadline(15), FIRST);
            driver.follow();
            driver.lead(SECOND, deadline(20), SECOND);
        });
        let over = BootInstant::from_nanos(0);
        if let Some(lease) = cell.lease() {
            let (before, after) = (lease.deadline(), lease.deadline());
            let possible: &[BootInstant] =
                if lease.term() == FIRST { &[deadline(10), deadline(15), over] } else { &[deadline(20)] };
            assert!(possible.contains(&before) && possible.contains(&after), "{lease:?}");
            assert!(before <= after || after == over, "{before:?}, then {after:?}");
        }
        driver.join().unwrap();
        assert_eq!(cell.lease().unwrap().deadline(), deadline(20));
    });
}

#[test]
fn a_late_extension_revives_no_lease() {
    loom::model(|| {
        let cell = cell();
        cell.lead(FIRST, deadline(10), FIRST);
        let lease = cell.lease().unwrap();
        // Not the driver, which does one thing after the other: two threads that do both at once.
        let (one, another) = (Arc::clone(&cell), Arc::clone(&cell));
        let one = thread::spawn(move || one.follow());
        let another = thread::spawn(move || another.lead(SECOND, deadline(20), SECOND));
        one.join().unwrap();
        another.join().unwrap();
        assert!(!lease.is_held());
        assert_eq!(leads(&cell), cell.lease().is_some());
    });
}

#[test]
fn whoever_is_told_of_a_loss_sees_that_the_view_has_ended() {
    loom::model(|| {
        let cell = cell();
        let events = cell.subscribe();
        cell.lead(FIRST, deadline(10), FIRST);
        let lease = cell.lease().unwrap();
        let driver = Arc::clone(&cell);
        let driver = thread::spawn(move || lose(&driver, FIRST));
        let told = matches!(events.take(), Some(Event::Lost { .. }));
        if told || lease.__is_ending() {
            assert!(!lease.is_held() && !leads(&cell) && cell.lease().is_none());
        }
        driver.join().unwrap();
    });
}
