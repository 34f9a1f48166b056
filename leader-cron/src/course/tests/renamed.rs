//! A job that had another name.

use super::*;

fn bench() -> Bench {
    let mut bench = Bench::new(all());
    let course = std::mem::replace(&mut bench.course, Bench::new(all()).course);
    bench.course = course.renamed_from(Some(JobName::new("old").unwrap()));
    bench
}

/// The old record is asked for.
fn reads_old(bench: &mut Bench, reply: TickReply) {
    let load = bench.sent();
    assert_eq!((load.op, load.job.as_ref().map(JobName::as_str)), (TickOp::Load, Some("old")));
    bench.answer(load.no, reply);
}

/// The record of the new name, which began two minutes after the last tick under the old one.
fn begun(floor: i64) -> JobRecord {
    JobRecord { since: START + 120, floor, ..record() }
}

#[test]
fn a_new_name_begins_with_the_last_tick_of_the_old_one_and_the_gap_is_made_up_for() {
    let mut bench = bench();
    bench.pass(120_000);
    reads_old(&mut bench, TickReply::Loaded(record()));
    let register = bench.sent();
    assert!(matches!(register.op, TickOp::Register { known: Some(START), .. }), "{register:?}");
    bench.answer(register.no, TickReply::Registered(begun(START + 120)));
    bench.lead(1);
    // Under its own term it is read again: nobody claims under the old name from here on.
    reads_old(&mut bench, TickReply::Loaded(record()));
    let load = bench.sent();
    assert_eq!(load.job, None);
    bench.answer(load.no, TickReply::Loaded(begun(START + 120)));
    let (_, claim) = bench.claims();
    assert_eq!((claim.tick, claim.expect, claim.vouch), (START + 60, START, true));
    assert_eq!(claim.renamed_from.as_ref().map(JobName::as_str), Some("old"));
    assert_eq!(bench.notices, []);
}

#[test]
fn an_old_record_that_may_have_forgotten_vouches_for_nothing() {
    let mut bench = bench();
    bench.pass(120_000);
    let forgetful = || TickReply::Loaded(JobRecord { floor: START + 100, ..record() });
    reads_old(&mut bench, forgetful());
    let register = bench.sent();
    bench.answer(register.no, TickReply::Registered(begun(START + 120)));
    bench.lead(1);
    reads_old(&mut bench, forgetful());
    let load = bench.sent();
    bench.answer(load.no, TickReply::Loaded(begun(START + 120)));
    let gap = Gap { from: START + 60, count: 2, reason: Reason::Forgotten };
    assert_eq!(bench.notices, [Notice::Missed(gap)]);
}

#[test]
fn a_run_under_the_old_name_is_waited_for() {
    let mut bench = bench();
    bench.lead(1);
    reads_old(&mut bench, TickReply::Loaded(JobRecord { open: Some(open(Duration::from_secs(5))), ..record() }));
    assert_eq!(bench.waits(), Duration::from_millis(500));
    bench.pass(500);
    // In between it is registered, which is no reason to begin.
    let register = bench.sent();
    bench.answer(register.no, TickReply::Registered(record()));
    reads_old(&mut bench, TickReply::Loaded(record()));
    let load = bench.sent();
    assert_eq!((load.op, load.job), (TickOp::Load, None));
}

#[test]
fn a_changed_schedule_begins_anew_under_a_new_name_too() {
    let mut bench = bench();
    bench.pass(120_000);
    reads_old(&mut bench, TickReply::Loaded(JobRecord { schedule: "@hourly UTC".to_owned(), ..record() }));
    let register = bench.sent();
    assert!(matches!(register.op, TickOp::Register { known: None, .. }), "{register:?}");
}

#[test]
fn who_asks_for_a_run_by_hand_is_told_of_the_run_under_the_old_name_and_not_kept_waiting() {
    let mut bench = bench();
    bench.lead(1);
    let now = bench.now;
    bench.course.ask_by_hand(now, 1 << 100, &mut bench.notices);
    reads_old(&mut bench, TickReply::Loaded(JobRecord { open: Some(open(Duration::from_secs(5))), ..record() }));
    let by = Some((InstanceId::new("a").unwrap(), Duration::from_secs(60)));
    assert_eq!(bench.notices, [Notice::Taken { nonce: 1 << 100, by }]);
    assert!(bench.course.is_quiet());
}
