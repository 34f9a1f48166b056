//! One test a promise; what interleavings do is for the simulation and the exhaustive model.

mod any_order;
mod borders;
mod same_id;
mod standing;

use std::time::Duration;

use super::*;
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::store::{Op, SameId, Won};

const TTL: u64 = 10_000;
const GUARD: u64 = 100;
const HEARTBEAT: u64 = 3_000;
const RETRY: u64 = 1_000;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn rules() -> Rules {
    Rules {
        ttl: ms(TTL),
        guard: ms(GUARD),
        heartbeat: ms(HEARTBEAT),
        retry: ms(RETRY),
        renewal_failure: RenewalFailure::DemoteAtOnce,
        reclaim: Reclaim::AtOnce,
        observe: false,
        #[cfg(feature = "testing")]
        known_bad: None,
    }
}

/// An election with a clock of its own, in milliseconds.
struct Bench {
    election: Election,
    now: u64,
    notices: Vec<Notice>,
}

/// An instant in milliseconds; the clock stands at 1000 s when a bench begins.
fn at(millis: u64) -> BootInstant {
    BootInstant::from_nanos((1_000_000 + millis) * 1_000_000)
}

impl Bench {
    fn new(rules: Rules) -> Self {
        let group = GroupName::new("default").unwrap();
        let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
        Self { election: Election::new(group, candidate, rules, at(0)), now: 0, notices: Vec::new() }
    }

    /// A leader under this term, whose request left at 0 and was answered at 10 ms.
    fn leader(rules: Rules) -> Self {
        let mut bench = Self::new(rules);
        bench.acquire(10, won(7));
        assert_eq!(bench.term(), Some(7));
        bench
    }

    fn poll(&mut self, now: u64) -> Option<Op> {
        self.now = now;
        self.election.poll(at(now), &mut self.notices).map(|request| request.command.op)
    }

    fn event(&mut self, now: u64, event: Event) {
        self.now = now;
        self.election.handle(at(now), event, &mut self.notices);
    }

    /// Answers the newest request.
    fn answer(&mut self, now: u64, answer: Answer) {
        self.event(now, Event::Answered(self.newest(), answer));
    }

    fn fail(&mut self, now: u64) {
        self.event(now, Event::Failed(self.newest(), Failure::Passing));
    }

    /// Asks at once, and gets this answer.
    fn acquire(&mut self, now: u64, answer: Answer) {
        assert!(matches!(self.poll(self.now), Some(Op::Acquire { .. })));
        self.answer(now, answer);
    }

    fn newest(&self) -> RequestNo {
        self.election.newest()
    }

    fn term(&self) -> Option<u64> {
        self.term_at(self.now)
    }

    fn term_at(&self, now: u64) -> Option<u64> {
        self.election.view(at(now)).map(|(term, _)| term.get())
    }

    fn deadline(&self) -> Option<BootInstant> {
        self.election.view(at(self.now)).map(|(_, deadline)| deadline)
    }

    fn told(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

fn won(term: u64) -> Answer {
    Answer::Won(Won { term: Term::new(term), in_quarantine: false, older_lease: Duration::ZERO })
}

fn won_in_quarantine(term: u64) -> Answer {
    Answer::Won(Won { term: Term::new(term), in_quarantine: true, older_lease: Duration::ZERO })
}

fn taken_over(term: u64, older_lease: u64) -> Answer {
    Answer::Won(Won { term: Term::new(term), in_quarantine: false, older_lease: ms(older_lease) })
}

fn held(remaining: u64) -> Held {
    Held {
        holder: InstanceId::new("b").unwrap(),
        term: Some(Term::new(9)),
        remaining: ms(remaining),
        same_id: false,
        foreign: false,
    }
}

#[test]
fn the_deadline_counts_from_the_send() {
    let mut bench = Bench::new(rules());
    assert!(bench.poll(0).is_some());
    bench.answer(900, won(7));
    assert_eq!(bench.deadline(), Some(at(TTL - GUARD)));
    assert!(bench.poll(900 + HEARTBEAT).is_some());
    bench.answer(900 + HEARTBEAT + 500, Answer::Renewed);
    assert_eq!(bench.deadline(), Some(at(900 + HEARTBEAT + TTL - GUARD)));
}

#[test]
fn a_view_ends_at_its_deadline_without_any_event() {
    let bench = Bench::leader(rules());
    assert_eq!(bench.term_at(TTL - GUARD - 1), Some(7));
    assert_eq!(bench.term_at(TTL - GUARD), None);
}

#[test]
fn an_answer_that_comes_after_its_own_deadline_gives_no_view() {
    let mut bench = Bench::new(rules());
    assert!(bench.poll(0).is_some());
    bench.answer(TTL, won(7));
    assert_eq!(bench.term(), None);
    assert_eq!(bench.told(), []);
    assert!(matches!(bench.poll(TTL), Some(Op::Acquire { .. })));
}

#[test]
fn a_late_answer_changes_nothing() {
    let mut bench = Bench::new(rules());
    assert!(bench.poll(0).is_some());
    let first = bench.newest();
    bench.fail(2_000);
    bench.event(2_100, Event::Answered(first, won(7)));
    assert_eq!(bench.term(), None);
    assert!(bench.poll(3_000).is_some());
    bench.event(3_100, Event::Answered(first, won(7)));
    assert_eq!(bench.term(), None);
    bench.answer(3_200, won(8));
    assert_eq!(bench.term(), Some(8));
    bench.event(3_300, Event::Answered(first, won(7)));
    bench.event(3_300, Event::Failed(first, Failure::Passing));
    assert_eq!(bench.term(), Some(8));
}

#[test]
fn a_deadline_never_moves_back() {
    let mut bench = Bench::leader(rules());
    let mut last = bench.deadline();
    for round in 1..5 {
        let now = round * HEARTBEAT;
        assert!(bench.poll(now).is_some());
        bench.answer(now + 900, Answer::Renewed);
        assert!(bench.deadline() > last);
        last = bench.deadline();
    }
}

#[test]
fn a_failed_renewal_demotes_at_once() {
    let mut bench = Bench::leader(rules());
    assert!(bench.poll(HEARTBEAT).is_some());
    bench.told();
    bench.fail(HEARTBEAT + 1_000);
    assert_eq!(bench.term(), None);
    assert_eq!(bench.told(), [Notice::Lost(Term::new(7), LossReason::RenewalFailed)]);
}

#[test]
fn a_failed_renewal_can_hold_until_the_deadline() {
    let mut bench = Bench::leader(Rules { renewal_failure: RenewalFailure::HoldUntilDeadline, ..rules() });
    assert!(bench.poll(HEARTBEAT).is_some());
    bench.fail(HEARTBEAT + 1_000);
    assert_eq!(bench.term(), Some(7));
    assert_eq!(bench.poll(HEARTBEAT + 2_000), Some(Op::Renew { term: Term::new(7) }));
    bench.told();
    assert_eq!(bench.poll(TTL - GUARD), None);
    assert_eq!(bench.told(), [Notice::Lost(Term::new(7), LossReason::Expired)]);
}

#[test]
fn a_renewal_that_comes_after_the_deadline_brings_no_view_back() {
    let mut bench = Bench::leader(Rules { renewal_failure: RenewalFailure::HoldUntilDeadline, ..rules() });
    assert!(bench.poll(9_000).is_some());
    bench.answer(TTL - GUARD, Answer::Renewed);
    assert_eq!(bench.term(), None);
    assert!(matches!(bench.poll(TTL - GUARD), Some(Op::Acquire { .. })));
}

#[test]
fn a_view_whose_end_was_seen_comes_back_under_a_new_term_only() {
    let mut bench = Bench::leader(Rules { renewal_failure: RenewalFailure::HoldUntilDeadline, ..rules() });
    assert!(matches!(bench.poll(HEARTBEAT), Some(Op::Renew { .. })));
    bench.answer(TTL - GUARD - 1, Answer::Renewed);
    bench.event(TTL - GUARD - 1, Event::Lapsed);
    assert_eq!(bench.term(), None);
    assert_eq!(bench.told().last(), Some(&Notice::Lost(Term::new(7), LossReason::Expired)));
    assert!(matches!(bench.poll(TTL - GUARD), Some(Op::Acquire { continues: true, .. })));
    bench.answer(TTL - GUARD + 1, won(8));
    assert_eq!(bench.term(), Some(8));
}

#[test]
fn a_refused_renewal_demotes_and_asks_again_at_once() {
    for renewal_failure in [RenewalFailure::DemoteAtOnce, RenewalFailure::HoldUntilDeadline] {
        let mut bench = Bench::leader(Rules { renewal_failure, ..rules() });
        assert!(bench.poll(HEARTBEAT).is_some());
        bench.answer(HEARTBEAT + 10, Answer::Lost { duplicate: false });
        assert_eq!(bench.term(), None);
        assert!(matches!(bench.poll(HEARTBEAT + 10), Some(Op::Acquire { continues: true, .. })));
    }
}

#[test]
fn the_first_retry_comes_within_retry_and_backs_off_from_the_second_to_the_ttl() {
    let mut bench = Bench::new(rules());
    let mut most = RETRY;
    for _ in 0..8 {
        assert!(bench.poll(bench.now).is_some());
        bench.fail(bench.now);
        // Jitter only shortens.
        let (earliest, latest) = (at(bench.now + most / 2), at(bench.now + most));
        assert_eq!(bench.election.next(), Next::Retry { earliest, latest });
        assert_eq!(bench.poll(bench.now + most / 2 - 1), None);
        bench.now += most;
        most = (most * 2).min(TTL);
    }
    assert_eq!(most, TTL);
    bench.acquire(bench.now, Answer::Held(held(0)));
    assert!(bench.poll(bench.now).is_some());
    bench.fail(bench.now);
    let (earliest, latest) = (at(bench.now + RETRY / 2), at(bench.now + RETRY));
    assert_eq!(bench.election.next(), Next::Retry { earliest, latest });
}

#[test]
fn what_nobody_else_can_have_is_tried_for_more_often() {
    for renewal_failure in [RenewalFailure::DemoteAtOnce, RenewalFailure::HoldUntilDeadline] {
        let mut bench = Bench::leader(Rules { renewal_failure, ..rules() });
        bench.now = HEARTBEAT;
        while bench.now < TTL - GUARD {
            assert!(bench.poll(bench.now).is_some(), "{renewal_failure:?} at {} ms", bench.now);
            bench.fail(bench.now);
            let most = RETRY.max((TTL - GUARD - bench.now).div_ceil(4));
            assert!(matches!(bench.election.next(), Next::Retry { latest, .. } if latest <= at(bench.now + most)));
            bench.now += most;
        }
        // Now it can be another's.
        assert!(matches!(bench.poll(bench.now), Some(Op::Acquire { continues: false, .. })));
        bench.fail(bench.now);
        assert!(matches!(bench.election.next(), Next::Retry { latest, .. } if latest == at(bench.now + TTL)));
    }
}

#[test]
fn an_answer_of_the_wrong_kind_confirms_nothing_and_backs_off() {
    let mut bench = Bench::new(rules());
    bench.acquire(0, Answer::Renewed);
    assert_eq!(bench.term(), None);
    assert_eq!(bench.election.next(), Next::Retry { earliest: at(RETRY / 2), latest: at(RETRY) });
    bench.now = RETRY;
    bench.acquire(RETRY, Answer::Released);
    assert_eq!(bench.election.next(), Next::Retry { earliest: at(2 * RETRY), latest: at(3 * RETRY) });
}

#[test]
fn an_own_lease_is_claimed_as_continued_only_within_the_right() {
    let mut bench = Bench::leader(rules());
    assert!(bench.poll(HEARTBEAT).is_some());
    bench.fail(HEARTBEAT + 1_000);
    assert!(matches!(bench.poll(HEARTBEAT + 2_000), Some(Op::Acquire { continues: true, .. })));
    bench.fail(TTL - GUARD - 1);
    let floor = Term::new(7);
    let op = bench.poll(TTL - GUARD + TTL);
    assert_eq!(op, Some(Op::Acquire { floor, continues: false, same_id: SameId::Leave }));
}

#[test]
fn a_lease_won_in_a_quarantine_counts_only_within_the_right() {
    for (answered, term) in [(TTL - GUARD - 1, Some(8)), (TTL - GUARD, None)] {
        let mut bench = Bench::leader(rules());
        assert!(bench.poll(HEARTBEAT).is_some());
        bench.fail(HEARTBEAT + 1_000);
        assert!(bench.poll(9_000).is_some());
        bench.answer(answered, won_in_quarantine(8));
        assert_eq!(bench.term(), term, "answered at {answered}");
    }
}

#[test]
fn a_quarantine_is_waited_out() {
    let mut bench = Bench::new(rules());
    bench.acquire(10, Answer::Quarantined { remaining: ms(4_000), reason: "restarted" });
    assert_eq!(bench.told(), [Notice::Quarantined(ms(4_000), "restarted")]);
    assert!(!bench.election.is_settled());
    assert_eq!(bench.election.next(), Next::At(at(4_010)));
}

#[test]
fn a_follower_sleeps_until_the_lease_can_be_free() {
    let mut bench = Bench::new(rules());
    bench.acquire(10, Answer::Held(held(6_000)));
    assert_eq!(bench.told(), [Notice::Following(held(6_000))]);
    assert_eq!(bench.election.next(), Next::At(at(6_010)));
    assert!(bench.election.is_settled());
}

#[test]
fn an_announced_release_wakes_a_follower() {
    let mut bench = Bench::new(rules());
    bench.acquire(10, Answer::Held(held(6_000)));
    bench.event(500, Event::Announced);
    assert!(matches!(bench.poll(500), Some(Op::Acquire { floor, .. }) if floor == Term::new(9)));
}

#[test]
fn a_release_announced_while_asking_is_not_missed() {
    let mut bench = Bench::new(rules());
    assert!(bench.poll(0).is_some());
    bench.event(5, Event::Announced);
    bench.answer(10, Answer::Held(held(6_000)));
    assert!(matches!(bench.poll(10), Some(Op::Acquire { .. })));
    bench.answer(20, Answer::Held(held(6_000)));
    assert_eq!(bench.election.next(), Next::At(at(6_020)));
}

#[test]
fn a_store_that_announces_ends_a_back_off() {
    let mut bench = Bench::new(rules());
    assert!(bench.poll(0).is_some());
    bench.fail(100);
    bench.event(200, Event::Announced);
    assert!(bench.poll(200).is_some());
}

#[test]
fn a_leader_is_not_disturbed_by_an_announcement() {
    let mut bench = Bench::leader(rules());
    let next = bench.election.next();
    bench.event(100, Event::Announced);
    assert_eq!((bench.election.next(), bench.term()), (next, Some(7)));
}

#[test]
fn a_holder_of_another_kind_is_looked_at_each_retry() {
    let mut bench = Bench::new(rules());
    bench.acquire(10, Answer::Held(Held { foreign: true, ..held(6_000) }));
    assert_eq!(bench.election.next(), Next::At(at(10 + RETRY)));
}

#[test]
fn an_impossible_wait_is_cut_to_the_largest_ttl() {
    let day = 86_400_000;
    for answer in [Answer::Held(held(day)), Answer::Quarantined { remaining: ms(day), reason: "clock" }] {
        let mut bench = Bench::new(rules());
        bench.acquire(0, answer);
        assert_eq!(bench.election.next(), Next::At(at(MAX_TTL.as_millis() as u64)));
    }
}

#[test]
fn an_observer_looks_and_never_acquires() {
    let mut bench = Bench::new(Rules { observe: true, ..rules() });
    assert_eq!(bench.poll(0), Some(Op::Inspect));
    bench.answer(10, Answer::Inspected(Some(held(6_000))));
    assert_eq!(bench.told(), [Notice::Following(held(6_000))]);
    assert_eq!(bench.election.next(), Next::At(at(6_010)));
    assert_eq!(bench.poll(6_010), Some(Op::Inspect));
    bench.answer(6_020, Answer::Inspected(None));
    assert_eq!(bench.told(), [Notice::Vacant]);
    assert_eq!(bench.election.next(), Next::At(at(6_020 + HEARTBEAT)));
}

#[test]
fn a_renewal_may_share_a_batch_shortly_before_it_is_due() {
    let mut bench = Bench::leader(rules());
    let (earliest, latest) = (at(HEARTBEAT - HEARTBEAT / 8), at(HEARTBEAT));
    assert_eq!(bench.election.next(), Next::Renew { earliest, latest });
    assert_eq!(bench.poll(HEARTBEAT - HEARTBEAT / 8 - 1), None);
    assert!(bench.poll(HEARTBEAT - HEARTBEAT / 8).is_some());
}

#[test]
fn a_permanent_failure_settles_the_first_round() {
    let mut bench = Bench::new(rules());
    assert!(bench.poll(0).is_some());
    bench.event(10, Event::Failed(bench.newest(), Failure::Permanent));
    assert!(bench.election.is_settled());
}
