//! Gates and work, between the driver and those who run it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use tokio::sync::Notify;

use crate::cell::Cell;
use crate::clock::Clock;
use crate::count::Count;
use crate::gate::{CallSite, OnLoss};
use crate::group::{GroupName, Site};
use crate::leases::{FIRST, cell, deadline};
use crate::work::What;

fn work() -> What {
    What::Named("work".into())
}

/// The driver drains: it closes the group, and gives the lease back once nothing runs.
pub(crate) fn drained<T>(enter: impl Fn(&Cell) -> Option<T> + Sync + Send + Copy + 'static) {
    loom::model(move || {
        let cell = cell();
        cell.lead(FIRST, deadline(10), FIRST);
        let given_back = Arc::new(AtomicBool::new(false));
        let (driver, gives_back) = (Arc::clone(&cell), Arc::clone(&given_back));
        let driver = thread::spawn(move || {
            driver.work.close();
            if driver.work.is_idle() {
                driver.follow();
                gives_back.store(true, Ordering::SeqCst);
            }
        });
        if let Some(running) = enter(&cell) {
            assert!(!given_back.load(Ordering::SeqCst), "work begins under a lease that was given back");
            drop(running);
        }
        driver.join().unwrap();
    });
}

#[test]
fn no_work_runs_under_a_lease_that_a_drain_has_given_back() {
    drained(|cell| cell.enter(work(), OnLoss::Finish));
}

#[test]
fn the_last_work_of_a_closed_group_leaves_it_idle() {
    loom::model(|| {
        let cell = cell();
        cell.lead(FIRST, deadline(10), FIRST);
        let workers = [(); 2].map(|()| {
            let cell = Arc::clone(&cell);
            thread::spawn(move || drop(cell.enter(work(), OnLoss::Finish)))
        });
        cell.work.close();
        for worker in workers {
            worker.join().unwrap();
        }
        assert!(cell.work.is_idle() && cell.enter(work(), OnLoss::Finish).is_none());
    });
}

/// A group of its own for each course: its slot lives as long as the process.
fn own_cell() -> (&'static str, Arc<Cell>) {
    static COURSES: AtomicUsize = AtomicUsize::new(0);
    let number = COURSES.fetch_add(1, Ordering::Relaxed);
    let group: &'static str = Box::leak(format!("g{number}").into_boxed_str());
    (group, Cell::new(GroupName::new(group).unwrap(), Clock::Boot, true, Arc::new(Notify::new())))
}

fn site(group: &'static str) -> &'static CallSite {
    let place = Site { function: "f", module: "m", file: "here.rs", line: 1, column: 1 };
    Box::leak(Box::new(CallSite::new(group, place)))
}

#[test]
fn a_gate_that_looks_for_the_first_time_while_its_group_is_lost_is_told_too() {
    loom::model(|| {
        let (group, cell) = own_cell();
        let site = site(group);
        cell.lead(FIRST, deadline(10), FIRST);
        let driver = Arc::clone(&cell);
        let driver = thread::spawn(move || driver.follow());
        let first = site.is_leader();
        driver.join().unwrap();
        assert!(!site.is_leader(), "at first it said {first}");
    });
}

#[test]
fn a_gate_says_no_more_once_its_elector_was_said_to_have_ended() {
    loom::model(|| {
        let (group, cell) = own_cell();
        let site = site(group);
        cell.lead(FIRST, deadline(10), FIRST);
        assert!(site.is_leader());
        let driver = Arc::clone(&cell);
        let events = cell.subscribe();
        let driver = thread::spawn(move || driver.stop());
        if events.take().is_some() {
            assert!(!site.is_leader() && cell.lease().is_none());
        }
        driver.join().unwrap();
        assert!(!site.is_leader());
    });
}

#[test]
fn a_gate_follows_the_elector_that_came_last_and_no_earlier_one() {
    loom::model(|| {
        let (group, earlier) = own_cell();
        let site = site(group);
        earlier.lead(FIRST, deadline(10), FIRST);
        assert!(site.is_leader());
        let late = thread::spawn(move || {
            earlier.lead(FIRST, deadline(20), FIRST);
            earlier.stop();
        });
        let name = GroupName::new(group).unwrap();
        let _later = Cell::new(name, Clock::Boot, true, Arc::new(Notify::new()));
        assert!(!site.is_leader(), "the one that answers now follows");
        late.join().unwrap();
        assert!(!site.is_leader());
    });
}

/// A task in a scope is handed to another thread, while others come and go.
pub(crate) fn handed_over(how: Ordering) {
    loom::model(move || {
        let count = Arc::new(Count::in_static());
        assert!(!count.any());
        let handed = Arc::new(AtomicBool::new(false));
        let (counts, hands) = (Arc::clone(&count), Arc::clone(&handed));
        let owner = thread::spawn(move || {
            counts.add();
            hands.store(true, how);
        });
        let counts = Arc::clone(&count);
        let other = thread::spawn(move || {
            counts.add();
            counts.remove();
        });
        if handed.load(Ordering::Acquire) {
            assert!(count.any(), "a scope is not seen from inside");
        }
        owner.join().unwrap();
        other.join().unwrap();
        assert!(count.any());
        count.remove();
        assert!(!count.any());
    });
}

#[test]
fn who_runs_inside_a_scope_sees_that_there_is_one() {
    handed_over(Ordering::Release);
}
