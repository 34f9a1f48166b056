//! What a decision has a store write down, beside the record.

use super::*;

#[test]
fn each_decision_about_a_slot_says_how_long_it_lasts_from_then_on() {
    let mut desk = Desk::new();
    let run = TickReply::Run { tick: NOW, attempt: 1 };
    assert_eq!((desk.ask(TickOp::Claim(Box::new(claim()))), desk.slot), (run.clone(), Some(SLOT)));
    desk.pass(1);
    assert_eq!((desk.ask(TickOp::Claim(Box::new(claim()))), desk.slot), (run, Some(SLOT)), "asked again");
    let longer = SLOT + Duration::from_secs(1);
    assert_eq!((desk.ask(TickOp::KeepSlot { nonce: 1, slot: longer }), desk.slot), (TickReply::Kept, Some(longer)));
    desk.pass(4);
    let other = || TickOp::Claim(Box::new(TickClaim { nonce: 2, ..claim() }));
    let TickReply::Busy { left, .. } = desk.ask(other()) else { panic!("it is on") };
    assert_eq!((left, desk.slot), (Duration::from_secs(7), None), "nothing about it is new");
    // The clock was set back by an hour: the slot cannot have been set to last for so long.
    desk.now_us -= 3600 * S;
    let TickReply::Busy { left, .. } = desk.ask(other()) else { panic!("it is on") };
    assert_eq!((left, desk.slot), (longer, Some(longer)));
}

#[test]
fn a_decision_that_changes_nothing_says_so() {
    let mut desk = Desk::new();
    assert!(!desk.was_nothing, "a record was begun");
    desk.ask(TickOp::Load);
    assert!(desk.was_nothing);
    desk.ask(TickOp::Claim(Box::new(claim())));
    assert!(!desk.was_nothing);
}

#[test]
fn what_happened_outside_of_the_ticks_is_noted_whatever_the_record_is() {
    let end = RunEnd { outcome: RunOutcome::Succeeded, message: String::new(), began_us: 0, took: Duration::ZERO };
    let event = HistoryEvent::Manual { instance: candidate("a", 1).id, end };
    let mut desk = Desk { record: Err("open"), ..Desk::empty() };
    assert_eq!(desk.ask(TickOp::Note(event.clone())), TickReply::Noted);
    assert_eq!(desk.history, [event]);
    assert_eq!(desk.ask(TickOp::Load), TickReply::Corrupt { field: "open" });
}

#[test]
fn a_pause_that_has_ended_by_itself_keeps_its_end() {
    let mut desk = Desk::new();
    desk.ask(TickOp::Pause { until: NOW + 10, note: String::new() });
    desk.pass(20);
    assert_eq!(desk.ask(TickOp::Resume), TickReply::Changed);
    assert_eq!(desk.record().paused.as_ref().map(|pause| pause.until), Some(NOW + 10));
    assert!(desk.was_nothing);
}

#[test]
fn a_run_that_died_is_taken_over_up_to_the_very_end_of_its_time_for_that() {
    for (later, expected) in [
        (3600 * S, TickReply::Run { tick: NOW, attempt: 2 }),
        (3600 * S + 1, TickReply::Over { tick: NOW, attempts: 1 }),
    ] {
        let mut desk = Desk::new();
        let claim = |nonce| TickOp::Claim(Box::new(TickClaim { nonce, at_least_once: true, ..claim() }));
        assert_eq!(desk.ask(claim(1)), TickReply::Run { tick: NOW, attempt: 1 });
        desk.now_us += 10 * S + later;
        assert_eq!(desk.ask(claim(2)), expected, "{later}");
    }
}
