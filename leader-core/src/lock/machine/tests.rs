//! The machine alone, and several of them with a store and a network that loses, delays and repeats.

mod any_order;
mod asked;
mod ending;
mod turns;

use super::*;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::store::{LockKey, LockOp, LockOwner};

const MS: Duration = Duration::from_millis(1);
const TTL: Duration = Duration::from_secs(9);
const GUARD: Duration = Duration::from_millis(10);
const PLACE: Duration = Duration::from_secs(4);
const TOKEN: Term = Term::new(70);

fn rules(wait: Duration) -> Rules {
    Rules {
        ttl: TTL,
        guard: GUARD,
        renew: true,
        wait_until: at(0).saturating_add(wait),
        retry: 900 * MS,
        operation_timeout: Duration::from_secs(1),
        once: false,
        #[cfg(feature = "testing")]
        known_bad: None,
    }
}

/// So many milliseconds after the begin.
fn at(ms: u64) -> BootInstant {
    BootInstant::from_nanos((1_000_000 + ms) * 1_000_000)
}

fn owner(nonce: u128) -> LockOwner {
    let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
    LockOwner { candidate, nonce }
}

fn key() -> LockKey {
    LockKey::new("k").unwrap()
}

/// A machine, and what it had to say.
struct Told {
    machine: Machine,
    notices: Vec<Notice>,
}

impl Told {
    fn new(rules: Rules) -> Self {
        Self { machine: Machine::new(key(), owner(1), rules, at(0)), notices: Vec::new() }
    }

    /// One that was won at 0.
    fn held() -> Self {
        let mut told = Self::new(rules(Duration::ZERO));
        told.ask(0);
        told.answer(5, LockAnswer::Won { token: TOKEN });
        assert_eq!(told.take(), [Notice::Won(TOKEN)]);
        told
    }

    fn poll(&mut self, ms: u64) -> Option<LockOp> {
        let request = self.machine.poll(at(ms), Term::new(9), &mut self.notices);
        request.map(|request| request.command.op)
    }

    fn ask(&mut self, ms: u64) -> LockOp {
        self.poll(ms).unwrap_or_else(|| panic!("nothing is due: {:?}", self.machine))
    }

    fn handle(&mut self, ms: u64, event: Event) {
        self.machine.handle(at(ms), event, &mut self.notices);
    }

    fn answer(&mut self, ms: u64, answer: LockAnswer) {
        self.handle(ms, Event::Answered(self.machine.newest(), answer));
    }

    fn fail(&mut self, ms: u64, failure: Failure) {
        self.handle(ms, Event::Failed(self.machine.newest(), failure));
    }

    fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn is_held(&self, ms: u64) -> bool {
        self.machine.view(at(ms)).is_some()
    }

    /// The time of the next question, after the present one was answered at `ms`.
    fn after(&self, ms: u64) -> [Duration; 2] {
        let span = self.machine.next().unwrap();
        [span.earliest, span.latest].map(|instant| instant.saturating_since(at(ms)))
    }
}

fn acquire(queue: Option<Duration>) -> LockOp {
    LockOp::Acquire { floor: Term::new(9), queue, once: false }
}

fn busy(holder: bool, left: u64, ahead: u32) -> LockAnswer {
    let holder = holder.then(|| InstanceId::new("h").unwrap());
    LockAnswer::Busy(Busy { holder, token: None, remaining: MS * u32::try_from(left).unwrap(), ahead })
}

#[test]
fn a_deadline_counts_from_before_the_request_and_never_moves_back() {
    let mut lock = Told::new(rules(Duration::ZERO));
    lock.ask(100);
    lock.answer(600, LockAnswer::Won { token: TOKEN });
    assert!(lock.is_held(100 + 9_000 - 11) && !lock.is_held(100 + 9_000 - 10));
    assert_eq!(lock.after(100), [2_625 * MS, 3_000 * MS]);
    assert_eq!(lock.ask(3_000), LockOp::Renew { token: TOKEN });
    lock.answer(3_900, LockAnswer::Renewed);
    assert!(lock.is_held(3_000 + 9_000 - 11) && !lock.is_held(3_000 + 9_000 - 10));
    assert_eq!(lock.take(), [Notice::Won(TOKEN)]);
}

#[test]
fn without_a_wait_it_asks_once_and_stands_in_no_queue() {
    let mut lock = Told::new(rules(Duration::ZERO));
    assert_eq!(lock.ask(0), acquire(None));
    lock.answer(5, busy(true, 4_000, 0));
    assert!(matches!(lock.take()[..], [Notice::Busy(_)]) && lock.machine.is_gone());
}

#[test]
fn who_waits_keeps_its_place_and_leaves_it_with_its_last_question() {
    let mut lock = Told::new(rules(2_500 * MS));
    assert_eq!(lock.ask(0), acquire(Some(PLACE)));
    lock.answer(100, busy(true, 7_000, 3));
    assert_eq!(lock.after(100), [875 * MS, 1_000 * MS]);
    assert_eq!(lock.ask(1_100), acquire(Some(PLACE)));
    lock.answer(2_000, busy(true, 6_000, 3));
    assert_eq!(lock.after(2_000), [500 * MS, 500 * MS]);
    assert_eq!(lock.poll(2_499), None);
    assert_eq!(lock.ask(2_500), acquire(None));
    lock.answer(2_600, busy(true, 5_000, 3));
    assert!(matches!(lock.take()[..], [Notice::Busy(_)]) && lock.machine.is_gone());
}

#[test]
fn who_is_next_is_there_when_the_lock_ends_and_others_do_not_hurry() {
    for (answer, after) in [
        (busy(true, 300, 0), [301, 301]),
        (busy(true, 300, 1), [875, 1_000]),
        // The place of the first, who does not come, ends.
        (busy(false, 300, 1), [301, 301]),
        (busy(false, 300, 8), [301, 301]),
        (busy(false, 300, 9), [875, 1_000]),
        // A holder that tells nobody of its release.
        (busy(false, 5_000, 0), [250, 1_000]),
        (busy(false, 100, 0), [101, 101]),
    ] {
        let mut lock = Told::new(rules(60_000 * MS));
        lock.ask(0);
        lock.answer(10, answer.clone());
        assert_eq!(lock.after(10), after.map(|ms| MS * ms), "{answer:?}");
    }
}

#[test]
fn an_announcement_is_not_overheard() {
    let mut lock = Told::new(rules(60_000 * MS));
    lock.ask(0);
    // It may have come after the answer was given.
    lock.handle(5, Event::Announced);
    lock.answer(10, busy(true, 7_000, 0));
    assert_eq!(lock.ask(10), acquire(Some(PLACE)));
    lock.answer(20, busy(true, 7_000, 0));
    assert_eq!(lock.poll(30), None);
    lock.handle(30, Event::Announced);
    lock.ask(30);
    lock.answer(40, LockAnswer::Won { token: TOKEN });
    lock.handle(50, Event::Announced);
    assert_eq!(lock.poll(50), None);
}

#[test]
fn a_question_without_an_answer_is_asked_again_while_there_is_time_to_wait() {
    let mut lock = Told::new(rules(2_000 * MS));
    lock.ask(0);
    lock.fail(1_000, Failure::Passing);
    assert_eq!(lock.after(1_000), [450 * MS, 900 * MS]);
    lock.ask(1_900);
    lock.fail(2_000, Failure::Passing);
    assert_eq!(lock.take(), [Notice::Failed]);
    // It may have been won, or stand in the queue.
    assert_eq!(lock.ask(2_000), LockOp::Release { token: None });
}

#[test]
fn what_does_not_pass_is_told_at_once() {
    let mut lock = Told::new(rules(60_000 * MS));
    lock.ask(0);
    lock.fail(5, Failure::Permanent);
    assert_eq!(lock.take(), [Notice::Failed]);
    assert_eq!(lock.ask(5), LockOp::Release { token: None });
    lock.fail(10, Failure::Permanent);
    assert!(lock.machine.is_gone());
}

#[test]
fn a_failed_renewal_is_tried_again_until_the_deadline() {
    let mut lock = Told::held();
    lock.ask(3_000);
    lock.fail(4_000, Failure::Passing);
    assert!(lock.is_held(4_000));
    assert_eq!(lock.after(4_000), [450 * MS, 900 * MS]);
    lock.ask(4_900);
    lock.fail(5_900, Failure::Permanent);
    assert_eq!(lock.after(5_900), [450 * MS, 900 * MS], "a quarter of what is left is less");
    lock.ask(6_800);
    lock.fail(7_800, Failure::Passing);
    assert_eq!(lock.after(7_800), [450 * MS, 900 * MS]);
    lock.ask(8_700);
    assert_eq!(lock.machine.next(), Some(Span::at(at(8_990))), "it comes back when the view ends");
    assert_eq!(lock.poll(8_990), None);
    assert_eq!(lock.take(), [Notice::Lost(TOKEN, Loss::Expired)]);
    // Too late: what was told is not taken back. But the store may hold it for longer, and it is released in the end.
    lock.answer(8_995, LockAnswer::Renewed);
    assert!(!lock.is_held(8_995) && lock.machine.next().is_none());
    lock.handle(9_500, Event::Leave);
    assert_eq!(lock.ask(9_500), LockOp::Release { token: Some(TOKEN) });
    lock.answer(9_600, LockAnswer::Released);
    assert!(lock.machine.is_gone());
}

#[test]
fn a_renewal_that_is_confirmed_after_failures_goes_on() {
    let mut lock = Told::held();
    lock.ask(3_000);
    lock.fail(4_000, Failure::Passing);
    lock.ask(4_500);
    lock.answer(4_600, LockAnswer::Renewed);
    assert!(lock.is_held(13_489) && lock.take().is_empty());
}

#[test]
fn a_refused_renewal_ends_the_lock_at_once() {
    let mut lock = Told::held();
    lock.ask(3_000);
    lock.answer(3_100, LockAnswer::Lost);
    assert_eq!(lock.take(), [Notice::Lost(TOKEN, Loss::Refused)]);
    assert!(!lock.is_held(3_100) && lock.machine.is_gone());
}

#[test]
fn a_lock_that_is_not_renewed_ends_at_its_deadline() {
    let mut lock = Told::held();
    lock.handle(10, Event::StopRenewing);
    assert_eq!(lock.machine.next(), Some(Span::at(at(8_990))));
    assert_eq!(lock.poll(8_989), None);
    assert_eq!(lock.poll(8_990), None);
    assert_eq!(lock.take(), [Notice::Lost(TOKEN, Loss::Expired)]);
}

#[test]
fn an_answer_that_took_longer_than_the_lock_lasts_is_no_lock() {
    let late = 8_990;
    let mut patient = Told::new(rules(60_000 * MS));
    patient.ask(0);
    patient.answer(late, LockAnswer::Won { token: TOKEN });
    assert!(!patient.is_held(late) && patient.take().is_empty());
    assert_eq!(patient.ask(late), acquire(Some(PLACE)));
    let mut hasty = Told::new(rules(Duration::ZERO));
    hasty.ask(0);
    hasty.answer(late, LockAnswer::Won { token: TOKEN });
    assert_eq!(hasty.take(), [Notice::Late]);
    assert_eq!(hasty.ask(late), LockOp::Release { token: Some(TOKEN) });
}

#[test]
fn what_is_done_by_another_is_told() {
    let mut lock = Told::new(Rules { once: true, ..rules(60_000 * MS) });
    assert_eq!(lock.ask(0), LockOp::Acquire { floor: Term::new(9), queue: Some(PLACE), once: true });
    lock.answer(5, LockAnswer::Done);
    assert_eq!(lock.take(), [Notice::Done]);
    assert!(lock.machine.is_gone());
}

#[test]
fn a_late_answer_changes_nothing() {
    let mut lock = Told::held();
    lock.ask(3_000);
    let late = lock.machine.newest();
    lock.fail(4_000, Failure::Passing);
    lock.ask(4_900);
    lock.handle(4_950, Event::Answered(late, LockAnswer::Lost));
    lock.handle(4_960, Event::Failed(late, Failure::Permanent));
    assert!(lock.is_held(4_960) && lock.take().is_empty());
}

#[test]
fn an_answer_to_something_else_confirms_nothing() {
    let mut lock = Told::held();
    lock.ask(3_000);
    lock.answer(3_100, LockAnswer::Released);
    assert!(lock.is_held(3_100));
    assert_eq!(lock.poll(3_101), None, "it waits before it asks again");
}

#[test]
fn an_announcement_during_a_question_that_fails_is_not_forgotten() {
    let mut lock = Told::new(rules(60_000 * MS));
    lock.ask(0);
    lock.handle(500, Event::Announced);
    lock.fail(1_000, Failure::Passing);
    assert_eq!(lock.ask(1_000), acquire(Some(PLACE)));
    lock.fail(2_000, Failure::Passing);
    assert_eq!(lock.poll(2_001), None);
}
