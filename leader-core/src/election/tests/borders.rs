//! At the very instant at which something ends, and after what has ended.

use super::*;

/// A leader whose renewal has failed, at 3,010: what it had is its own until the deadline, at 9,900.
fn demoted() -> Bench {
    let mut bench = Bench::leader(rules());
    assert!(matches!(bench.poll(3_000), Some(Op::Renew { .. })));
    bench.fail(3_010);
    assert_eq!(bench.term(), None);
    bench
}

#[test]
fn an_acquisition_continues_the_last_one_up_to_its_deadline_and_not_at_it() {
    for (now, expected) in [(9_899, true), (9_900, false)] {
        let mut bench = demoted();
        let Some(Op::Acquire { continues, .. }) = bench.poll(now) else { panic!("{now}") };
        assert_eq!(continues, expected, "{now}");
    }
}

#[test]
fn terms_are_unbroken_for_as_long_as_each_was_won_within_the_right_of_the_one_before() {
    let mut bench = demoted();
    assert_eq!(bench.election.unbroken_since(), Term::new(7));
    assert!(bench.poll(5_000).is_some());
    bench.answer(5_010, won(8));
    assert_eq!((bench.term(), bench.election.unbroken_since()), (Some(8), Term::new(7)));
    // It runs out, and anybody may have led since.
    assert!(bench.poll(8_000).is_some());
    bench.fail(8_010);
    assert!(bench.poll(20_000).is_some());
    bench.answer(20_010, won(9));
    assert_eq!((bench.term(), bench.election.unbroken_since()), (Some(9), Term::new(9)));
}

#[test]
fn the_end_of_a_view_is_looked_at_before_a_later_attempt() {
    let hold = RenewalFailure::HoldUntilDeadline;
    let mut bench = Bench::leader(Rules { retry: ms(20_000), renewal_failure: hold, ..rules() });
    assert!(bench.poll(3_000).is_some());
    bench.fail(3_010);
    assert_eq!(bench.term(), Some(7));
    assert_eq!(bench.election.next(), Next::At(at(9_900)));
}

#[test]
fn who_led_once_follows_another_and_competes_again() {
    let mut bench = Bench::leader(rules());
    assert!(bench.poll(3_000).is_some());
    bench.answer(3_010, Answer::Lost { duplicate: false });
    assert!(matches!(bench.poll(3_010), Some(Op::Acquire { .. })));
    bench.answer(3_020, Answer::Held(held(500)));
    assert!(!bench.told().contains(&Notice::Duplicate));
    assert!(matches!(bench.poll(3_520), Some(Op::Acquire { .. })));
}

#[test]
fn who_found_its_double_stays_out_whatever_it_is_told_to_do() {
    let mut bench = Bench::leader(rules());
    assert!(bench.poll(3_000).is_some());
    bench.answer(3_010, Answer::Lost { duplicate: true });
    assert!(bench.told().contains(&Notice::Duplicate));
    bench.event(4_000, Event::StandAside);
    bench.event(5_000, Event::Resume);
    assert_eq!((bench.poll(60_000), bench.election.next()), (None, Next::Idle));
}

#[test]
fn who_stands_aside_abstains_until_it_is_to_resume() {
    let mut bench = Bench::leader(rules());
    assert!(!bench.election.is_abstaining());
    bench.event(1_000, Event::StandAside);
    assert!(bench.election.is_abstaining());
    bench.event(2_000, Event::Resume);
    assert!(!bench.election.is_abstaining());
}

#[test]
fn who_knows_that_it_holds_nothing_ends_without_a_release() {
    let mut bench = Bench::new(rules());
    assert!(bench.poll(0).is_some());
    bench.fail(10);
    // Whether that one was executed is unknown until another is answered.
    assert!(bench.poll(1_010).is_some());
    bench.answer(1_020, Answer::Held(held(5_000)));
    bench.event(1_030, Event::Withdraw);
    assert_eq!((bench.poll(1_030), bench.election.is_quiet()), (None, true));
}

#[test]
fn what_may_stand_in_the_store_is_given_back_up_to_its_deadline_and_not_at_it() {
    for (now, expected) in [(9_899, Some(Op::Release { term: Some(Term::new(7)) })), (9_900, None)] {
        let mut bench = demoted();
        bench.event(now, Event::Withdraw);
        assert_eq!(bench.poll(now), expected, "{now}");
    }
}
