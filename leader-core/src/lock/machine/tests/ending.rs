//! How an attempt, or a lock, ends: what is given back, and what is noted.

use super::*;

#[test]
fn what_was_given_up_while_it_was_asked_for_is_released_whatever_the_answer() {
    for (wait, answer, release) in [
        (0, Some(LockAnswer::Won { token: TOKEN }), Some(LockOp::Release { token: Some(TOKEN) })),
        (0, Some(busy(true, 5_000, 0)), None),
        (9_000, Some(busy(true, 5_000, 0)), Some(LockOp::Release { token: None })),
        (9_000, Some(LockAnswer::Done), None),
        (0, None, Some(LockOp::Release { token: None })),
    ] {
        let mut lock = Told::new(Rules { once: true, ..rules(MS * wait) });
        lock.ask(0);
        lock.handle(1, Event::Leave);
        assert_eq!(lock.poll(2), None, "one request at a time");
        match answer {
            Some(answer) => lock.answer(5, answer),
            None => lock.fail(5, Failure::Passing),
        }
        assert!(!lock.is_held(5) && lock.take().is_empty());
        assert_eq!(lock.poll(5), release);
        assert_eq!(lock.machine.is_gone(), release.is_none());
    }
    let mut never_asked = Told::new(rules(Duration::ZERO));
    never_asked.handle(0, Event::Leave);
    assert!(never_asked.machine.is_gone());
}

#[test]
fn who_stops_waiting_leaves_the_queue() {
    let mut lock = Told::new(rules(9_000 * MS));
    lock.ask(0);
    lock.answer(5, busy(true, 5_000, 0));
    lock.handle(10, Event::Leave);
    assert_eq!(lock.ask(10), LockOp::Release { token: None });
    lock.answer(15, LockAnswer::NotHeld);
    assert!(lock.machine.is_gone());
}

#[test]
fn after_an_answer_was_lost_it_is_released_once_more() {
    let mut lock = Told::new(rules(9_000 * MS));
    lock.ask(0);
    lock.fail(1_000, Failure::Passing);
    lock.ask(2_000);
    lock.answer(2_010, LockAnswer::Won { token: TOKEN });
    lock.handle(2_020, Event::Leave);
    assert_eq!(lock.ask(2_020), LockOp::Release { token: Some(TOKEN) });
    lock.answer(2_030, LockAnswer::Released);
    assert_eq!(lock.take(), [Notice::Won(TOKEN), Notice::Released(true)]);
    assert!(!lock.machine.is_taking_leave(), "nobody has to wait for that");
    assert_eq!(lock.poll(2_031), None);
    assert_eq!(lock.ask(2_930), LockOp::Release { token: None });
    lock.answer(2_940, LockAnswer::Released);
    assert!(lock.take().is_empty() && lock.machine.is_gone());
}

#[test]
fn a_release_is_tried_until_the_lock_would_have_ended() {
    let mut lock = Told::held();
    lock.handle(10, Event::Leave);
    assert!(lock.machine.is_taking_leave());
    let mut now = 10;
    while !lock.machine.is_gone() {
        assert_eq!(lock.ask(now), LockOp::Release { token: Some(TOKEN) });
        now += 1_000;
        lock.fail(now, Failure::Passing);
        now += 4_500;
    }
    assert!(now > 9_000);
    assert_eq!(lock.take(), [Notice::NotReleased], "it is told once");
}

#[test]
fn a_completion_is_tried_until_the_deadline() {
    let mut lock = Told::held();
    lock.handle(100, Event::Complete(Some(TTL)));
    assert_eq!(lock.ask(100), LockOp::Complete { token: TOKEN, keep: Some(TTL) });
    lock.fail(1_100, Failure::Passing);
    // Nobody waits for it any more; it is done all the same.
    lock.handle(1_200, Event::Leave);
    lock.ask(2_000);
    lock.answer(2_100, LockAnswer::Completed);
    assert_eq!(lock.take(), [Notice::Completed]);
    assert!(lock.machine.is_gone());

    let mut lost = Told::held();
    lost.handle(100, Event::Complete(None));
    lost.ask(100);
    lost.answer(110, LockAnswer::Lost);
    assert_eq!(lost.take(), [Notice::NotCompleted]);

    let mut away = Told::held();
    away.handle(8_000, Event::Complete(None));
    away.ask(8_000);
    assert_eq!(away.machine.next(), None);
    away.fail(9_000, Failure::Passing);
    assert_eq!(away.take(), [Notice::Unconfirmed(TOKEN)]);
    assert_eq!(away.ask(9_000), LockOp::Release { token: Some(TOKEN) });
}

#[test]
fn what_was_lost_is_not_completed() {
    let mut lock = Told::held();
    lock.handle(8_990, Event::Complete(None));
    assert_eq!(lock.take(), [Notice::Lost(TOKEN, Loss::Expired), Notice::NotCompleted]);
    assert_eq!(lock.poll(8_990), None);
}

#[test]
fn who_gives_back_what_was_refused_is_told_so_also_if_something_is_left_to_release() {
    let mut lock = Told::new(rules(9_000 * MS));
    lock.ask(0);
    lock.fail(1_000, Failure::Passing);
    lock.ask(2_000);
    lock.answer(2_010, LockAnswer::Won { token: TOKEN });
    lock.ask(5_000);
    lock.answer(5_010, LockAnswer::Lost);
    assert_eq!(lock.take(), [Notice::Won(TOKEN), Notice::Lost(TOKEN, Loss::Refused)]);
    // The first acquire may still come: what it takes is released.
    assert!(!lock.machine.is_gone());
    lock.handle(5_020, Event::Leave);
    assert_eq!(lock.take(), [Notice::Released(false)]);
    assert_eq!(lock.ask(5_020), LockOp::Release { token: None });
}

#[test]
fn what_could_not_be_given_back_is_when_the_store_is_there_again() {
    let long = Rules { ttl: Duration::from_secs(3_600), ..rules(Duration::ZERO) };
    let mut lock = Told::new(long);
    lock.ask(0);
    lock.answer(5, LockAnswer::Won { token: TOKEN });
    lock.handle(10, Event::Leave);
    let mut now = 10;
    for _ in 0..20 {
        assert_eq!(lock.ask(now), LockOp::Release { token: Some(TOKEN) });
        now += 1_000;
        lock.fail(now, Failure::Passing);
        // Others wait for it.
        assert!(lock.after(now)[1] <= Duration::from_secs(10));
        now += 10_000;
    }
    lock.ask(now);
    lock.fail(now + 1_000, Failure::Passing);
    assert_eq!(lock.poll(now + 1_001), None);
    assert!(lock.machine.is_retrying());
    lock.handle(now + 1_001, Event::Announced);
    assert_eq!(lock.ask(now + 1_001), LockOp::Release { token: Some(TOKEN) });
}
