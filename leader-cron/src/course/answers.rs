//! What the ledger's answers change.

use std::time::Duration;

use leader_core::BootInstant;
use leader_core::store::{JobRecord, RunEnd, RunOutcome, TickAnswer, TickReply};

use super::{CORRUPT, Claimed, Course, Kind, LOOK, Lead, Notice, Outstanding, Run};
use crate::plan::{Gap, Reason};

/// So long is waited at most before a busy job is asked for again, and a clock that is behind.
pub(super) const BUSY: Duration = Duration::from_millis(500);
const EARLY: Duration = Duration::from_secs(30);
/// After a claim that the store does not believe the lease of.
const FENCED: Duration = Duration::from_millis(250);
/// A record that is further ahead of the store's clock is no tick that was claimed a moment ago, before a small step.
const AHEAD: i64 = 60;

impl Course {
    /// The ledger answered a request.
    pub fn answered(&mut self, now: BootInstant, no: u64, answer: &TickAnswer, notices: &mut Vec<Notice>) {
        let Some(sent) = self.outstanding.take_if(|outstanding| outstanding.no == no) else { return };
        self.failures = 0;
        let second = i64::try_from(answer.now_us / 1_000_000).unwrap_or(i64::MAX);
        if let TickReply::Corrupt { field } = answer.reply {
            notices.push(Notice::Corrupt(field));
            self.give_up_by_hand();
            match sent.kind {
                // Nothing was claimed, and nothing can be given back.
                Kind::Claim => self.claim = None,
                Kind::Debt(number) => self.debts.forget(number),
                Kind::Register | Kind::Load | Kind::LoadOld | Kind::LoadByHand(_) | Kind::Keep(_) => {}
            }
            self.retry_at = now.saturating_add(CORRUPT);
            return;
        }
        match sent.kind {
            Kind::Register => {
                self.registered = true;
                self.registered_at.get_or_insert(second);
                if let TickReply::Registered(record) = &answer.reply {
                    self.read(now, second, &sent, record, notices);
                }
            }
            Kind::Load | Kind::LoadByHand(_) => match &answer.reply {
                TickReply::Loaded(record) => {
                    self.read(now, second, &sent, record, notices);
                    if let Kind::LoadByHand(nonce) = sent.kind {
                        self.decide_by_hand(answer.now_us, &sent, nonce, record, notices);
                    }
                }
                // Of a store that has forgotten it.
                _ => self.register_again(),
            },
            Kind::LoadOld => self.read_old(now, &sent, answer, notices),
            Kind::Claim => self.claimed(now, &sent, &answer.reply, notices),
            Kind::Keep(nonce) => self.kept(&sent, nonce, answer.reply == TickReply::Kept, notices),
            Kind::Debt(number) => self.told(number, &answer.reply, notices),
        }
    }

    /// What the record says, whoever wrote it.
    fn read(
        &mut self,
        now: BootInstant,
        second: i64,
        sent: &Outstanding,
        record: &JobRecord,
        notices: &mut Vec<Notice>,
    ) {
        // One that was read before the lease was won may lack what others claimed since.
        let Some(term) = self.term().filter(|term| sent.term == Some(*term)) else { return };
        if matches!(self.lead, Lead::LoadingOld(_)) {
            return;
        }
        self.lead = Lead::Led(term);
        self.look_at = now.saturating_add(LOOK);
        if record.since > self.last && self.last > 0 {
            // A new record of an old job.
            self.forgotten(record.last, notices);
        }
        self.last = self.last.max(record.last);
        self.look_ahead(second, notices);
        if !self.vouches {
            self.believe_up_to(record.floor, notices);
            // A store that has forgotten nothing is believed from now on.
            self.vouches = record.floor == 0;
        }
        if record.schedule != self.text {
            self.floor = self.floor.max(self.registered_at.unwrap_or(second));
        }
        let told = record.paused.as_ref().map(|pause| pause.until);
        let paused = told.filter(|until| *until > second);
        if let (Some(until), None) = (told.or(self.paused), paused) {
            self.pause_ends(until.min(second), notices);
        }
        if let Some(until) = paused.filter(|_| paused != self.paused) {
            notices.push(Notice::Paused(until));
        }
        self.paused = paused;
        // What was given back to a store that has lost its memory since may have been run since.
        let returned = if record.floor == 0 || self.is_at_least_once() { record.returned.as_slice() } else { &[] };
        if returned.is_empty() {
            for tick in record.returned.iter().map(|back| back.tick) {
                notices.push(Notice::Missed(Gap { from: tick, count: 1, reason: Reason::Forgotten }));
            }
        }
        let own = |nonce| {
            self.runs.iter().any(|run| run.nonce == nonce) || self.claim.is_some_and(|claim| claim.nonce == nonce)
        };
        let died = record.open.as_ref().filter(|run| self.is_at_least_once() && !own(run.nonce));
        self.take = match died {
            Some(run) if run.left.is_zero() => Some(run.tick),
            Some(run) => {
                self.look_at = self.look_at.min(now.saturating_add(run.left));
                None
            }
            None => returned.first().map(|returned| returned.tick),
        };
    }

    /// What was claimed up to this tick may have been forgotten, so no tick up to it is run; at least once, it may run again.
    fn believe_up_to(&mut self, floor: i64, notices: &mut Vec<Notice>) {
        if !self.is_at_least_once() {
            self.forgotten(floor, notices);
            self.floor = self.floor.max(floor);
        }
    }

    fn forgotten(&mut self, until: i64, notices: &mut Vec<Notice>) {
        if let Some(gap) = self.planner().between(self.last.max(self.floor), until, Reason::Forgotten) {
            self.pass_over(gap, notices);
        }
    }

    /// Tells, once, of a record that the store's clock has yet to reach: that was set back, or was ahead when it was written.
    fn look_ahead(&mut self, second: i64, notices: &mut Vec<Notice>) {
        let by = self.last.saturating_sub(second);
        if by <= AHEAD {
            self.ahead = false;
        } else if !std::mem::replace(&mut self.ahead, true) {
            notices.push(Notice::Ahead { last: self.last, by: Duration::from_secs(by.unsigned_abs()) });
        }
    }

    fn claimed(&mut self, now: BootInstant, sent: &Outstanding, reply: &TickReply, notices: &mut Vec<Notice>) {
        let Some(claim) = self.claim.take() else { return };
        // Of a claim that was asked once, no request is under way any more.
        let settled_at = if claim.unsure { claim.settled_at } else { now };
        let (undecided, done) = (matches!(reply, TickReply::Late | TickReply::Fenced), *reply == TickReply::Done);
        if claim.unsure && !matches!(reply, TickReply::Run { .. }) && !undecided && !done {
            // An earlier request may have been executed, or will be.
            self.give_back(claim.nonce, claim.tick, false, settled_at);
        }
        match *reply {
            TickReply::Run { tick, attempt } => {
                self.take = None;
                self.last = self.last.max(tick);
                self.look_at = now.saturating_add(LOOK);
                self.vouches |= matches!(self.lead, Lead::Led(_));
                notices.extend(claim.missed.map(Notice::Missed));
                if claim.too_old {
                    let end = RunEnd {
                        outcome: RunOutcome::Cancelled,
                        message: "too old to be run".to_owned(),
                        began_us: 0,
                        took: Duration::ZERO,
                    };
                    self.owe_end(claim.nonce, tick, end);
                    self.pass_over(Gap { from: tick, count: 1, reason: Reason::TooOld }, notices);
                } else if self.lead == Lead::No {
                    self.give_back(claim.nonce, tick, false, settled_at);
                } else {
                    let (slot, guard) = (self.rules.slot, self.rules.guard);
                    self.runs.push(Run {
                        nonce: claim.nonce,
                        tick,
                        slot_until: sent.sent.saturating_add(slot.saturating_sub(guard)),
                        keep_at: sent.sent.saturating_add(slot / 3),
                        cut: false,
                        settled_at,
                    });
                    notices.push(Notice::Run(Claimed { tick, attempt, nonce: claim.nonce, missed: claim.missed }));
                    if self.is_exclusive() {
                        self.overtaken_by_hand(notices);
                    }
                }
            }
            // Not executed this time; an earlier time, perhaps.
            TickReply::Late => self.claim = Some(claim),
            TickReply::Fenced => {
                self.claim = claim.unsure.then_some(claim);
                self.claim_at = now.saturating_add(FENCED);
                self.retry_at = self.claim_at;
            }
            TickReply::Already { last, floor } => {
                self.last = self.last.max(last);
                if floor > self.registered_at.unwrap_or_default() {
                    self.believe_up_to(floor, notices);
                }
                self.floor = self.floor.max(floor);
                self.take = None;
            }
            // Somebody has claimed meanwhile, or the record is a new one.
            TickReply::Moved { .. } => self.look_at = now,
            TickReply::Early { left } => self.claim_at = now.saturating_add(left.min(EARLY)),
            TickReply::Busy { left, .. } => {
                let wait = left.clamp(Duration::from_millis(10), BUSY);
                self.claim_at = now.saturating_add(wait);
            }
            TickReply::Take { tick, .. } => self.take = Some(tick),
            TickReply::Over { tick, attempts } => {
                self.take = None;
                notices.push(Notice::GaveUp { tick, attempts });
            }
            TickReply::Paused(ref pause) => {
                self.paused = Some(pause.until);
                notices.push(Notice::Paused(pause.until));
            }
            TickReply::Unknown => self.register_again(),
            _ => {}
        }
    }
}
