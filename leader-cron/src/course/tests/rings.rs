//! A job that is woken from outside: by rings that come late, early, twice, and not at all.

use super::*;

impl Bench {
    /// One that was rung for the tick of [`START`], 15 s before its next.
    fn rung(policy: Policy) -> Self {
        let mut bench = Self::leading(policy);
        bench.pass(300);
        bench.ring();
        bench.pass(44_700);
        bench.look();
        bench
    }

    fn ring(&mut self) {
        self.course.ring(self.now);
    }

    /// The record is read again, and tells nothing new.
    fn look(&mut self) {
        let look = self.sent();
        assert_eq!(look.op, TickOp::Load);
        self.answer(look.no, TickReply::Loaded(record()));
    }

    /// No claim goes out.
    fn claims_nothing(&mut self) {
        let poll = self.poll();
        assert!(!matches!(poll, Poll::Send(_)), "{poll:?}");
    }
}

#[test]
fn a_tick_waits_for_its_ring_and_is_claimed_with_it() {
    let mut bench = Bench::rung(Policy::DEFAULT);
    bench.pass(15_000);
    assert_eq!(bench.waits(), Duration::from_secs(2));
    bench.pass(550);
    bench.claims_nothing();
    bench.ring();
    assert_eq!(bench.claims().1.tick, START + 60);
}

#[test]
fn a_ring_that_is_lost_delays_one_tick_by_two_seconds_and_loses_none() {
    let mut bench = Bench::rung(Policy::DEFAULT);
    bench.pass(16_999);
    bench.claims_nothing();
    bench.pass(1);
    let (no, claim) = bench.claims();
    assert_eq!((claim.tick, claim.missed), (START + 60, None));
    bench.answer(no, TickReply::Already { last: START + 60, floor: 0 });
    // The next tick waits for nothing.
    bench.pass(57_999);
    bench.look();
    bench.claims_nothing();
    bench.pass(1);
    assert_eq!(bench.claims().1.tick, START + 120);
    // Until it rings again.
    let mut bench = Bench::rung(Policy::DEFAULT);
    bench.pass(17_000);
    let claimed = bench.runs();
    bench.ring();
    bench.course.ended(claimed.nonce, end(), false);
    let told = bench.sent();
    bench.answer(told.no, TickReply::Ended);
    bench.pass(58_000);
    bench.look();
    assert_eq!(bench.waits(), Duration::from_secs(2));
}

#[test]
fn a_tick_that_is_run_only_while_it_is_young_does_not_grow_old_waiting_for_its_ring() {
    for seconds in 1..=5 {
        let mut bench = Bench::rung(Policy { within: Some(Duration::from_secs(seconds)), ..Policy::DEFAULT });
        bench.pass(15_000);
        // The ring is lost, and it is woken a little late.
        let request = match bench.poll() {
            Poll::Send(request) => request,
            Poll::Wait(at) => {
                bench.now = at;
                bench.pass(999);
                bench.sent()
            }
            Poll::Idle => panic!("it forgets the tick"),
        };
        let is_the_tick = matches!(&request.op, TickOp::Claim(claim) if claim.tick == START + 60);
        assert!(is_the_tick, "within {seconds} s: {request:?}");
        assert!(!bench.notices.iter().any(|notice| matches!(notice, Notice::TooOld(_))));
    }
}

#[test]
fn a_ring_that_comes_twice_claims_once() {
    let mut bench = Bench::rung(Policy { overlap: Overlap::Allow, ..Policy::DEFAULT });
    bench.pass(15_300);
    bench.ring();
    bench.ring();
    let (no, claim) = bench.claims();
    bench.ring();
    bench.claims_nothing();
    bench.answer(no, TickReply::Run { tick: claim.tick, attempt: 1 });
    for _ in 0..3 {
        bench.ring();
        bench.claims_nothing();
        bench.pass(500);
    }
}

#[test]
fn a_ring_that_comes_early_claims_nothing_before_the_tick() {
    // By a clock that is a second ahead of the store's.
    let mut bench = Bench::rung(Policy::DEFAULT);
    bench.pass(14_000);
    bench.ring();
    bench.pass(999);
    bench.claims_nothing();
    bench.pass(1);
    assert_eq!(bench.claims().1.tick, START + 60);
    // For another hour.
    let mut bench = Bench::rung(Policy::DEFAULT);
    bench.ring();
    bench.claims_nothing();
    bench.pass(15_000);
    assert_eq!(bench.waits(), Duration::from_secs(2));
}

#[test]
fn what_a_take_over_finds_waits_for_no_ring() {
    let mut bench = Bench::rung(Policy::DEFAULT);
    bench.course.unled();
    bench.pass(15_100);
    bench.lead(2);
    bench.look();
    assert_eq!(bench.claims().1.tick, START + 60);
}

#[test]
fn ticks_that_were_missed_are_caught_up_without_a_ring() {
    for (missed, tick) in [(Missed::Once, 120), (Missed::All, 60)] {
        let mut bench = Bench::rung(Policy { missed, ..Policy::DEFAULT });
        // It stood still for a minute.
        bench.pass(75_100);
        bench.look();
        assert_eq!(bench.claims().1.tick, START + tick, "{missed:?}");
    }
}
