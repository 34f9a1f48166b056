//! One course under scripted answers: each promise by itself.

mod by_hand;
mod memory;
mod renamed;
#[cfg(feature = "tokio-cron-scheduler")]
mod rings;
mod unsure;

use leader_core::store::{
    HistoryEvent, JobName, JobRecord, OpenRun, ReturnedTick, RunOutcome, TickAnswer, TickClaim, TickReply,
};
use leader_core::{Candidate, Incarnation, InstanceId};

use super::*;
use crate::plan::{Gap, Reason};
use crate::policy::{Missed, Overlap};

/// A round hour.
const START: i64 = 1_800_000_000;
const OPERATION: Duration = Duration::from_secs(1);
const RULES: Rules =
    Rules { slot: Duration::from_secs(10), guard: Duration::from_millis(10), operation_timeout: OPERATION };

/// A job each minute on one instance, with a store that says what the test wants. The store's clock shows [`START`] when the
/// boot clock shows an hour.
struct Bench {
    course: Course,
    now: BootInstant,
    notices: Vec<Notice>,
    nonces: u128,
}

impl Bench {
    fn new(policy: Policy) -> Self {
        let schedule = Schedule::parse("0 * * * * *", None).unwrap();
        let now = BootInstant::from_nanos(3_600_000_000_000);
        Self { course: Course::new(schedule, policy, 7, RULES), now, notices: Vec::new(), nonces: 0 }
    }

    /// One that leads, and has loaded a record whose last tick is [`START`].
    fn leading(policy: Policy) -> Self {
        let mut bench = Self::new(policy);
        bench.register();
        bench.lead(1);
        let load = bench.sent();
        bench.answer(load.no, TickReply::Loaded(record()));
        bench
    }

    fn register(&mut self) {
        let register = self.sent();
        assert!(matches!(register.op, TickOp::Register { .. }), "{register:?}");
        self.answer(register.no, TickReply::Registered(record()));
    }

    fn lead(&mut self, term: u64) {
        self.course.led(self.now, Term::new(term), Term::new(term));
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.saturating_add(Duration::from_millis(millis));
    }

    fn store_us(&self) -> u64 {
        let since = self.now.saturating_since(BootInstant::from_nanos(3_600_000_000_000));
        START as u64 * 1_000_000 + since.as_micros() as u64
    }

    fn poll(&mut self) -> Poll {
        let clock = StoreClock::new(self.now, self.store_us());
        let nonces = &mut self.nonces;
        let mut nonce = || {
            *nonces += 1;
            *nonces
        };
        self.course.poll(self.now, Some(&clock), &mut nonce, &mut self.notices)
    }

    /// What is asked now.
    fn sent(&mut self) -> Request {
        match self.poll() {
            Poll::Send(request) => request,
            other => panic!("nothing is asked: {other:?}"),
        }
    }

    fn claims(&mut self) -> (u64, TickClaim) {
        match self.sent() {
            Request { no, op: TickOp::Claim(claim), .. } => (no, *claim),
            other => panic!("no claim: {other:?}"),
        }
    }

    /// How long nothing is asked.
    fn waits(&mut self) -> Duration {
        match self.poll() {
            Poll::Wait(at) => at.saturating_since(self.now),
            other => panic!("does not wait: {other:?}"),
        }
    }

    fn answer(&mut self, no: u64, reply: TickReply) {
        let answer = TickAnswer { now_us: self.store_us(), reply };
        self.course.answered(self.now, no, &answer, &mut self.notices);
    }

    /// No answer comes in time.
    fn time_out(&mut self, no: u64) {
        self.now = self.now.saturating_add(OPERATION);
        self.course.failed(self.now, no, Failure::Passing);
        self.pass(100);
    }

    /// The history is told of ticks that are not run.
    fn notes(&mut self, gap: &Gap) {
        let note = self.sent();
        let TickOp::Note(HistoryEvent::Missed(missed)) = &note.op else { panic!("no note: {note:?}") };
        assert_eq!((missed.from, missed.count, missed.reason.clone()), (gap.from, gap.count, gap.reason.to_string()));
        self.answer(note.no, TickReply::Noted);
    }

    /// Claims the tick that is due, and begins to run it.
    fn runs(&mut self) -> Claimed {
        let (no, claim) = self.claims();
        self.answer(no, TickReply::Run { tick: claim.tick, attempt: 1 });
        match self.notices.pop() {
            Some(Notice::Run(claimed)) => claimed,
            other => panic!("no run: {other:?}"),
        }
    }
}

fn record() -> JobRecord {
    JobRecord {
        since: START - 86_400,
        last: START,
        floor: 0,
        schedule: "0 * * * * * UTC".to_owned(),
        open: None,
        unended: Vec::new(),
        returned: Vec::new(),
        paused: None,
    }
}

/// A run of another instance, a minute old.
fn open(left: Duration) -> OpenRun {
    OpenRun {
        tick: START,
        attempt: 1,
        nonce: 77,
        began_us: (START as u64 - 60) * 1_000_000,
        left,
        term: Term::new(1),
        holder: Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) },
    }
}

fn all() -> Policy {
    Policy { missed: Missed::All, ..Policy::DEFAULT }
}

fn least() -> Policy {
    Policy { delivery: Delivery::AtLeastOnce, ..all() }
}

fn end() -> RunEnd {
    RunEnd { outcome: RunOutcome::Succeeded, message: String::new(), began_us: 0, took: Duration::ZERO }
}

#[test]
fn a_tick_is_claimed_when_it_is_due_run_once_and_its_end_told() {
    let mut bench = Bench::leading(all());
    assert!(bench.waits() <= Duration::from_secs(60));
    bench.pass(60_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let claimed = bench.runs();
    assert_eq!((claimed.tick, claimed.attempt), (START + 60, 1));
    bench.course.ended(claimed.nonce, end(), false);
    let told = bench.sent();
    assert_eq!(told.op, TickOp::End { nonce: claimed.nonce, end: end() });
    assert!(!bench.course.is_settled(claimed.nonce));
    bench.answer(told.no, TickReply::Ended);
    assert!(bench.course.is_settled(claimed.nonce) && bench.course.is_quiet());
}

#[test]
fn the_end_of_a_run_is_told_until_it_is_confirmed() {
    let mut bench = Bench::leading(all());
    bench.pass(29_000);
    bench.pass(31_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let claimed = bench.runs();
    bench.course.ended(claimed.nonce, end(), false);
    bench.course.unled();
    for _ in 0..3 {
        let told = bench.sent();
        assert_eq!(told.op, TickOp::End { nonce: claimed.nonce, end: end() });
        bench.time_out(told.no);
        bench.pass(10_000);
    }
}

#[test]
fn a_run_whose_slot_is_not_kept_is_cut_before_the_slot_ends_also_while_an_answer_is_missing() {
    let mut bench = Bench::leading(all());
    bench.pass(60_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let claimed = bench.runs();
    let began = bench.now;
    bench.pass(9_500);
    let keep = bench.sent();
    assert!(matches!(keep.op, TickOp::KeepSlot { .. }), "{keep:?}");
    // After a request there is something to come back for.
    let waits = bench.waits();
    assert_eq!(bench.now.saturating_add(waits), began.saturating_add(RULES.slot - RULES.guard));
    bench.pass(490);
    bench.poll();
    assert_eq!(bench.notices, [Notice::Cut(claimed.nonce)]);
}

#[test]
fn what_a_pause_swallows_is_told_when_it_ends() {
    let mut bench = Bench::leading(all());
    bench.pass(60_000);
    let look = bench.sent();
    let pause = leader_core::store::Pause { until: START + 150, note: String::new() };
    bench.answer(look.no, TickReply::Loaded(JobRecord { paused: Some(pause), ..record() }));
    assert!(bench.waits() <= Duration::from_secs(30));
    bench.pass(90_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let gap = Gap { from: START + 60, count: 2, reason: Reason::Paused };
    assert_eq!(bench.notices, [Notice::Paused(START + 150), Notice::Missed(gap)]);
    bench.notes(&gap);
    bench.pass(30_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    assert_eq!(bench.claims().1.tick, START + 180);
}

#[test]
fn a_tick_that_was_given_back_is_put_away_once_it_is_older_than_the_job_runs() {
    for (missed, later, old) in [(Missed::Skip, 5, false), (Missed::Skip, 7, true), (Missed::All, 7, false)] {
        let mut bench = Bench::leading(Policy { missed, ..Policy::DEFAULT });
        bench.pass(60_000 + later * 1_000);
        let look = bench.sent();
        let returned = vec![ReturnedTick { tick: START + 60, attempts: 0 }];
        bench.answer(look.no, TickReply::Loaded(JobRecord { last: START + 60, returned, ..record() }));
        let (no, claim) = bench.claims();
        assert_eq!(claim.tick, START + 60);
        bench.answer(no, TickReply::Run { tick: claim.tick, attempt: 1 });
        let told = bench.notices.pop();
        if old {
            let gap = Gap { from: START + 60, count: 1, reason: Reason::TooOld };
            assert_eq!(told, Some(Notice::Missed(gap)), "{missed:?}, {later} s");
            let end = bench.sent();
            assert!(matches!(end.op, TickOp::End { .. }));
            bench.answer(end.no, TickReply::Ended);
            bench.notes(&gap);
        } else {
            assert!(matches!(told, Some(Notice::Run(_))), "{missed:?}, {later} s: {told:?}");
        }
    }
}

#[test]
fn what_is_too_old_is_told_at_once_and_again_with_the_next_claim() {
    let mut bench = Bench::leading(Policy { missed: Missed::Skip, ..Policy::DEFAULT });
    bench.pass(67_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let gap = Gap { from: START + 60, count: 1, reason: Reason::TooOld };
    for told in [vec![Notice::TooOld(gap)], vec![]] {
        assert!(matches!(bench.poll(), Poll::Wait(_)));
        assert_eq!(std::mem::take(&mut bench.notices), told);
        bench.pass(1_000);
    }
    bench.pass(51_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let (no, claim) = bench.claims();
    bench.answer(no, TickReply::Run { tick: claim.tick, attempt: 1 });
    assert_eq!((claim.tick, bench.notices.first()), (START + 120, Some(&Notice::Missed(gap))));
}

#[test]
fn at_least_once_an_own_run_is_not_taken_for_one_that_died() {
    let mut bench = Bench::leading(least());
    bench.pass(60_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let claimed = bench.runs();
    bench.pass(3_000);
    bench.course.unled();
    bench.lead(2);
    let load = bench.sent();
    let open = OpenRun { tick: claimed.tick, nonce: claimed.nonce, ..open(Duration::ZERO) };
    bench.answer(load.no, TickReply::Loaded(JobRecord { last: claimed.tick, open: Some(open), ..record() }));
    assert!(bench.waits() > Duration::ZERO);
}

#[test]
fn a_give_back_that_comes_too_late_is_told_to_the_history() {
    let mut bench = Bench::leading(Policy::DEFAULT);
    bench.pass(60_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let claimed = bench.runs();
    bench.course.refused(claimed.nonce);
    let back = bench.sent();
    assert!(matches!(back.op, TickOp::GiveBack { begun: false, .. }), "{back:?}");
    bench.answer(back.no, TickReply::Superseded { tick: claimed.tick });
    assert_eq!(bench.notices, [Notice::Superseded(claimed.tick)]);
    assert!(bench.course.is_settled(claimed.nonce), "who waits for the run does not wait for the history");
    bench.notes(&Gap { from: claimed.tick, count: 1, reason: Reason::Coalesced });
}

#[test]
fn a_record_that_is_ahead_of_the_stores_clock_is_told_of_once() {
    let mut bench = Bench::leading(all());
    for (passes, last, told) in [(30, 300, true), (30, 300, false), (200, 300, false), (30, 3_600, true)] {
        bench.pass(passes * 1_000);
        let look = bench.sent();
        bench.answer(look.no, TickReply::Loaded(JobRecord { last: START + last, ..record() }));
        let notices = std::mem::take(&mut bench.notices);
        assert_eq!(matches!(notices.as_slice(), [Notice::Ahead { .. }]), told, "{last}: {notices:?}");
        assert!(told || notices.is_empty(), "{notices:?}");
    }
}

#[test]
fn a_line_of_the_history_that_is_refused_holds_up_no_tick() {
    let mut bench = Bench::leading(all());
    bench.pass(60_000);
    let look = bench.sent();
    let pause = leader_core::store::Pause { until: START + 61, note: String::new() };
    bench.answer(look.no, TickReply::Loaded(JobRecord { paused: Some(pause), ..record() }));
    bench.pass(60_000);
    let look = bench.sent();
    bench.answer(look.no, TickReply::Loaded(record()));
    let note = bench.sent();
    assert!(matches!(note.op, TickOp::Note(_)), "{note:?}");
    assert!(!bench.course.failed(bench.now, note.no, Failure::Permanent));
    assert_eq!(bench.claims().1.tick, START + 120);
}
