//! One test a promise; in which order threads see it is for `interleavings`.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::clock::{BootInstant, Clock};
use crate::group::GroupName;
use crate::lease::{Acquisition, Lease, LocalView, Look, Term};
use crate::testing::ManualClock;

const SECOND: Duration = Duration::from_secs(1);

/// A clock, and an instant a second ahead of it.
fn ahead() -> (ManualClock, BootInstant) {
    let clock = ManualClock::new();
    let deadline = clock.now().saturating_add(SECOND);
    (clock, deadline)
}

fn lease() -> (Lease, ManualClock) {
    let (clock, deadline) = ahead();
    let terms = (Term::new(9), Term::new(7));
    let group = GroupName::new("reports").expect("it is a name");
    (Lease(Arc::new(Acquisition::new(group, terms, deadline, Clock::Manual(clock.clone())))), clock)
}

fn has_come(future: impl Future<Output = ()>) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Which of `ending`, `cancelled` and `lost` have come.
fn told(lease: &Lease) -> [bool; 3] {
    let told = [has_come(lease.ending()), has_come(lease.cancelled()), has_come(lease.lost())];
    assert_eq!(lease.__is_ending(), told[0]);
    told
}

#[test]
fn a_view_that_no_elector_answers_for_is_neither_a_leaders_nor_a_followers() {
    let view = LocalView::unmanaged();
    assert_eq!(view.look(), Look::Unmanaged);
    view.follow();
    assert_eq!(view.look(), Look::Follower);
    view.unmanage();
    assert_eq!(view.look(), Look::Unmanaged);
}

#[test]
fn a_view_is_a_leaders_until_its_deadline_and_not_at_it() {
    let (clock, deadline) = ahead();
    let view = LocalView::follower(Clock::Manual(clock.clone()));
    assert_eq!(view.look(), Look::Follower);
    view.lead_until(deadline);
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(view.look(), Look::Leader);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(view.look(), Look::Follower);
    view.lead_until(deadline.saturating_add(SECOND));
    assert_eq!(view.look(), Look::Leader);
    view.follow();
    assert_eq!(view.look(), Look::Follower);
}

#[test]
fn a_deadline_of_long_ago_is_not_taken_for_a_word() {
    let view = LocalView::unmanaged();
    view.lead_until(BootInstant::from_nanos(0));
    assert_eq!(view.look(), Look::Follower);
}

#[test]
fn a_lease_is_held_until_its_deadline_and_not_at_it() {
    let (lease, clock) = lease();
    assert_eq!((lease.group().as_str(), lease.term(), lease.0.term()), ("reports", Term::new(9), Term::new(9)));
    assert_eq!((lease.term().get(), lease.__unbroken_since()), (9, Term::new(7)));
    clock.advance(SECOND / 4);
    assert_eq!((lease.is_held(), lease.remaining()), (true, SECOND * 3 / 4));
    clock.advance(SECOND * 3 / 4);
    assert_eq!((lease.is_held(), lease.remaining()), (false, Duration::ZERO));
    assert_eq!(lease.deadline(), clock.now());
}

#[test]
fn a_renewal_moves_the_deadline_on_and_never_back() {
    let (lease, clock) = lease();
    let later = clock.now().saturating_add(3 * SECOND);
    lease.0.extend(later);
    assert_eq!(lease.deadline(), later);
    lease.0.extend(clock.now().saturating_add(2 * SECOND));
    assert_eq!(lease.deadline(), later);
}

#[test]
fn a_lease_that_is_lost_is_held_no_more_and_everybody_is_told() {
    let (lease, _) = lease();
    assert_eq!(told(&lease), [false; 3]);
    lease.0.end();
    assert_eq!((lease.is_held(), lease.remaining()), (false, Duration::ZERO));
    assert_eq!(told(&lease), [true; 3]);
}

#[test]
fn a_drain_asks_to_finish_and_then_cancels_while_the_lease_is_held() {
    let (lease, _) = lease();
    lease.0.begin_drain();
    assert_eq!(told(&lease), [true, false, false]);
    lease.0.cancel();
    assert_eq!(told(&lease), [true, true, false]);
    // It has gone further already.
    lease.0.begin_drain();
    assert_eq!((told(&lease), lease.is_held()), ([true, true, false], true));
}

#[test]
fn a_drain_that_is_taken_back_lets_go_on_what_was_not_lost() {
    let (lease, _) = lease();
    lease.0.begin_drain();
    lease.0.abandon_drain();
    assert_eq!(told(&lease), [false; 3]);
    lease.0.cancel();
    lease.0.abandon_drain();
    assert_eq!(told(&lease), [false; 3]);
    lease.0.end();
    lease.0.abandon_drain();
    lease.0.begin_drain();
    assert_eq!(told(&lease), [true; 3]);
}

/// Work that waits is woken by each step, and by nothing else.
#[tokio::test]
async fn who_waits_for_the_end_is_woken_by_it() {
    let (lease, _) = lease();
    for (wait_for, begin) in
        [(0, Acquisition::begin_drain as fn(&Acquisition)), (1, Acquisition::cancel), (2, Acquisition::end)]
    {
        let waiting = lease.clone();
        let waiter = tokio::spawn(async move {
            match wait_for {
                0 => waiting.ending().await,
                1 => waiting.cancelled().await,
                _ => waiting.lost().await,
            }
        });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        begin(&lease.0);
        waiter.await.unwrap();
    }
}
