//! Which tick to claim, and what becomes of a claim whose fate is unknown.

use std::time::Duration;

use leader_core::store::{Missed as MissedTicks, TickClaim, TickOp};
use leader_core::{BootInstant, Term};

use super::{Course, Notice};
use crate::plan::{Gap, Next, Reason};
use crate::policy::MAX_ATTEMPTS;
use crate::store_clock::StoreClock;

/// So long after a claim can no longer be executed is it given back.
const MARGIN: Duration = Duration::from_millis(250);

/// A claim that is under way, or whose answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) nonce: u128,
    pub(super) tick: i64,
    expect: i64,
    pub(super) missed: Option<Gap>,
    /// It is so old that it is claimed only to be put away.
    pub(super) too_old: bool,
    /// It may have been executed.
    pub(super) unsure: bool,
    /// Since when it surely has been, or never will be.
    pub(super) settled_at: BootInstant,
}

impl Course {
    /// The claim to send, or when to look again.
    pub(super) fn next_claim(
        &mut self,
        now: BootInstant,
        clock: &StoreClock,
        term: Term,
        nonce: &mut dyn FnMut() -> u128,
        notices: &mut Vec<Notice>,
    ) -> Result<TickOp, Option<BootInstant>> {
        let store_now = clock.micros(now);
        if self.claim.is_none() {
            if self.is_exclusive() && !(self.runs.is_empty() && self.by_hand.is_empty()) {
                return Err(None);
            }
            if now < self.claim_at {
                return Err(Some(self.claim_at));
            }
            if let Some(until) = self.still_paused(store_now, notices) {
                return Err(Some(clock.instant_of(until.saturating_mul(1_000_000))));
            }
            self.claim = Some(self.choose(now, clock, nonce, notices)?);
        }
        let not_after = self.rules.operation_timeout.saturating_mul(2);
        // One that is asked again may have become too old; but not by the asking.
        let is_too_old = |claim: &Claim| self.planner().is_too_old(claim.tick, store_now - signed(not_after));
        let is_too_old = self.claim.as_ref().is_some_and(is_too_old);
        let claim = self.claim.as_mut().expect("one was chosen");
        claim.too_old |= is_too_old;
        claim.settled_at = now.saturating_add(not_after + MARGIN);
        let claim = *claim;
        let at_least_once = self.is_at_least_once();
        let missed =
            claim.missed.map(|gap| MissedTicks { from: gap.from, count: gap.count, reason: gap.reason.to_string() });
        Ok(TickOp::Claim(Box::new(TickClaim {
            term,
            tick: claim.tick,
            expect: claim.expect,
            floor: self.registered_at.unwrap_or_default(),
            nonce: claim.nonce,
            not_after_us: u64::try_from(store_now).unwrap_or(0).saturating_add(micros(not_after)),
            slot: self.rules.slot,
            forbid: self.is_exclusive(),
            at_least_once,
            max_attempts: MAX_ATTEMPTS,
            retry_within: self.policy.within(),
            schedule: self.text.clone(),
            missed,
            vouch: self.vouches,
            renamed_from: self.renamed_from.as_ref().map(|old| old.name.clone()),
        })))
    }

    fn choose(
        &mut self,
        now: BootInstant,
        clock: &StoreClock,
        nonce: &mut dyn FnMut() -> u128,
        notices: &mut Vec<Notice>,
    ) -> Result<Claim, Option<BootInstant>> {
        // Who vouches has to know of all that was claimed, or may have been.
        let expect = if self.vouches { self.last.max(self.floor) } else { self.last };
        let mut claim = |tick, missed, too_old| Claim {
            nonce: nonce(),
            tick,
            expect,
            missed,
            too_old,
            unsure: false,
            settled_at: now,
        };
        let store_now = clock.micros(now);
        if let Some(tick) = self.take {
            return Ok(claim(tick, None, self.planner().is_too_old(tick, store_now)));
        }
        // A little early, where the clock is not known well: the store says how much is left.
        let slack = signed(clock.slack(now));
        match self.planner().next(self.last.max(self.floor), store_now.saturating_add(slack)) {
            Next::Claim(due) => match self.waits_for_ring(now, store_now, &due) {
                Some(until) => Err(Some(clock.instant_of(until))),
                None => Ok(claim(due.tick, due.missed, false)),
            },
            Next::At(at) => {
                self.tell_too_old(store_now, notices);
                Err(Some(clock.instant_of(at.saturating_sub(slack)).max(now)))
            }
            Next::Never => {
                if !std::mem::replace(&mut self.ended, true) {
                    notices.push(Notice::Ended);
                }
                Err(None)
            }
        }
    }

    /// What is older than the job runs is told at once, and not only with the next claim, which may be a day away.
    fn tell_too_old(&mut self, store_now: i64, notices: &mut Vec<Notice>) {
        let base = self.last.max(self.floor).max(self.told_old);
        if let Some((gap, until)) = self.planner().too_old(base, store_now) {
            self.told_old = until;
            notices.push(Notice::TooOld(gap));
        }
    }

    /// Until when the job is paused.
    fn still_paused(&mut self, store_now: i64, notices: &mut Vec<Notice>) -> Option<i64> {
        let (until, second) = (self.paused?, store_now.div_euclid(1_000_000));
        if second >= until {
            self.pause_ends(until, notices);
        }
        self.paused
    }

    /// A pause is over: ticks before its end are not run.
    pub(super) fn pause_ends(&mut self, end: i64, notices: &mut Vec<Notice>) {
        let end = end - 1;
        self.paused = None;
        if let Some(gap) = self.planner().between(self.last.max(self.floor), end, Reason::Paused) {
            self.pass_over(gap, notices);
        }
        self.floor = self.floor.max(end);
    }

    /// Nobody leads here any more: what may have been claimed is given back, as soon as it can no longer be executed. When to
    /// look again, if it can.
    pub(super) fn settle(&mut self, now: BootInstant) -> Option<BootInstant> {
        let claim = self.claim?;
        if claim.unsure && now < claim.settled_at {
            return Some(claim.settled_at);
        }
        self.claim = None;
        if claim.unsure {
            self.give_back(claim.nonce, claim.tick, false, now);
        }
        None
    }
}

fn signed(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
