//! Each rule by itself, on one job of a group that `a` leads.

mod lost_memory;
mod runs;
mod writing;

use super::super::record::Record;
use super::*;
use crate::group::GroupName;
use crate::identity::{Incarnation, InstanceId};
use crate::store::{JobName, RunEnd, RunOutcome};

/// The present, in seconds: a multiple of a minute.
const NOW: i64 = 6_000_000;
const SLOT: Duration = Duration::from_secs(10);
const S: u64 = 1_000_000;

pub(super) fn candidate(id: &str, incarnation: u128) -> Candidate {
    Candidate { id: InstanceId::new(id).unwrap(), incarnation: Incarnation::from_u128(incarnation) }
}

/// A store with one job in it.
struct Desk {
    record: Result<Option<Record>, &'static str>,
    now_us: u64,
    leader: Option<(Candidate, Term)>,
    identity: &'static str,
    lost: Option<i64>,
    other_last: Option<i64>,
    history: Vec<HistoryEvent>,
    /// Of the last decision.
    slot: Option<Duration>,
    was_nothing: bool,
}

impl Desk {
    fn empty() -> Self {
        Self {
            record: Ok(None),
            now_us: micros_of(NOW),
            leader: Some((candidate("a", 1), Term::new(7))),
            identity: "this",
            lost: Some(0),
            other_last: None,
            history: Vec::new(),
            slot: None,
            was_nothing: true,
        }
    }

    /// Registered a minute ago.
    fn new() -> Self {
        let mut desk = Self::empty();
        desk.now_us -= 60 * S;
        desk.ask(TickOp::Register { schedule: "s".to_owned(), known: None });
        desk.now_us += 60 * S;
        desk
    }

    fn ask(&mut self, op: TickOp) -> TickReply {
        self.ask_as(&candidate("a", 1), op)
    }

    fn ask_as(&mut self, candidate: &Candidate, op: TickOp) -> TickReply {
        let before = self.record.clone();
        let end = before.as_ref().ok().and_then(|record| record.as_ref()?.open.as_ref()).map(|run| run.slot_end_us);
        let leader = self.leader.clone();
        let seen = Seen {
            record: before,
            left: Duration::from_micros(end.unwrap_or(0).saturating_sub(self.now_us)),
            lease: leader.as_ref().map(|(who, term)| (who, *term)),
            now_us: self.now_us,
            identity: self.identity,
            lost: self.lost,
            other_last: Ok(self.other_last),
        };
        let command = TickCommand {
            group: GroupName::new("g").unwrap(),
            job: JobName::new("j").unwrap(),
            candidate: candidate.clone(),
            op,
        };
        let Decision { reply, change } = decide(seen, &command);
        (self.slot, self.was_nothing) = (change.slot, change.is_nothing());
        self.record = change.record.map_or(self.record.clone(), |record| Ok(Some(record)));
        self.other_last = change.other_last.or(self.other_last);
        self.lost = change.lost.or(self.lost);
        self.history.extend(change.notes);
        reply
    }

    fn record(&self) -> &Record {
        self.record.as_ref().unwrap().as_ref().unwrap()
    }

    fn pass(&mut self, seconds: u64) {
        self.now_us += seconds * S;
    }
}

/// A claim of the present tick by one that knows all.
fn claim() -> TickClaim {
    TickClaim {
        term: Term::new(7),
        tick: NOW,
        expect: NOW - 60,
        floor: 0,
        nonce: 1,
        not_after_us: u64::MAX,
        slot: SLOT,
        forbid: true,
        at_least_once: false,
        max_attempts: 3,
        retry_within: Duration::from_secs(3600),
        schedule: "s".to_owned(),
        missed: None,
        vouch: false,
        renamed_from: None,
    }
}

fn ask(claim: TickClaim) -> TickOp {
    TickOp::Claim(Box::new(claim))
}

fn run(tick: i64, attempt: u32) -> TickReply {
    TickReply::Run { tick, attempt }
}

fn end(nonce: u128) -> TickOp {
    let end =
        RunEnd { outcome: RunOutcome::Succeeded, message: String::new(), began_us: 5, took: Duration::from_millis(3) };
    TickOp::End { nonce, end }
}

#[test]
fn a_new_job_has_no_past_and_a_record_that_is_there_stays() {
    let mut desk = Desk::empty();
    assert_eq!(desk.ask(TickOp::Load), TickReply::Unknown);
    assert_eq!(desk.ask(ask(claim())), TickReply::Unknown);
    let register = |schedule: &str| TickOp::Register { schedule: schedule.to_owned(), known: None };
    let TickReply::Registered(first) = desk.ask(register("s")) else { panic!() };
    assert_eq!((first.since, first.last, first.floor), (NOW, NOW, 0));
    desk.pass(60);
    for again in [register("another"), TickOp::Register { schedule: "s".to_owned(), known: Some(0) }] {
        assert_eq!(desk.ask(again), TickReply::Registered(first.clone()));
    }
    assert_eq!(desk.ask(TickOp::Load), TickReply::Loaded(first));
    let expect = TickClaim { expect: NOW, ..claim() };
    assert_eq!(desk.ask(ask(expect.clone())), TickReply::Already { last: NOW, floor: 0 });
    assert_eq!(desk.ask(ask(TickClaim { tick: NOW + 60, ..expect })), run(NOW + 60, 1));
}

#[test]
fn a_claim_past_its_instant_does_nothing() {
    let mut desk = Desk::new();
    let late = |not_after_us| ask(TickClaim { not_after_us, ..claim() });
    assert_eq!(desk.ask(late(micros_of(NOW) - 1)), TickReply::Late);
    assert_eq!(desk.ask(late(micros_of(NOW))), run(NOW, 1));
}

#[test]
fn only_the_present_acquisition_of_the_lease_claims() {
    let mut desk = Desk::new();
    for (who, term) in [(candidate("b", 2), 7), (candidate("a", 2), 7), (candidate("a", 1), 6)] {
        let claim = ask(TickClaim { term: Term::new(term), ..claim() });
        assert_eq!(desk.ask_as(&who, claim), TickReply::Fenced);
    }
    let leader = desk.leader.take();
    assert_eq!(desk.ask(ask(claim())), TickReply::Fenced);
    desk.leader = leader;
    assert_eq!(desk.ask(ask(claim())), run(NOW, 1));
}

#[test]
fn a_tick_is_claimed_once_whoever_asks() {
    let mut desk = Desk::new();
    assert_eq!(desk.ask(ask(claim())), run(NOW, 1));
    desk.ask(end(1));
    let other = TickClaim { nonce: 2, ..claim() };
    assert_eq!(desk.ask(ask(other.clone())), TickReply::Moved { last: NOW });
    assert_eq!(desk.ask(ask(TickClaim { expect: NOW, ..other })), TickReply::Already { last: NOW, floor: 0 });
}

#[test]
fn who_walked_from_an_older_tick_is_told_the_last_one() {
    let mut desk = Desk::new();
    desk.pass(60);
    desk.ask(ask(TickClaim { tick: NOW + 60, ..claim() }));
    desk.ask(end(1));
    desk.pass(60);
    let slow = TickClaim { tick: NOW + 120, nonce: 2, ..claim() };
    assert_eq!(desk.ask(ask(slow.clone())), TickReply::Moved { last: NOW + 60 });
    assert_eq!(desk.ask(ask(TickClaim { expect: NOW + 60, ..slow })), run(NOW + 120, 1));
}

#[test]
fn a_tick_is_due_by_the_stores_clock_to_the_microsecond() {
    let mut desk = Desk::new();
    desk.now_us -= 1;
    assert_eq!(desk.ask(ask(claim())), TickReply::Early { left: Duration::from_micros(1) });
    desk.now_us += 1;
    assert_eq!(desk.ask(ask(claim())), run(NOW, 1));
}

#[test]
fn a_claim_whose_answer_was_lost_is_the_same_claim_with_its_slot_begun_anew() {
    let mut desk = Desk::new();
    desk.ask(ask(claim()));
    desk.pass(4);
    assert_eq!(desk.ask(ask(claim())), run(NOW, 1));
    assert_eq!(desk.record().open.as_ref().unwrap().slot_end_us, micros_of(NOW) + 14 * S);
    assert_eq!(desk.history.len(), 1);
    desk.ask(end(1));
    assert_eq!(desk.ask(ask(claim())), TickReply::Done);
}

#[test]
fn a_changed_schedule_counts_from_the_askers_registration() {
    let mut desk = Desk::new();
    let changed = TickClaim { schedule: "other".to_owned(), floor: NOW, ..claim() };
    assert_eq!(desk.ask(ask(changed.clone())), TickReply::Already { last: NOW - 60, floor: NOW });
    // The floor is nothing to the schedule that the record has.
    assert_eq!(desk.ask(ask(TickClaim { floor: NOW, ..claim() })), run(NOW, 1));
    desk.ask(end(1));
    desk.pass(1);
    let next = TickClaim { tick: NOW + 1, expect: NOW, nonce: 2, ..changed };
    assert_eq!(desk.ask(ask(next)), run(NOW + 1, 1));
    assert_eq!(desk.record().schedule, "other");
}

#[test]
fn the_last_tick_of_a_renamed_job_counts_and_is_raised_along() {
    let mut desk = Desk::new();
    desk.other_last = Some(NOW);
    assert_eq!(desk.ask(ask(claim())), TickReply::Already { last: NOW, floor: 0 });
    desk.pass(60);
    let next = TickClaim { tick: NOW + 60, expect: NOW, ..claim() };
    assert_eq!(desk.ask(ask(next)), run(NOW + 60, 1));
    assert_eq!(desk.other_last, Some(NOW + 60));
}

#[test]
fn a_paused_job_claims_nothing_until_then() {
    let mut desk = Desk::new();
    assert_eq!(Desk::empty().ask(TickOp::Resume), TickReply::Unknown);
    let pause = TickOp::Pause { until: NOW + 30, note: "in the release".to_owned() };
    assert_eq!(desk.ask(pause.clone()), TickReply::Changed);
    let paused = TickReply::Paused(crate::store::Pause { until: NOW + 30, note: "in the release".to_owned() });
    assert_eq!(desk.ask(ask(claim())), paused);
    desk.pass(30);
    let TickReply::Loaded(record) = desk.ask(TickOp::Load) else { panic!() };
    assert_eq!(record.paused.unwrap().until, NOW + 30, "whoever leads next has to know of it");
    assert_eq!(desk.ask(ask(claim())), run(NOW, 1));
    desk.ask(end(1));
    desk.ask(TickOp::Pause { until: i64::MAX, note: "é".repeat(150) });
    assert_eq!(desk.record().paused.as_ref().unwrap().until, TickOp::LATEST);
    assert_eq!(desk.record().paused.as_ref().unwrap().note.len(), 200);
    assert_eq!(desk.ask(TickOp::Resume), TickReply::Changed);
    assert_eq!(desk.record().paused.as_ref().unwrap().until, NOW + 30, "it has ended now");
    let next = TickClaim { tick: NOW + 10, expect: NOW, nonce: 2, ..claim() };
    assert_eq!(desk.ask(ask(next)), run(NOW + 10, 1));
}

#[test]
fn a_record_that_somebody_else_has_written_is_named_and_nothing_is_decided_by_it() {
    let mut desk = Desk::new();
    desk.record = Err("last");
    let corrupt = TickReply::Corrupt { field: "last" };
    for op in [ask(claim()), TickOp::Load, end(1), TickOp::Resume, TickOp::KeepSlot { nonce: 1, slot: SLOT }] {
        assert_eq!(desk.ask(op), corrupt);
    }
    assert_eq!(desk.ask(TickOp::Register { schedule: "s".to_owned(), known: None }), corrupt);
    assert!(desk.history.is_empty());
    // The term comes first: who does not lead has nothing to repair.
    assert_eq!(desk.ask_as(&candidate("b", 2), ask(claim())), TickReply::Fenced);
}

#[test]
fn what_is_given_up_with_a_claim_stands_before_it_in_the_history() {
    let mut desk = Desk::new();
    let missed = Missed { from: NOW - 50, count: 9, reason: "only the newest counts".to_owned() };
    let claim = TickClaim { missed: Some(missed.clone()), ..claim() };
    assert_eq!(desk.ask(ask(claim.clone())), run(NOW, 1));
    desk.ask(ask(claim));
    let instance = InstanceId::new("a").unwrap();
    let claimed = HistoryEvent::Claimed { tick: NOW, attempt: 1, instance };
    assert_eq!(desk.history, [HistoryEvent::Missed(missed), claimed]);
    let by_hand = HistoryEvent::GaveUp { tick: 1, attempts: 2 };
    assert_eq!(desk.ask(TickOp::Note(by_hand.clone())), TickReply::Noted);
    assert_eq!(desk.history[2], by_hand);
}
