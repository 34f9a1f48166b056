//! What is wrong on purpose, and has to be found: or nothing that is not found means anything.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::gates::{drained, handed_over};
use crate::leases::{a_lost_lease_is_the_last_to_say_so, a_new_yes_is_not_of_the_old_lease, lost_and_won_again};
use crate::sync::weaken;

#[test]
#[should_panic(expected = "the gate speaks of a lost lease")]
fn relaxed_stores_of_the_end_of_a_view_are_found() {
    weaken();
    lost_and_won_again(a_lost_lease_is_the_last_to_say_so);
}

#[test]
#[should_panic(expected = "the lease outlives its view")]
fn relaxed_stores_of_a_new_view_are_found() {
    weaken();
    lost_and_won_again(a_new_yes_is_not_of_the_old_lease);
}

#[test]
#[should_panic(expected = "a newer deadline under an older term")]
fn a_view_of_two_words_is_found() {
    loom::model(|| {
        let view = Arc::new((AtomicU64::new(1), AtomicU64::new(10)));
        let driver = Arc::clone(&view);
        let driver = thread::spawn(move || {
            driver.0.store(2, Ordering::SeqCst);
            driver.1.store(20, Ordering::SeqCst);
        });
        let (term, deadline) = (view.0.load(Ordering::SeqCst), view.1.load(Ordering::SeqCst));
        assert!(term == 2 || deadline == 10, "a newer deadline under an older term");
        driver.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "work begins under a lease that was given back")]
fn work_that_is_not_listed_is_found() {
    drained(|cell| cell.lease());
}

#[test]
#[should_panic(expected = "a scope is not seen from inside")]
fn a_scope_that_is_handed_over_without_order_is_found() {
    handed_over(Ordering::Relaxed);
}
