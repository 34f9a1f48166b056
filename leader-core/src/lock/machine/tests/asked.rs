//! What the machine says of itself, and what it makes of an answer that it did not ask for.

use super::*;

#[test]
fn it_says_whom_it_waits_for_and_that_it_is_over() {
    let mut lock = Told::new(rules(9_000 * MS));
    assert!(lock.machine.waits_for().is_none() && !lock.machine.is_over());
    lock.ask(0);
    lock.answer(5, busy(true, 5_000, 0));
    assert_eq!(lock.machine.waits_for().and_then(|busy| busy.holder.as_ref()).map(InstanceId::as_str), Some("h"));
    assert!(!lock.machine.is_over());
    lock.handle(10, Event::Leave);
    assert!(lock.machine.is_over());
    let mut held = Told::held();
    assert!(!held.machine.is_over());
    held.handle(9_000, Event::StopRenewing);
    assert!(held.machine.is_over(), "it has run out");
}

#[test]
fn a_shutdown_waits_for_what_is_being_noted_until_the_store_fails_at_it() {
    let mut lock = Told::held();
    assert!(!lock.machine.is_taking_leave());
    lock.handle(10, Event::Complete(None));
    assert!(lock.machine.is_taking_leave());
    lock.ask(10);
    lock.fail(20, Failure::Passing);
    assert!(!lock.machine.is_taking_leave());
}

#[test]
fn what_nobody_asked_for_confirms_nothing() {
    // That the work is done is an answer to who asked whether it is.
    let mut lock = Told::new(rules(Duration::ZERO));
    lock.ask(0);
    lock.answer(5, LockAnswer::Done);
    assert_eq!(lock.take(), [Notice::Failed]);
    assert_eq!(lock.ask(5), LockOp::Release { token: None });
}

#[test]
fn what_failed_before_the_work_was_done_is_no_reason_to_note_that_later() {
    let mut lock = Told::held();
    assert_eq!(lock.ask(3_000), LockOp::Renew { token: TOKEN });
    lock.handle(3_010, Event::Complete(None));
    assert_eq!(lock.poll(3_010), None, "one request at a time");
    lock.fail(3_500, Failure::Passing);
    assert_eq!(lock.ask(3_500), LockOp::Complete { token: TOKEN, keep: None });
    // To note it is tried again after a while, and not at once.
    lock.fail(3_600, Failure::Passing);
    assert_eq!(lock.poll(3_600), None);
}

#[test]
fn the_time_between_attempts_grows_and_is_at_most_a_quarter_of_what_is_left_of_a_lock() {
    let mut lock = Told::held();
    let mut now = 3_000;
    // The view ends at 8,990 ms. Twice 900 ms would be 1,800 ms.
    for latest in [900_000, 1_272_500, 1_047_500].map(Duration::from_micros) {
        lock.ask(now);
        lock.fail(now, Failure::Passing);
        assert_eq!(lock.after(now)[1], latest);
        now += 900;
    }
    lock.handle(now, Event::Leave);
    for latest in [900, 1_800, 3_600] {
        assert!(matches!(lock.ask(now), LockOp::Release { .. }));
        lock.fail(now, Failure::Passing);
        assert_eq!(lock.after(now)[1], latest * MS);
        now += u64::from(latest);
    }
}

#[test]
fn who_gives_back_twice_is_told_once_and_what_the_store_says() {
    let mut lock = Told::held();
    lock.handle(10, Event::Leave);
    assert_eq!(lock.ask(10), LockOp::Release { token: Some(TOKEN) });
    lock.handle(11, Event::Leave);
    assert!(lock.take().is_empty(), "nothing is known yet");
    lock.answer(12, LockAnswer::Released);
    assert_eq!(lock.take(), [Notice::Released(true)]);
}
