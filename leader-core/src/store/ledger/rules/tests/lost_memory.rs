//! A store that may have forgotten claims: a tick may be lost, and never doubled.

use super::*;

/// A record from before the memory was lost, which was two minutes ago; since then nobody has claimed.
fn rolled_back() -> Desk {
    let mut desk = Desk::new();
    desk.ask(ask(claim()));
    desk.ask(end(1));
    desk.pass(240);
    (desk.identity, desk.lost) = ("another", Some(NOW + 120));
    desk
}

fn at(tick: i64) -> TickClaim {
    TickClaim { tick, expect: NOW, nonce: 2, ..claim() }
}

#[test]
fn what_may_have_been_claimed_and_forgotten_is_not_run() {
    let mut desk = rolled_back();
    let TickReply::Loaded(told) = desk.ask(TickOp::Load) else { panic!() };
    assert_eq!((told.last, told.floor), (NOW, NOW + 120));
    assert_eq!(desk.ask(ask(at(NOW + 120))), TickReply::Already { last: NOW, floor: NOW + 120 });
    assert_eq!(desk.ask(ask(at(NOW + 180))), run(NOW + 180, 1));
    // From then on the record is the truth.
    assert_eq!(desk.record().server, "another");
    let TickReply::Loaded(told) = desk.ask(TickOp::Load) else { panic!() };
    assert_eq!(told.floor, 0);
}

#[test]
fn who_has_led_all_the_time_vouches_for_what_it_knows() {
    let mut desk = rolled_back();
    let vouch = |tick, expect| ask(TickClaim { vouch: true, expect, ..at(tick) });
    assert_eq!(desk.ask(vouch(NOW + 60, NOW + 60)), TickReply::Already { last: NOW + 60, floor: 0 });
    assert_eq!(desk.ask(vouch(NOW + 120, NOW + 60)), run(NOW + 120, 1));
}

#[test]
fn at_least_once_runs_again_what_may_have_been_forgotten() {
    let mut desk = rolled_back();
    assert_eq!(desk.ask(ask(TickClaim { at_least_once: true, ..at(NOW + 60) })), run(NOW + 60, 1));
}

#[test]
fn a_vanished_record_begins_with_what_the_process_knows_and_only_who_vouches_runs_what_follows() {
    for vouch in [false, true] {
        let mut desk = Desk::empty();
        let TickReply::Registered(told) =
            desk.ask(TickOp::Register { schedule: "s".to_owned(), known: Some(NOW - 120) })
        else {
            panic!()
        };
        assert_eq!((told.since, told.last, told.floor), (NOW, NOW - 120, NOW));
        let claim = TickClaim { expect: NOW - 120, vouch, ..claim() };
        let expected = if vouch { run(NOW, 1) } else { TickReply::Already { last: NOW - 120, floor: NOW } };
        assert_eq!(desk.ask(ask(claim)), expected);
    }
    // What it knows cannot be later than now.
    let mut desk = Desk::empty();
    desk.ask(TickOp::Register { schedule: "s".to_owned(), known: Some(NOW + 60) });
    assert_eq!(desk.record().last, NOW);
}

#[test]
fn a_run_of_before_that_was_given_back_and_run_again_is_not_run_a_third_time() {
    for forbid in [false, true] {
        let mut desk = Desk::new();
        desk.ask(ask(TickClaim { forbid, ..claim() }));
        // Back to here: since then it was given back, and run. Whoever gave it back got no answer, and asks again.
        desk.pass(240);
        (desk.identity, desk.lost) = ("another", Some(NOW + 120));
        assert_eq!(desk.ask(ask(TickClaim { vouch: true, forbid, ..at(NOW + 180) })), run(NOW + 180, 1));
        assert_eq!(desk.ask(TickOp::GiveBack { nonce: 1, begun: false, keep: true }), TickReply::NotOpen);
        assert_eq!(desk.record().returned, []);
        // Nor will it ever be, if it never was: that stands in the history, unless it may still be on.
        let told = |event: &&HistoryEvent| matches!(event, HistoryEvent::Missed(missed) if missed.from == NOW);
        assert_eq!(desk.history.iter().filter(told).count(), usize::from(forbid));
    }
}

#[test]
fn the_first_claim_writes_down_since_when_the_store_is_another_one() {
    let mut desk = rolled_back();
    desk.lost = None;
    let TickReply::Loaded(told) = desk.ask(TickOp::Load) else { panic!() };
    assert_eq!((told.floor, desk.lost), (NOW + 240, None));
    assert_eq!(desk.ask(ask(at(NOW + 180))), TickReply::Already { last: NOW, floor: NOW + 240 });
    assert_eq!(desk.lost, Some(NOW + 240));
    desk.pass(60);
    assert_eq!(desk.ask(ask(at(NOW + 300))), run(NOW + 300, 1));
}

#[test]
fn a_tick_that_was_given_back_before_is_not_run_again_but_at_least_once() {
    for at_least_once in [false, true] {
        let mut desk = Desk::new();
        desk.ask(ask(claim()));
        desk.ask(TickOp::GiveBack { nonce: 1, begun: false, keep: true });
        desk.pass(240);
        (desk.identity, desk.lost) = ("another", Some(NOW + 120));
        let claim = TickClaim { at_least_once, vouch: true, ..at(NOW + 180) };
        let reply = desk.ask(ask(claim));
        if at_least_once {
            assert_eq!(reply, TickReply::Take { tick: NOW, attempts: 0 });
            continue;
        }
        assert_eq!(reply, run(NOW + 180, 1));
        assert_eq!(desk.record().returned, []);
        let [.., HistoryEvent::Missed(missed), _] = desk.history.as_slice() else { panic!() };
        assert_eq!((missed.from, missed.count), (NOW, 1));
    }
}
