//! Two incarnations of one instance id: who leads, and from when on.

use super::*;

#[test]
fn a_leader_whose_id_was_taken_over_stays_out_for_good() {
    let mut bench = Bench::leader(rules());
    assert!(bench.poll(HEARTBEAT).is_some());
    bench.told();
    bench.answer(HEARTBEAT + 10, Answer::Lost { duplicate: true });
    assert_eq!(bench.told(), [Notice::Lost(Term::new(7), LossReason::Duplicate), Notice::Duplicate]);
    bench.event(HEARTBEAT + 20, Event::Resume);
    bench.event(HEARTBEAT + 20, Event::Announced);
    assert_eq!((bench.election.next(), bench.poll(10 * TTL)), (Next::Idle, None));
}

#[test]
fn one_that_had_led_and_finds_another_with_its_id_stays_out() {
    let mut bench = Bench::leader(rules());
    assert!(matches!(bench.poll(TTL), Some(Op::Acquire { continues: false, same_id: SameId::Leave, .. })));
    bench.answer(TTL + 10, Answer::Held(Held { same_id: true, ..held(5_000) }));
    assert_eq!(bench.election.next(), Next::Idle);
    assert!(bench.told().contains(&Notice::Duplicate));
}

#[test]
fn a_fresh_instance_takes_the_seat_of_its_earlier_incarnation() {
    let mut bench = Bench::new(rules());
    assert!(matches!(bench.poll(0), Some(Op::Acquire { same_id: SameId::Take, .. })));
    bench.answer(10, taken_over(7, 8_000));
    assert_eq!(bench.term(), Some(7));
    assert_eq!(bench.told(), [Notice::Acquired(Term::new(7))]);
}

fn after_deadline() -> Rules {
    Rules { reclaim: Reclaim::AfterDeadline, ..rules() }
}

#[test]
fn after_deadline_believes_only_what_was_renewed_after_the_older_lease() {
    let mut bench = Bench::new(after_deadline());
    bench.acquire(10, taken_over(7, 4_000));
    assert_eq!(bench.poll(HEARTBEAT), Some(Op::Renew { term: Term::new(7) }));
    bench.answer(HEARTBEAT + 10, Answer::Renewed);
    assert_eq!((bench.term(), bench.told()), (None, vec![]));
    // It asks when the older lease ends, not a heartbeat later.
    assert_eq!(bench.election.next(), Next::At(at(4_010)));
    assert_eq!(bench.poll(4_010), Some(Op::Renew { term: Term::new(7) }));
    assert_eq!(bench.term(), None);
    bench.answer(4_020, Answer::Renewed);
    assert_eq!((bench.term(), bench.told()), (Some(7), vec![Notice::Acquired(Term::new(7))]));
}

#[test]
fn after_deadline_remembers_the_older_lease_when_the_seat_is_lost_and_won_again() {
    let mut bench = Bench::new(after_deadline());
    bench.acquire(10, taken_over(7, 8_000));
    assert!(bench.poll(HEARTBEAT).is_some());
    bench.fail(HEARTBEAT + 1_000);
    bench.now = HEARTBEAT + 2_000;
    // A seat that was not believed in is no right: the older incarnation may have one.
    assert!(matches!(bench.poll(bench.now), Some(Op::Acquire { continues: false, .. })));
    bench.answer(bench.now + 10, won(8));
    assert_eq!(bench.term(), None);
    assert_eq!(bench.poll(8_010), Some(Op::Renew { term: Term::new(8) }));
    bench.answer(8_020, Answer::Renewed);
    assert_eq!(bench.term(), Some(8));
}

/// Whether or not the store says so again.
#[test]
fn after_deadline_remembers_the_older_lease_also_of_a_seat_that_it_gave_back_at_once() {
    let mut bench = Bench::new(after_deadline());
    assert!(bench.poll(0).is_some());
    bench.event(5, Event::StandAside);
    bench.answer(10, taken_over(7, 8_000));
    bench.event(20, Event::Resume);
    assert_eq!(bench.poll(20), Some(Op::Release { term: Some(Term::new(7)) }));
    bench.answer(30, Answer::Released);
    bench.acquire(40, won(8));
    assert_eq!(bench.term(), None);
    assert_eq!(bench.poll(8_010), Some(Op::Renew { term: Term::new(8) }));
    bench.answer(8_020, Answer::Renewed);
    assert_eq!(bench.term(), Some(8));
}
