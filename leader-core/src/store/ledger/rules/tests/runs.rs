//! A run that is on: its slot, its end, its return, its take-over.

use super::*;

fn busy(seconds: u64) -> TickReply {
    TickReply::Busy { left: Duration::from_secs(seconds), holder: InstanceId::new("a").unwrap() }
}

/// After the present tick was claimed with nonce 1, so many seconds later.
fn running(seconds: u64, first: TickClaim) -> Desk {
    let mut desk = Desk::new();
    assert_eq!(desk.ask(ask(first)), run(NOW, 1));
    desk.pass(seconds);
    desk
}

/// The claim of a tick four seconds later.
fn next() -> TickClaim {
    TickClaim { tick: NOW + 4, expect: NOW, nonce: 2, ..claim() }
}

#[test]
fn a_run_keeps_the_job_until_its_slot_is_over_and_the_tick_that_waits_is_not_lost() {
    let mut desk = running(4, claim());
    assert_eq!(desk.ask(ask(next())), busy(6));
    assert_eq!(desk.ask(TickOp::KeepSlot { nonce: 1, slot: SLOT }), TickReply::Kept);
    assert_eq!(desk.ask(TickOp::KeepSlot { nonce: 2, slot: SLOT }), TickReply::Gone);
    desk.pass(9);
    assert_eq!(desk.ask(ask(next())), busy(1));
    desk.pass(1);
    assert_eq!(desk.ask(ask(next())), run(NOW + 4, 1));
    assert_eq!(desk.ask(TickOp::KeepSlot { nonce: 1, slot: SLOT }), TickReply::Gone);
}

#[test]
fn a_run_that_ends_frees_the_job_whatever_the_term() {
    let mut desk = running(4, claim());
    desk.leader = Some((candidate("b", 2), Term::new(8)));
    assert_eq!(desk.ask(end(1)), TickReply::Ended);
    assert_eq!(desk.ask(end(1)), TickReply::Ended, "an answer that was lost");
    assert_eq!(desk.history.len(), 2);
    let next = TickClaim { term: Term::new(8), ..next() };
    assert_eq!(desk.ask_as(&candidate("b", 2), ask(next)), run(NOW + 4, 1));
    assert_eq!(desk.ask(end(1)), TickReply::Ended, "it ended before");
    assert_eq!(desk.ask(end(9)), TickReply::Other);
    assert!(matches!(desk.history.last(), Some(HistoryEvent::Ended { tick: None, .. })));
    assert_eq!(Desk::empty().ask(end(1)), TickReply::Other);
}

#[test]
fn with_overlap_runs_go_on_beside_each_other_and_each_has_its_end() {
    let allow = |claim: TickClaim| ask(TickClaim { forbid: false, ..claim });
    let mut desk = running(4, TickClaim { forbid: false, ..claim() });
    assert_eq!(desk.ask(allow(next())), run(NOW + 4, 1));
    assert_eq!(desk.record().others.len(), 1);
    // An answer that was lost, of a claim that another one came after.
    assert_eq!(desk.ask(allow(claim())), run(NOW, 1));
    assert_eq!(desk.ask(end(1)), TickReply::Ended);
    assert_eq!(desk.record().open.as_ref().unwrap().nonce, 2);
    let Some(HistoryEvent::Ended { tick, .. }) = desk.history.last() else { panic!() };
    assert_eq!(*tick, Some(NOW));
    for n in 3..=3 + MOST as i64 {
        desk.pass(1);
        let tick = NOW + 2 + n;
        let claim = TickClaim { tick, expect: tick - 1, nonce: n as u128, ..claim() };
        assert_eq!(desk.ask(allow(claim)), run(tick, 1));
    }
    assert_eq!(desk.record().others.len(), MOST);
    assert_eq!(desk.ask(end(2)), TickReply::Other, "it is not known any more");
}

#[test]
fn a_claim_can_be_given_back_after_many_that_the_next_leader_made_up_for() {
    let allow = |claim: TickClaim| ask(TickClaim { forbid: false, ..claim });
    let mut desk = running(4, TickClaim { forbid: false, ..claim() });
    for n in 2..20 {
        desk.pass(1);
        let tick = NOW + 2 + n;
        let claim = TickClaim { tick, expect: tick - 1, nonce: n as u128, ..claim() };
        assert_eq!(desk.ask(allow(claim)), run(tick, 1));
    }
    assert_eq!(desk.ask(TickOp::GiveBack { nonce: 1, begun: false, keep: true }), TickReply::Returned);
    let next = TickClaim { tick: NOW + 22, expect: NOW + 21, nonce: 20, ..claim() };
    assert_eq!(desk.ask(allow(next)), TickReply::Take { tick: NOW, attempts: 0 });
}

#[test]
fn a_claim_that_is_given_back_is_the_first_to_be_claimed_again() {
    let mut desk = running(4, claim());
    let give_back = |nonce| TickOp::GiveBack { nonce, begun: false, keep: false };
    assert_eq!(desk.ask(give_back(9)), TickReply::NotOpen);
    assert_eq!(desk.ask(give_back(1)), TickReply::Returned);
    assert_eq!(desk.ask(give_back(1)), TickReply::NotOpen);
    assert_eq!(desk.ask(ask(next())), TickReply::Take { tick: NOW, attempts: 0 });
    let again = TickClaim { tick: NOW, ..next() };
    assert_eq!(desk.ask(ask(again.clone())), run(NOW, 1), "its body never began");
    desk.ask(end(2));
    assert_eq!(desk.ask(ask(TickClaim { nonce: 3, ..again })), TickReply::Already { last: NOW, floor: 0 });
    assert_eq!(Desk::empty().ask(give_back(1)), TickReply::NotOpen);
}

#[test]
fn a_tick_that_is_due_again_waits_for_a_clock_that_was_set_back_since() {
    let mut given_back = running(0, claim());
    given_back.ask(TickOp::GiveBack { nonce: 1, begun: false, keep: false });
    let mut died = running(20, TickClaim { at_least_once: true, ..claim() });
    for (desk, at_least_once, attempt) in [(&mut given_back, false, 1), (&mut died, true, 2)] {
        let again = ask(TickClaim { tick: NOW, at_least_once, ..next() });
        desk.now_us = micros_of(NOW) - 5 * S;
        // The slot of a run is counted by another clock where the wall clock may be set.
        if let Some(run) = desk.record.as_mut().unwrap().as_mut().unwrap().open.as_mut() {
            run.slot_end_us = desk.now_us;
        }
        assert_eq!(desk.ask(again.clone()), TickReply::Early { left: Duration::from_secs(5) });
        desk.pass(5);
        assert_eq!(desk.ask(again), run(NOW, attempt));
    }
}

#[test]
fn a_claim_that_a_later_one_came_after_is_given_back_only_where_each_tick_counts() {
    for keep in [false, true] {
        let allow = |claim: TickClaim| TickClaim { forbid: false, ..claim };
        let mut desk = running(4, allow(claim()));
        desk.ask(ask(allow(next())));
        let given_back = desk.ask(TickOp::GiveBack { nonce: 1, begun: false, keep });
        let expected = if keep { TickReply::Returned } else { TickReply::Superseded { tick: NOW } };
        assert_eq!(given_back, expected);
        assert_eq!(desk.record().returned.len(), usize::from(keep));
        assert_eq!(desk.record().others, []);
    }
}

#[test]
fn what_is_given_back_is_kept_in_order_and_bounded() {
    let mut desk = Desk::new();
    desk.pass(MOST as u64);
    let allow = |n: usize| {
        let tick = NOW + n as i64;
        ask(TickClaim { tick, expect: tick - 1, nonce: n as u128, forbid: false, ..claim() })
    };
    for n in 0..=MOST {
        assert_eq!(desk.ask(allow(n)), run(NOW + n as i64, 1));
    }
    let back = |n: usize| TickOp::GiveBack { nonce: n as u128, begun: false, keep: true };
    for n in [3, 1, 2].into_iter().chain((4..=MOST).rev()) {
        assert_eq!(desk.ask(back(n)), TickReply::Returned);
    }
    assert!(desk.record().returned.is_sorted_by_key(|back| back.tick));
    assert_eq!(desk.ask(back(0)), TickReply::Superseded { tick: NOW }, "whoever gives back is told");
}

#[test]
fn at_least_once_takes_over_a_run_whose_slot_is_over_and_not_before() {
    let again = |tick, nonce| ask(TickClaim { tick, nonce, at_least_once: true, forbid: false, ..next() });
    let mut desk = running(9, TickClaim { at_least_once: true, ..claim() });
    assert_eq!(desk.ask(again(NOW, 2)), busy(1));
    // Not when the claimer's term is over: its body may still be running.
    desk.leader = Some((candidate("a", 1), Term::new(8)));
    let later = |claim: TickClaim| TickClaim { term: Term::new(8), ..claim };
    assert_eq!(desk.ask(ask(later(TickClaim { at_least_once: true, ..next() }))), busy(1));
    desk.leader = Some((candidate("a", 1), Term::new(7)));
    desk.pass(1);
    assert_eq!(desk.ask(again(NOW + 4, 2)), TickReply::Take { tick: NOW, attempts: 1 });
    assert_eq!(desk.ask(again(NOW, 3)), run(NOW, 2));
    assert_eq!(desk.ask(end(1)), TickReply::Other, "it was taken over");
    assert_eq!(desk.ask(end(3)), TickReply::Ended);
    assert_eq!(desk.ask(again(NOW + 4, 4)), run(NOW + 4, 1));
    // At most once it is never run again.
    let mut once = running(20, claim());
    assert_eq!(once.ask(ask(TickClaim { tick: NOW, ..next() })), TickReply::Already { last: NOW, floor: 0 });
}

#[test]
fn a_tick_that_was_begun_too_often_or_too_long_ago_is_given_up() {
    let tries = |nonce| ask(TickClaim { tick: NOW, nonce, at_least_once: true, ..next() });
    let mut desk = running(10, TickClaim { at_least_once: true, ..claim() });
    for attempt in 2..=3 {
        assert_eq!(desk.ask(tries(u128::from(attempt))), run(NOW, attempt));
        desk.pass(10);
    }
    assert_eq!(desk.ask(tries(9)), TickReply::Over { tick: NOW, attempts: 3 });
    assert_eq!(desk.history.last(), Some(&HistoryEvent::GaveUp { tick: NOW, attempts: 3 }));
    assert_eq!(desk.ask(tries(9)), TickReply::Already { last: NOW, floor: 0 });

    let mut desk = running(10 + 3601, TickClaim { at_least_once: true, ..claim() });
    assert_eq!(desk.ask(tries(9)), TickReply::Over { tick: NOW, attempts: 1 });

    // Bodies that are cut again and again, such as by restarts.
    let mut desk = running(1, TickClaim { at_least_once: true, ..claim() });
    for nonce in 1..=3 {
        assert_eq!(desk.ask(TickOp::GiveBack { nonce, begun: true, keep: true }), TickReply::Returned);
        let expected = if nonce < 3 { run(NOW, nonce as u32 + 1) } else { TickReply::Over { tick: NOW, attempts: 3 } };
        assert_eq!(desk.ask(tries(nonce + 1)), expected);
    }
}

#[test]
fn a_slot_that_lasts_longer_than_it_can_have_been_set_to_is_cut() {
    let mut desk = running(0, claim());
    // The store's clock is set back by an hour.
    desk.now_us -= 3600 * S;
    assert_eq!(desk.ask(ask(next())), busy(10));
    desk.pass(4);
    assert_eq!(desk.ask(ask(next())), busy(6));
}
