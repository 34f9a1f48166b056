//! The election itself: what it holds, and how each event changes it.

#[cfg(feature = "testing")]
mod breakable;

use std::time::Duration;

use super::{
    Event, Failure, LossReason, MAX_TTL, Next, Notice, Reclaim, RenewalFailure, Request, RequestNo, Rules, back_off,
};
use crate::clock::BootInstant;
use crate::group::GroupName;
use crate::identity::Candidate;
use crate::lease::Term;
use crate::store::{Answer, Command, Held, Op, SameId, Won};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Standing {
    Competing,
    Abstaining { until: Option<BootInstant> },
    Withdrawn,
    Duplicate,
}

/// A lease that the store granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Seat {
    term: Term,
    deadline: BootInstant,
    /// Not yet, while an older incarnation of the same id may still believe.
    believed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Outstanding {
    no: RequestNo,
    sent: BootInstant,
    kind: Kind,
    /// `Election::right` when it was sent.
    right: BootInstant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Acquire,
    Renew,
    Release(Option<Term>),
    Inspect,
}

/// One group's election. See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Election {
    rules: Rules,
    group: GroupName,
    candidate: Candidate,
    standing: Standing,
    seat: Option<Seat>,
    /// Until when this incarnation's last lease is surely not another's: a failed renewal ends the view, not the right.
    right: BootInstant,
    /// The first of the terms that it has held without anybody else in between.
    unbroken_since: Term,
    /// Until when an older incarnation of the same id may believe; whatever becomes of the seat that was taken from it.
    not_before: BootInstant,
    outstanding: Option<Outstanding>,
    /// A release to send: of this acquisition, or of whichever this incarnation holds.
    to_release: Option<Option<Term>>,
    last_no: RequestNo,
    floor: Term,
    last_term: Option<Term>,
    /// An acquire got no usable answer since the last one that did: the store may hold a lease that we know nothing of.
    unsure: bool,
    failures: u32,
    /// A release was announced while the store was being asked: its answer may be older.
    woken: bool,
    next: Next,
    settled: bool,
}

impl Election {
    /// A candidate that has not asked yet; its first request is due at once.
    #[must_use]
    pub fn new(group: GroupName, candidate: Candidate, rules: Rules, now: BootInstant) -> Self {
        Self {
            rules,
            group,
            candidate,
            standing: Standing::Competing,
            seat: None,
            right: BootInstant::default(),
            unbroken_since: Term::default(),
            not_before: BootInstant::default(),
            outstanding: None,
            to_release: None,
            last_no: RequestNo::default(),
            floor: Term::default(),
            last_term: None,
            unsure: false,
            failures: 0,
            woken: false,
            next: Next::At(now),
            settled: false,
        }
    }

    /// What this instance may believe: the term that it leads under, and until when.
    #[must_use]
    pub fn view(&self, now: BootInstant) -> Option<(Term, BootInstant)> {
        let seat = self.seat.as_ref()?;
        (seat.believed && self.holds(seat, now)).then_some((seat.term, self.ends(seat)))
    }

    /// When to call [`poll`](Self::poll).
    #[must_use]
    pub fn next(&self) -> Next {
        let ends = self.seat.as_ref().map(|seat| self.ends(seat));
        if self.outstanding.is_some() {
            return Next::Waiting(ends);
        }
        if self.to_release.is_some() {
            return Next::At(BootInstant::default());
        }
        match (&self.standing, ends) {
            (Standing::Withdrawn | Standing::Duplicate | Standing::Abstaining { until: None }, _) => Next::Idle,
            (Standing::Abstaining { until: Some(until) }, _) => Next::At(*until),
            // The view ends before the next attempt. That is told then, and not spread like an attempt.
            (Standing::Competing, Some(at)) if at < earliest(self.next) => Next::Waiting(Some(at)),
            (Standing::Competing, Some(at)) => self.next.until(at),
            (Standing::Competing, None) => self.next,
        }
    }

    /// The first round is over: a leader is known, or it is known that nobody can lead for now.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Stays out on purpose, for a time or until resumed.
    #[must_use]
    pub fn is_abstaining(&self) -> bool {
        matches!(self.standing, Standing::Abstaining { .. })
    }

    #[cfg(test)]
    pub(super) fn newest(&self) -> RequestNo {
        self.last_no
    }

    /// Nothing is left to send or to wait for.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.outstanding.is_none() && self.to_release.is_none()
    }

    /// Lets time pass, and returns the request that is due, if any. Send it at once: `now` is the instant that its lease
    /// will count from.
    pub fn poll(&mut self, now: BootInstant, notices: &mut Vec<Notice>) -> Option<Request> {
        self.let_time_pass(now, notices);
        if self.outstanding.is_some() {
            return None;
        }
        if let Some(term) = self.to_release.take() {
            return Some(self.send(now, Kind::Release(term)));
        }
        if self.standing != Standing::Competing || now < earliest(self.next) {
            return None;
        }
        let kind = match self.seat {
            Some(_) => Kind::Renew,
            None if self.rules.observe => Kind::Inspect,
            None => Kind::Acquire,
        };
        Some(self.send(now, kind))
    }

    /// Takes in an event.
    pub fn handle(&mut self, now: BootInstant, event: Event, notices: &mut Vec<Notice>) {
        self.let_time_pass(now, notices);
        match event {
            Event::Answered(no, answer) => self.answered(now, no, answer, notices),
            Event::Failed(no, failure) => self.failed(now, no, failure, notices),
            Event::Announced if self.outstanding.is_some() => self.woken = true,
            // Also in a back-off: a store that announces is there.
            Event::Announced if self.seat.is_none() => self.next = Next::At(now),
            Event::Announced => {}
            Event::Lapsed => {
                self.demote(LossReason::Expired, notices);
                self.next = Next::At(now);
            }
            Event::StepDown => {
                if self.view(now).is_some() {
                    self.stand(now, Standing::Abstaining { until: Some(now.saturating_add(self.rules.ttl)) }, notices);
                }
            }
            Event::StandAside => self.stand(now, Standing::Abstaining { until: None }, notices),
            Event::Withdraw => self.stand(now, Standing::Withdrawn, notices),
            Event::Resume => {
                if matches!(self.standing, Standing::Abstaining { .. }) {
                    self.standing = Standing::Competing;
                    self.next = Next::At(now);
                }
            }
        }
        self.let_time_pass(now, notices);
    }

    /// Since the acquisition of this term nobody else can have led: each one since was won within the right of the one before.
    #[must_use]
    pub fn unbroken_since(&self) -> Term {
        self.unbroken_since
    }

    /// Ends what has run out.
    fn let_time_pass(&mut self, now: BootInstant, notices: &mut Vec<Notice>) {
        if self.seat.as_ref().is_some_and(|seat| !self.holds(seat, now)) {
            self.demote(LossReason::Expired, notices);
            self.next = Next::At(now);
        }
        if matches!(self.standing, Standing::Abstaining { until: Some(until) } if until <= now) {
            self.standing = Standing::Competing;
            self.next = Next::At(now);
        }
    }

    fn send(&mut self, now: BootInstant, kind: Kind) -> Request {
        self.last_no.0 += 1;
        self.woken = false;
        self.outstanding = Some(Outstanding { no: self.last_no, sent: now, kind, right: self.right });
        let op = match kind {
            Kind::Acquire => Op::Acquire {
                floor: self.floor,
                continues: now < self.right,
                // After this incarnation's first acquisition, another incarnation in the seat is a second process.
                same_id: if self.last_term.is_some() { SameId::Leave } else { SameId::Take },
            },
            Kind::Renew => Op::Renew { term: self.seat.as_ref().map_or(Term::default(), |s| s.term) },
            Kind::Release(term) => Op::Release { term },
            Kind::Inspect => Op::Inspect,
        };
        let (group, candidate) = (self.group.clone(), self.candidate.clone());
        Request { no: self.last_no, command: Command { group, candidate, ttl: self.rules.ttl, op } }
    }

    fn answered(&mut self, now: BootInstant, no: RequestNo, answer: Answer, notices: &mut Vec<Notice>) {
        let Some(sent) = self.outstanding.take_if(|o| o.no == no) else {
            self.late(now, answer);
            return;
        };
        let failures = std::mem::take(&mut self.failures);
        self.unsure &= sent.kind != Kind::Acquire;
        match (sent.kind, answer) {
            (Kind::Acquire, Answer::Won(won)) => self.won(now, &sent, won, notices),
            (Kind::Acquire, Answer::Held(held)) => self.held(now, held, notices),
            (Kind::Acquire, Answer::Quarantined { remaining, reason }) => {
                self.next = Next::At(now.saturating_add(remaining.min(MAX_TTL)));
                notices.push(Notice::Quarantined(remaining, reason));
            }
            (Kind::Renew, Answer::Renewed) => self.renewed(now, &sent, notices),
            (Kind::Renew, Answer::Lost { duplicate }) => {
                self.next = Next::At(now);
                if duplicate {
                    self.give_up(notices);
                } else {
                    self.demote(LossReason::Refused, notices);
                }
            }
            (Kind::Release(term), Answer::Released | Answer::NotHeld) => {
                notices.extend(term.map(|term| Notice::Released(term, true)));
            }
            (Kind::Inspect, Answer::Inspected(found)) => self.inspected(now, found, notices),
            // A store that answers something else than was asked has confirmed nothing.
            (kind, _) => {
                self.failures = failures;
                self.unconfirmed(now, kind, Failure::Permanent, notices);
            }
        }
    }

    fn won(&mut self, now: BootInstant, sent: &Outstanding, won: Won, notices: &mut Vec<Notice>) {
        self.floor = self.floor.max(won.term);
        self.last_term = Some(won.term);
        // Also if the seat is not taken now: the answer to the next acquire may come from a store that has forgotten it.
        if self.rules.reclaim == Reclaim::AfterDeadline {
            self.not_before = self.not_before.max(now.saturating_add(won.older_lease.min(MAX_TTL)));
        }
        if self.standing != Standing::Competing {
            // Asked for before the instance stepped aside: nobody is to wait for it to run out.
            self.to_release = Some(Some(won.term));
            return;
        }
        if won.in_quarantine && now >= sent.right {
            // It counts only within the right that it continues; the next attempt waits the quarantine out.
            self.next = Next::At(now);
            return;
        }
        self.settled = true;
        let deadline = self.deadline(now, sent);
        if deadline <= now {
            self.next = Next::At(now);
            return;
        }
        if now >= sent.right {
            self.unbroken_since = won.term;
        }
        self.seat = Some(Seat { term: won.term, deadline, believed: false });
        self.seated(sent, notices);
    }

    fn renewed(&mut self, now: BootInstant, sent: &Outstanding, notices: &mut Vec<Notice>) {
        let deadline = self.deadline(now, sent);
        match &mut self.seat {
            Some(seat) if now < deadline && seat.deadline <= deadline => {
                seat.deadline = deadline;
                self.seated(sent, notices);
            }
            // Too late to be of use, or the view has ended meanwhile: ask again at once.
            _ => self.next = Next::At(now),
        }
    }

    /// The store confirmed the seat. It is believed in once the store did so in answer to a request that was sent after the
    /// older incarnation's belief had ended: until then that one may still take it back.
    fn seated(&mut self, sent: &Outstanding, notices: &mut Vec<Notice>) {
        self.next = self.renew_window(sent.sent);
        let Some(seat) = &mut self.seat else { return };
        if self.not_before <= sent.sent {
            // Only now: while two incarnations might claim to continue, two could be re-seated, one after the other.
            self.right = seat.deadline;
            if !seat.believed {
                seat.believed = true;
                notices.push(Notice::Acquired(seat.term));
            }
        } else if self.not_before < earliest(self.next) {
            self.next = Next::At(self.not_before);
        }
    }

    fn held(&mut self, now: BootInstant, held: Held, notices: &mut Vec<Notice>) {
        self.settled = true;
        self.floor = self.floor.max(held.term.unwrap_or_default());
        if held.same_id && self.last_term.is_some() {
            self.give_up(notices);
            return;
        }
        let mut wait = held.remaining.min(MAX_TTL);
        if self.woken {
            wait = Duration::ZERO;
        } else if held.foreign {
            wait = wait.min(self.rules.retry);
        }
        self.next = Next::At(now.saturating_add(wait));
        notices.push(Notice::Following(held));
    }

    fn inspected(&mut self, now: BootInstant, found: Option<Held>, notices: &mut Vec<Notice>) {
        self.settled = true;
        let mut wait = found.as_ref().map_or(self.rules.heartbeat, |h| h.remaining.min(MAX_TTL).max(self.rules.retry));
        if self.woken {
            wait = Duration::ZERO;
        }
        self.next = Next::At(now.saturating_add(wait));
        notices.push(found.map_or(Notice::Vacant, Notice::Following));
    }

    fn failed(&mut self, now: BootInstant, no: RequestNo, failure: Failure, notices: &mut Vec<Notice>) {
        if let Some(sent) = self.outstanding.take_if(|o| o.no == no) {
            self.unconfirmed(now, sent.kind, failure, notices);
        }
    }

    /// A request without a usable answer: whether it was executed is unknown.
    fn unconfirmed(&mut self, now: BootInstant, kind: Kind, failure: Failure, notices: &mut Vec<Notice>) {
        self.failures = self.failures.saturating_add(1);
        self.next = self.retry_window(now);
        self.settled |= failure == Failure::Permanent;
        match kind {
            Kind::Renew if self.rules.renewal_failure == RenewalFailure::DemoteAtOnce => {
                self.demote(LossReason::RenewalFailed, notices);
            }
            // Without a term it was only to make sure: nothing was believed in that could have been given back.
            Kind::Release(term) => notices.extend(term.map(|term| Notice::Released(term, false))),
            // It may have been won: this incarnation never acquires again, so whatever it holds is to go.
            Kind::Acquire if self.standing == Standing::Withdrawn => self.to_release = Some(None),
            Kind::Acquire => self.unsure = true,
            Kind::Renew | Kind::Inspect => {}
        }
    }

    fn stand(&mut self, now: BootInstant, standing: Standing, notices: &mut Vec<Notice>) {
        if matches!(self.standing, Standing::Withdrawn) {
            return;
        }
        // A seat that is not believed in yet is given back too.
        if let Some(seat) = &self.seat {
            self.to_release = Some(Some(seat.term));
            self.demote(LossReason::SteppedDown, notices);
        } else if standing == Standing::Withdrawn && self.unsure {
            self.to_release = Some(None);
        } else if let Some(term) = self.last_term.filter(|_| now < self.right) {
            // Demoted by a failed renewal, but the lease may still stand in the store.
            self.to_release = Some(Some(term));
        }
        // The right is given up with the lease: from here on it may be another's.
        self.right = BootInstant::default();
        if self.standing != Standing::Duplicate || standing == Standing::Withdrawn {
            self.standing = standing;
        }
    }

    fn give_up(&mut self, notices: &mut Vec<Notice>) {
        if self.standing != Standing::Withdrawn {
            self.standing = Standing::Duplicate;
        }
        self.right = BootInstant::default();
        self.demote(LossReason::Duplicate, notices);
        notices.push(Notice::Duplicate);
    }

    fn demote(&mut self, reason: LossReason, notices: &mut Vec<Notice>) {
        if let Some(seat) = self.seat.take().filter(|s| s.believed) {
            notices.push(Notice::Lost(seat.term, reason));
        }
    }

    fn renew_window(&self, sent: BootInstant) -> Next {
        let latest = sent.saturating_add(self.rules.heartbeat);
        Next::Renew { earliest: latest.saturating_sub(self.rules.heartbeat / 8), latest }
    }

    /// Jitter only shortens; the first retry comes within `retry`, back-off begins with the second. Within the right it always
    /// leaves time for some more: nobody else can use what is left of it.
    fn retry_window(&self, now: BootInstant) -> Next {
        let mut wait = back_off(self.failures, self.rules.retry, self.rules.ttl);
        if now < self.right {
            wait = wait.min((self.right.saturating_since(now) / 4).max(self.rules.retry));
        }
        Next::Retry { earliest: now.saturating_add(wait / 2), latest: now.saturating_add(wait) }
    }

    fn holds(&self, seat: &Seat, now: BootInstant) -> bool {
        now < self.ends(seat)
    }

    #[cfg(not(feature = "testing"))]
    fn ends(&self, seat: &Seat) -> BootInstant {
        seat.deadline
    }

    #[cfg(not(feature = "testing"))]
    fn deadline(&self, _now: BootInstant, sent: &Outstanding) -> BootInstant {
        sent.sent.saturating_add(self.rules.ttl.saturating_sub(self.rules.guard))
    }

    #[cfg(not(feature = "testing"))]
    fn late(&mut self, _now: BootInstant, _answer: Answer) {}
}

fn earliest(next: Next) -> BootInstant {
    match next {
        Next::Idle | Next::Waiting(_) => BootInstant::from_nanos(u64::MAX),
        Next::Renew { earliest, .. } | Next::Retry { earliest, .. } => earliest,
        Next::At(at) => at,
    }
}
