//! What others have claimed, and what a store may have forgotten.

use super::*;

#[test]
fn a_record_that_was_read_before_the_lease_was_won_is_not_believed() {
    let mut bench = Bench::new(all());
    let register = bench.sent();
    bench.lead(1);
    bench.pass(120_000);
    // Meanwhile another leader may have claimed.
    bench.answer(register.no, TickReply::Registered(record()));
    let load = bench.sent();
    assert_eq!(load.op, TickOp::Load);
    bench.answer(load.no, TickReply::Loaded(JobRecord { last: START + 60, ..record() }));
    assert_eq!(bench.claims().1.expect, START + 60);
}

#[test]
fn who_led_all_the_time_vouches_and_who_did_not_does_not() {
    for (unbroken_since, vouches) in [(1, true), (2, false)] {
        let mut bench = Bench::leading(all());
        bench.course.unled();
        bench.pass(60_000);
        bench.course.led(bench.now, Term::new(2), Term::new(unbroken_since));
        let load = bench.sent();
        bench.answer(load.no, TickReply::Loaded(JobRecord { floor: START + 60, ..record() }));
        let gap = Gap { from: START + 60, count: 1, reason: Reason::Forgotten };
        let told = if vouches { vec![] } else { vec![Notice::Missed(gap)] };
        assert_eq!(bench.notices, told);
        if vouches {
            let (_, claim) = bench.claims();
            assert!(claim.vouch && claim.tick == START + 60 && claim.expect == START);
        } else {
            bench.notes(&gap);
            assert!(bench.waits() > Duration::ZERO);
        }
    }
}

#[test]
fn at_least_once_runs_what_the_store_may_have_forgotten() {
    let mut bench = Bench::new(least());
    bench.register();
    bench.lead(1);
    bench.pass(60_000);
    let load = bench.sent();
    bench.answer(load.no, TickReply::Loaded(JobRecord { floor: START + 60, ..record() }));
    assert_eq!(bench.notices, []);
    assert_eq!(bench.claims().1.tick, START + 60);
}

#[test]
fn what_was_given_back_to_a_store_that_forgot_is_told_and_not_asked_for() {
    let mut bench = Bench::new(all());
    bench.register();
    bench.lead(1);
    let load = bench.sent();
    let returned = vec![ReturnedTick { tick: START, attempts: 0 }];
    bench.answer(load.no, TickReply::Loaded(JobRecord { floor: START, returned, ..record() }));
    let gap = Gap { from: START, count: 1, reason: Reason::Forgotten };
    assert_eq!(bench.notices, [Notice::Missed(gap)]);
    assert!(bench.waits() > Duration::ZERO);
}

#[test]
fn a_new_record_of_an_old_job_tells_what_is_lost_with_the_old_one() {
    let mut bench = Bench::leading(all());
    bench.pass(125_000);
    let look = bench.sent();
    let since = START + 121;
    bench.answer(look.no, TickReply::Loaded(JobRecord { since, last: since, ..record() }));
    let gap = Gap { from: START + 60, count: 2, reason: Reason::Forgotten };
    assert_eq!(bench.notices, [Notice::Missed(gap)]);
}

#[test]
fn a_vanished_record_begins_with_what_a_vouching_leader_knows() {
    let mut bench = Bench::leading(all());
    bench.pass(30_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Unknown);
    let register = bench.sent();
    assert!(matches!(register.op, TickOp::Register { known: Some(START), .. }), "{register:?}");
    let told = JobRecord { since: START + 30, floor: START + 30, ..record() };
    bench.answer(register.no, TickReply::Registered(told));
    assert_eq!(bench.notices, []);
    bench.pass(30_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let (_, claim) = bench.claims();
    assert!(claim.vouch && claim.tick == START + 60);
}

#[test]
fn who_is_told_that_others_claimed_reads_what() {
    let mut bench = Bench::leading(all());
    bench.pass(60_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let (no, _) = bench.claims();
    bench.answer(no, TickReply::Moved { last: START + 60 });
    let look = bench.sent();
    assert_eq!(look.op, TickOp::Load);
    bench.answer(look.no, TickReply::Loaded(JobRecord { last: START + 60, ..record() }));
    assert!(bench.waits() > Duration::ZERO);
}
