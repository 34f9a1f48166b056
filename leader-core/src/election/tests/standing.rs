//! Stepping down, standing aside, withdrawing: what is given back, and when it competes again.

use super::*;

#[test]
fn a_step_down_releases_and_abstains_for_one_ttl() {
    let mut bench = Bench::leader(rules());
    bench.told();
    bench.event(1_000, Event::StepDown);
    assert_eq!((bench.term(), bench.told()), (None, vec![Notice::Lost(Term::new(7), LossReason::SteppedDown)]));
    assert_eq!(bench.poll(1_000), Some(Op::Release { term: Some(Term::new(7)) }));
    bench.answer(1_010, Answer::Released);
    assert_eq!(bench.told(), [Notice::Released(Term::new(7), true)]);
    bench.event(2_000, Event::Announced);
    assert_eq!(bench.election.next(), Next::At(at(1_000 + TTL)));
    assert_eq!(bench.poll(1_000 + TTL - 1), None);
    // The right was given back with the lease.
    assert!(matches!(bench.poll(1_000 + TTL), Some(Op::Acquire { continues: false, .. })));
}

#[test]
fn a_step_down_of_a_follower_changes_nothing() {
    let mut bench = Bench::new(rules());
    bench.acquire(10, Answer::Held(held(5_000)));
    let before = bench.election.clone();
    bench.event(20, Event::StepDown);
    assert_eq!(bench.election, before);
}

#[test]
fn a_step_down_waits_for_the_renewal_in_flight_and_releases_then() {
    for answer in [Some(Answer::Renewed), None] {
        let mut bench = Bench::leader(rules());
        assert!(bench.poll(HEARTBEAT).is_some());
        bench.event(HEARTBEAT + 10, Event::StepDown);
        assert_eq!((bench.term(), bench.poll(HEARTBEAT + 20)), (None, None));
        match answer {
            Some(answer) => bench.answer(HEARTBEAT + 30, answer),
            None => bench.fail(HEARTBEAT + 30),
        }
        assert_eq!(bench.term(), None);
        assert_eq!(bench.poll(HEARTBEAT + 30), Some(Op::Release { term: Some(Term::new(7)) }));
    }
}

#[test]
fn one_that_stands_aside_stays_out_until_it_resumes() {
    let mut bench = Bench::leader(rules());
    bench.event(1_000, Event::StandAside);
    assert_eq!(bench.poll(1_000), Some(Op::Release { term: Some(Term::new(7)) }));
    bench.answer(1_010, Answer::Released);
    assert_eq!((bench.election.next(), bench.poll(100 * TTL)), (Next::Idle, None));
    bench.event(100 * TTL, Event::Resume);
    assert!(matches!(bench.poll(100 * TTL), Some(Op::Acquire { continues: false, .. })));
}

#[test]
fn a_lease_won_after_standing_aside_is_given_back() {
    let mut bench = Bench::new(rules());
    assert!(bench.poll(0).is_some());
    bench.event(10, Event::StandAside);
    bench.answer(20, won(7));
    assert_eq!((bench.term(), bench.told()), (None, vec![]));
    assert_eq!(bench.poll(20), Some(Op::Release { term: Some(Term::new(7)) }));
}

#[test]
fn a_lease_demoted_by_a_failure_is_given_back_by_one_that_stands_aside() {
    let mut bench = Bench::leader(rules());
    assert!(bench.poll(HEARTBEAT).is_some());
    bench.fail(HEARTBEAT + 1_000);
    bench.event(HEARTBEAT + 1_100, Event::StandAside);
    assert_eq!(bench.poll(HEARTBEAT + 1_100), Some(Op::Release { term: Some(Term::new(7)) }));
}

#[test]
fn a_withdrawal_gives_back_what_may_have_been_won() {
    // The acquire is in flight, or has already gone without an answer.
    for withdraws_first in [true, false] {
        let mut bench = Bench::new(rules());
        assert!(bench.poll(0).is_some());
        if withdraws_first {
            bench.event(10, Event::Withdraw);
            assert!(!bench.election.is_quiet());
            bench.fail(2_000);
        } else {
            bench.fail(2_000);
            bench.event(2_000, Event::Withdraw);
        }
        assert_eq!(bench.poll(2_000), Some(Op::Release { term: None }));
        bench.answer(2_010, Answer::NotHeld);
        assert!(bench.election.is_quiet());
    }
}

#[test]
fn a_withdrawn_election_never_asks_again() {
    let mut bench = Bench::leader(rules());
    bench.event(1_000, Event::Withdraw);
    assert_eq!(bench.poll(1_000), Some(Op::Release { term: Some(Term::new(7)) }));
    bench.fail(2_000);
    assert!(bench.election.is_quiet());
    for event in [Event::Resume, Event::Announced, Event::StandAside, Event::Resume] {
        bench.event(3_000, event);
    }
    assert_eq!((bench.election.next(), bench.poll(100 * TTL)), (Next::Idle, None));
}
