//! Runs by hand: beside no other one.

use super::*;

const NUMBER: u128 = 1 << 100;

fn ask(bench: &mut Bench) {
    let now = bench.now;
    bench.course.ask_by_hand(now, NUMBER, &mut bench.notices);
}

/// Answers that the record is read for the run.
fn reads(bench: &mut Bench, record: JobRecord) {
    let load = bench.sent();
    assert_eq!(load.op, TickOp::Load);
    bench.answer(load.no, TickReply::Loaded(record));
}

fn event() -> HistoryEvent {
    HistoryEvent::Manual { instance: InstanceId::new("a").unwrap(), end: end() }
}

/// Once the record is looked at again: what is claimed.
fn claims(bench: &mut Bench) -> TickClaim {
    reads(bench, record());
    bench.claims().1
}

#[test]
fn a_run_by_hand_claims_no_tick_is_written_down_and_ticks_wait_for_its_end() {
    let mut bench = Bench::leading(all());
    ask(&mut bench);
    assert_eq!(bench.notices, [], "the record is read first");
    reads(&mut bench, record());
    assert_eq!(bench.notices, [Notice::Free(NUMBER)]);
    bench.pass(150_000);
    // The record is looked at, and nothing is claimed.
    reads(&mut bench, record());
    assert!(bench.waits() > Duration::from_secs(1));
    assert!(!bench.course.is_quiet() && !bench.course.is_settled(NUMBER));

    assert!(bench.course.ended_by_hand(NUMBER, event));
    let note = bench.sent();
    assert_eq!(note.op, TickOp::Note(event()));
    assert!(!bench.course.is_settled(NUMBER), "the lease is kept until it is written down");
    bench.answer(note.no, TickReply::Noted);
    assert!(bench.course.is_settled(NUMBER) && bench.course.is_quiet());
    assert_eq!(bench.claims().1.tick, START + 60, "no tick was consumed");
    assert!(!bench.course.ended_by_hand(NUMBER, event));
}

#[test]
fn a_run_by_hand_does_not_begin_beside_another_run() {
    // One of a tick, here.
    let mut bench = Bench::leading(all());
    bench.pass(60_000);
    reads(&mut bench, record());
    bench.runs();
    ask(&mut bench);
    assert_eq!(bench.notices, [Notice::Taken { nonce: NUMBER, by: None }]);
    // One by hand, whether it has begun or not.
    let mut bench = Bench::leading(all());
    ask(&mut bench);
    for _ in 0..2 {
        let now = bench.now;
        bench.course.ask_by_hand(now, 1, &mut bench.notices);
        assert_eq!(bench.notices.pop(), Some(Notice::Taken { nonce: 1, by: None }));
        if bench.notices.is_empty() && bench.course.asked_by_hand().is_some() {
            reads(&mut bench, record());
            assert_eq!(bench.notices, [Notice::Free(NUMBER)]);
        }
    }
    // One elsewhere, unless its slot is over.
    for (left, taken) in [(Duration::from_secs(5), true), (Duration::ZERO, false)] {
        let mut bench = Bench::leading(all());
        ask(&mut bench);
        reads(&mut bench, JobRecord { open: Some(open(left)), ..record() });
        let by = Some((InstanceId::new("a").unwrap(), Duration::from_secs(60)));
        let expected = if taken { Notice::Taken { nonce: NUMBER, by } } else { Notice::Free(NUMBER) };
        assert_eq!(bench.notices, [expected]);
        if taken {
            assert!(bench.course.is_settled(NUMBER));
            bench.pass(60_000);
            assert_eq!(claims(&mut bench).tick, START + 60);
        }
    }
}

#[test]
fn a_claim_that_is_under_way_is_settled_before_a_run_by_hand_begins() {
    for runs in [true, false] {
        let mut bench = Bench::leading(all());
        bench.pass(60_000);
        reads(&mut bench, record());
        let (no, claim) = bench.claims();
        ask(&mut bench);
        bench.time_out(no);
        let (no, again) = bench.claims();
        assert_eq!(again.nonce, claim.nonce, "it may have been executed");
        if runs {
            bench.answer(no, TickReply::Run { tick: claim.tick, attempt: 1 });
            assert!(
                matches!(bench.notices[..], [Notice::Run(_), Notice::Taken { by: None, .. }]),
                "{:?}",
                bench.notices
            );
            continue;
        }
        bench.answer(no, TickReply::Early { left: Duration::from_millis(5) });
        // It is given back once no request for it can be executed any more, and only then is the record read.
        let waits = bench.waits();
        assert!(waits > Duration::from_secs(1) && bench.notices.is_empty());
        bench.pass(waits.as_millis() as u64);
        let back = bench.sent();
        assert!(matches!(back.op, TickOp::GiveBack { .. }), "{back:?}");
        bench.answer(back.no, TickReply::NotOpen);
        reads(&mut bench, record());
        assert_eq!(bench.notices, [Notice::Free(NUMBER)]);
    }
}

#[test]
fn a_record_that_was_read_under_an_earlier_term_lets_no_run_by_hand_begin() {
    let mut bench = Bench::leading(all());
    ask(&mut bench);
    let load = bench.sent();
    bench.course.unled();
    bench.lead(2);
    bench.answer(load.no, TickReply::Loaded(record()));
    assert_eq!(bench.notices, []);
    reads(&mut bench, record());
    assert_eq!(bench.notices, []);
    reads(&mut bench, JobRecord { open: Some(open(Duration::from_secs(3))), ..record() });
    assert!(matches!(bench.notices[..], [Notice::Taken { by: Some(_), .. }]), "{:?}", bench.notices);
}

#[test]
fn a_run_by_hand_that_is_refused_or_cannot_be_asked_for_holds_no_tick() {
    let mut bench = Bench::leading(all());
    ask(&mut bench);
    reads(&mut bench, record());
    bench.course.refused(NUMBER);
    assert!(bench.course.is_settled(NUMBER) && bench.course.is_quiet());
    bench.pass(60_000);
    assert_eq!(claims(&mut bench).tick, START + 60);

    let mut bench = Bench::leading(all());
    ask(&mut bench);
    let load = bench.sent();
    bench.answer(load.no, TickReply::Corrupt { field: "last" });
    assert_eq!(bench.notices, [Notice::Corrupt("last")]);
    assert!(bench.course.is_quiet());
}

#[test]
fn where_runs_may_overlap_a_run_by_hand_begins_at_once_and_ticks_go_on() {
    let mut bench = Bench::leading(Policy { overlap: Overlap::Allow, ..all() });
    ask(&mut bench);
    assert_eq!(bench.notices.pop(), Some(Notice::Free(NUMBER)));
    bench.pass(60_000);
    assert_eq!(claims(&mut bench).tick, START + 60);
}
