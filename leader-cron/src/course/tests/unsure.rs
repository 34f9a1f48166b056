//! Claims whose answers are lost: each is executed once, run once, or given back.

use super::*;

/// One that leads, and whose first claim is due.
fn due(policy: Policy) -> Bench {
    let mut bench = Bench::leading(policy);
    bench.pass(60_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    bench
}

/// Past this no request of a claim that was asked just now can be executed.
const SETTLED: u64 = 2 * OPERATION.as_millis() as u64 + 250;

fn gives_back(bench: &mut Bench) -> u128 {
    match bench.sent().op {
        TickOp::GiveBack { nonce, begun: false, .. } => nonce,
        other => panic!("gives nothing back: {other:?}"),
    }
}

#[test]
fn a_claim_without_an_answer_is_asked_again_as_the_same_claim() {
    let mut bench = due(all());
    let (no, first) = bench.claims();
    bench.time_out(no);
    let (no, second) = bench.claims();
    assert_eq!((second.tick, second.nonce), (first.tick, first.nonce));
    assert!(second.not_after_us > first.not_after_us);
    bench.answer(no, TickReply::Run { tick: second.tick, attempt: 1 });
    assert!(matches!(bench.notices[..], [Notice::Run(claimed)] if claimed.nonce == first.nonce));
}

#[test]
fn a_claim_that_may_have_been_executed_is_given_back_before_another_is_made() {
    for reply in [
        TickReply::Moved { last: START + 60 },
        TickReply::Already { last: START + 60, floor: 0 },
        TickReply::Unknown,
        TickReply::Early { left: Duration::from_millis(5) },
        TickReply::Take { tick: START, attempts: 0 },
    ] {
        let mut bench = due(all());
        let (no, first) = bench.claims();
        bench.time_out(no);
        let (no, _) = bench.claims();
        bench.answer(no, reply.clone());
        // An earlier request may be under way: it would claim what was given back.
        match bench.poll() {
            Poll::Wait(at) => assert_eq!(at.saturating_since(bench.now), Duration::from_millis(SETTLED), "{reply:?}"),
            Poll::Send(Request { no, op: TickOp::Load | TickOp::Register { .. }, .. }) => {
                let told = JobRecord { last: START + 60, ..record() };
                bench.answer(no, TickReply::Loaded(told));
            }
            other => panic!("{reply:?}: {other:?}"),
        }
        bench.pass(SETTLED);
        assert_eq!(gives_back(&mut bench), first.nonce, "{reply:?}");
    }
}

#[test]
fn a_claim_that_surely_was_not_executed_is_not_given_back() {
    let mut bench = due(all());
    let (no, first) = bench.claims();
    bench.answer(no, TickReply::Early { left: Duration::from_millis(5) });
    bench.pass(5);
    let (_, second) = bench.claims();
    assert_eq!(second.tick, first.tick);
    assert_ne!(second.nonce, first.nonce);
}

#[test]
fn a_run_that_did_not_begin_is_given_back_at_once_unless_its_claim_may_be_executed_once_more() {
    let mut bench = due(all());
    let claimed = bench.runs();
    bench.course.refused(claimed.nonce);
    assert_eq!(gives_back(&mut bench), claimed.nonce);

    let mut bench = due(all());
    let (no, _) = bench.claims();
    bench.time_out(no);
    let claimed = bench.runs();
    bench.course.refused(claimed.nonce);
    assert_eq!(bench.waits(), Duration::from_millis(SETTLED));
    bench.pass(SETTLED);
    assert_eq!(gives_back(&mut bench), claimed.nonce);
}

#[test]
fn a_claim_that_outlives_the_lease_is_given_back_once_it_cannot_be_executed_any_more() {
    let mut bench = due(all());
    let (no, claim) = bench.claims();
    bench.course.unled();
    bench.time_out(no);
    assert!(bench.course.is_claiming() && !bench.course.is_quiet());
    assert_eq!(bench.waits(), Duration::from_millis(SETTLED - 1_100));
    bench.pass(SETTLED - 1_100);
    assert_eq!(gives_back(&mut bench), claim.nonce);
}

#[test]
fn a_late_run_of_a_follower_is_given_back() {
    let mut bench = due(all());
    let (no, claim) = bench.claims();
    bench.course.unled();
    bench.answer(no, TickReply::Run { tick: claim.tick, attempt: 1 });
    assert_eq!(bench.notices, []);
    assert_eq!(gives_back(&mut bench), claim.nonce);
}

#[test]
fn a_claim_that_is_asked_again_for_too_long_is_only_put_away() {
    let mut bench = due(Policy { missed: Missed::Skip, ..Policy::DEFAULT });
    for _ in 0..4 {
        let (no, _) = bench.claims();
        bench.time_out(no);
        bench.pass(2_000);
    }
    let (no, claim) = bench.claims();
    bench.answer(no, TickReply::Run { tick: claim.tick, attempt: 1 });
    assert_eq!(bench.notices, [Notice::Missed(Gap { from: claim.tick, count: 1, reason: Reason::TooOld })]);
    assert!(matches!(bench.sent().op, TickOp::End { nonce, .. } if nonce == claim.nonce));
}
