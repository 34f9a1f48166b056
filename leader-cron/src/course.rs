//! The course of one job on one instance, as far as the ledger is concerned: a pure function of (state, event, now).
//!
//! No clock, no I/O, no randomness. After each event the caller asks [`Course::poll`] what to send, or when to come back.
//!
//! - One request at a time, so one claim at a time: two would walk from one tick, and the slower one would lose what it claimed.
//! - A claim whose answer was lost is asked again under its nonce, which is the same claim, until it is answered. If the lease
//!   ends before that, it is given back once it can no longer be executed.
//! - A run that was claimed and never began is given back: the tick is due again.
//! - What is owed to the ledger (an end, a give-back) is sent before anything else, and again until it is confirmed. A claim that
//!   was asked more than once is given back only when none of its requests can be executed any more: a late one would claim what
//!   was given back.
//! - The run's slot counts from before the claim was sent, and is kept for as long as the run is on. When it ends unkept,
//!   another instance may run the job, so the run is cut first.

mod answers;
mod by_hand;
mod claim;
mod debts;
mod renamed;
mod rings;
mod slots;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use leader_core::store::{RunEnd, TickOp};
use leader_core::{BootInstant, Term};

use self::by_hand::ByHand;
use self::claim::Claim;
use self::debts::Debts;
use self::renamed::Renamed;
pub use self::words::{Claimed, Failure, Notice, Poll, Request, Rules};
use crate::plan::Planner;
use crate::policy::{Delivery, Policy};
use crate::schedule::Schedule;
use crate::store_clock::StoreClock;

/// So often is the record of a job looked at that claims nothing meanwhile: what others gave back, paused or resumed is seen
/// then, and what the store's clock says by now.
const LOOK: Duration = Duration::from_secs(30);
/// After a record that cannot be read.
const CORRUPT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    No,
    /// The record under the job's old name has not been read under this term.
    LoadingOld(Term),
    /// The record has not been read under this term.
    Loading(Term),
    Led(Term),
}

/// A run that is on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    nonce: u128,
    tick: i64,
    /// Until when the job is surely its own.
    slot_until: BootInstant,
    keep_at: BootInstant,
    cut: bool,
    /// Since when its claim is not executed once more.
    settled_at: BootInstant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Register,
    Load,
    /// Of the job's old name.
    LoadOld,
    /// For a run by hand.
    LoadByHand(u128),
    Claim,
    Keep(u128),
    Debt(u64),
}

#[derive(Debug, Clone, Copy)]
struct Outstanding {
    no: u64,
    kind: Kind,
    sent: BootInstant,
    /// The term that was led under.
    term: Option<Term>,
}

/// See the module.
#[derive(Debug)]
pub struct Course {
    schedule: Schedule,
    /// What tells this schedule from another one.
    text: String,
    policy: Policy,
    seed: u64,
    rules: Rules,
    renamed_from: Option<Renamed>,
    lead: Lead,
    /// What this instance knows of the last tick is the truth, whatever the store has forgotten: it has led without interruption
    /// since it read that from a store that had forgotten nothing, or claimed it.
    vouches: bool,
    /// The newest term that was led under.
    last_term: Option<Term>,
    /// When this process registered the job for the first time, in seconds: a changed schedule counts from there.
    registered_at: Option<i64>,
    /// The store has a record of it.
    registered: bool,
    /// The newest claimed tick that is known.
    last: i64,
    /// No tick up to this one is run.
    floor: i64,
    /// No tick up to this one is told to be too old again.
    told_old: i64,
    /// Until when the job is paused.
    paused: Option<i64>,
    claim: Option<Claim>,
    /// This tick has to be claimed first.
    take: Option<i64>,
    runs: Vec<Run>,
    by_hand: ByHand,
    debts: Debts,
    outstanding: Option<Outstanding>,
    last_no: u64,
    failures: u32,
    /// Nothing is asked before.
    retry_at: BootInstant,
    /// Nothing is claimed before.
    claim_at: BootInstant,
    /// The record is read again then.
    look_at: BootInstant,
    /// When somebody else's scheduler said last that a tick has come; none if it never did, or one waited for it in vain.
    rung: Option<BootInstant>,
    ended: bool,
    /// The record is ahead of the store's clock, which was told.
    ahead: bool,
}

impl Course {
    /// Of a job that this instance has just come to know. `seed`: spreads its jitter, the same on every instance.
    pub fn new(schedule: Schedule, policy: Policy, seed: u64, rules: Rules) -> Self {
        Self {
            text: schedule.text(),
            schedule,
            policy,
            seed,
            rules,
            renamed_from: None,
            lead: Lead::No,
            vouches: false,
            last_term: None,
            registered_at: None,
            registered: false,
            last: 0,
            floor: 0,
            told_old: 0,
            paused: None,
            claim: None,
            take: None,
            runs: Vec::new(),
            by_hand: ByHand::default(),
            debts: Debts::default(),
            outstanding: None,
            last_no: 0,
            failures: 0,
            retry_at: BootInstant::default(),
            claim_at: BootInstant::default(),
            look_at: BootInstant::default(),
            rung: None,
            ended: false,
            ahead: false,
        }
    }

    /// The group's lease is ours, under this term. Nobody else can have led since the elector's term `unbroken_since`.
    pub fn led(&mut self, now: BootInstant, term: Term, unbroken_since: Term) {
        if self.term() == Some(term) {
            return;
        }
        self.vouches &= self.last_term.is_some_and(|last| unbroken_since <= last);
        self.last_term = Some(term);
        self.lead = if self.renamed_from.is_some() { Lead::LoadingOld(term) } else { Lead::Loading(term) };
        self.take = None;
        self.claim_at = now;
        // What is due at a take-over waits for nothing.
        self.rung = None;
    }

    /// It is ours no more.
    pub fn unled(&mut self) {
        self.lead = Lead::No;
    }

    /// The lease had ended before the body began.
    pub fn refused(&mut self, nonce: u128) {
        self.by_hand.forget(nonce);
        if let Some(run) = self.take_run(nonce) {
            self.give_back(run.nonce, run.tick, false, run.settled_at);
        }
    }

    /// The body has ended. `cut`: not by itself.
    pub fn ended(&mut self, nonce: u128, end: RunEnd, cut: bool) {
        let Some(run) = self.take_run(nonce) else { return };
        if cut && self.is_at_least_once() {
            self.give_back(run.nonce, run.tick, true, run.settled_at);
        } else {
            self.owe_end(nonce, run.tick, end);
        }
    }

    /// Somebody has changed the record, or may have: it is read again.
    pub fn look(&mut self, now: BootInstant) {
        self.look_at = now;
    }

    /// Whether the ledger has been told how this run ended.
    pub fn is_settled(&self, nonce: u128) -> bool {
        let is_on = self.runs.iter().any(|run| run.nonce == nonce) || self.by_hand.knows(nonce);
        !is_on && !self.debts.are_of(nonce)
    }

    /// A tick is being claimed.
    pub fn is_claiming(&self) -> bool {
        self.claim.is_some()
    }

    /// A tick may have been claimed, and nobody knows.
    pub fn is_unsure(&self) -> bool {
        self.claim.is_some_and(|claim| claim.unsure)
    }

    /// The ledger has to be told something, or nobody knows what it was told.
    pub fn owes(&self) -> bool {
        self.claim.is_some() || !self.debts.is_empty()
    }

    /// No run is on.
    pub fn is_idle(&self) -> bool {
        self.runs.is_empty()
    }

    /// The ledger knows all that there is to know, and no run is on.
    pub fn is_quiet(&self) -> bool {
        self.claim.is_none() && self.runs.is_empty() && self.by_hand.is_empty() && self.debts.is_empty()
    }

    /// A request that has no answer. Whether it matters: a line of the history that was refused, as by a server whose memory is
    /// full, holds up nothing, and is not written.
    pub fn failed(&mut self, now: BootInstant, no: u64, failure: Failure) -> bool {
        let Some(sent) = self.outstanding.take_if(|outstanding| outstanding.no == no) else { return true };
        if let (Kind::Debt(number), Failure::Permanent) = (sent.kind, failure)
            && self.debts.is_note(number)
        {
            self.debts.forget(number);
            return false;
        }
        if let (Kind::Claim, Some(claim)) = (sent.kind, &mut self.claim) {
            claim.unsure |= failure == Failure::Passing;
        }
        if sent.kind == Kind::Claim && failure == Failure::Permanent {
            // It was not executed; unless an earlier request for it was.
            self.claim.take_if(|claim| !claim.unsure);
        }
        self.failures = self.failures.saturating_add(1);
        let first = Duration::from_millis(if failure == Failure::Passing { 100 } else { 1_000 });
        let wait = first.saturating_mul(1 << (self.failures - 1).min(6)).min(self.rules.slot.max(first));
        self.retry_at = now.saturating_add(wait);
        true
    }

    /// Lets time pass, and tells what is to be done. `nonce` makes random numbers; `clock` is missing until the store has answered once.
    pub fn poll(
        &mut self,
        now: BootInstant,
        clock: Option<&StoreClock>,
        nonce: &mut dyn FnMut() -> u128,
        notices: &mut Vec<Notice>,
    ) -> Poll {
        self.cut_what_ran_out(now, notices);
        let slots = self.next_slot_end();
        if self.outstanding.is_some() {
            return wait([slots]);
        }
        if now < self.retry_at {
            return wait([slots, Some(self.retry_at)]);
        }
        match self.wanted(now, clock, nonce, notices) {
            Ok((kind, op)) => {
                self.last_no += 1;
                self.outstanding = Some(Outstanding { no: self.last_no, kind, sent: now, term: self.term() });
                let job = self.renamed_from.as_ref().filter(|_| kind == Kind::LoadOld);
                Poll::Send(Request { no: self.last_no, op, job: job.map(|old| old.name.clone()) })
            }
            Err(at) => wait([slots, self.next_keep(), at]),
        }
    }

    /// What to ask now, or when to look again.
    fn wanted(
        &mut self,
        now: BootInstant,
        clock: Option<&StoreClock>,
        nonce: &mut dyn FnMut() -> u128,
        notices: &mut Vec<Notice>,
    ) -> Result<(Kind, TickOp), Option<BootInstant>> {
        if let Some(debt) = self.debts.ready(now) {
            return Ok(debt);
        }
        if let Some(run) = self.runs.iter().find(|run| self.is_exclusive() && !run.cut && run.keep_at <= now) {
            return Ok((Kind::Keep(run.nonce), TickOp::KeepSlot { nonce: run.nonce, slot: self.rules.slot }));
        }
        if !self.registered {
            let old = (Kind::LoadOld, TickOp::Load);
            return Ok(if self.asks_for_the_old_first() { old } else { (Kind::Register, self.register()) });
        }
        match self.lead {
            Lead::No => {
                let settled = self.settle(now);
                self.debts.ready(now).ok_or([settled, self.debts.next()].into_iter().flatten().min())
            }
            Lead::LoadingOld(_) => Ok((Kind::LoadOld, TickOp::Load)),
            Lead::Loading(_) => Ok((Kind::Load, TickOp::Load)),
            Lead::Led(_) if self.look_at <= now => Ok((Kind::Load, TickOp::Load)),
            // One claim at a time, until it is settled.
            Lead::Led(_) if !self.debts.is_empty() => Err(self.debts.next()),
            Lead::Led(term) => match (self.asked_by_hand(), clock) {
                (Some(nonce), _) => Ok((Kind::LoadByHand(nonce), TickOp::Load)),
                (None, None) => Ok((Kind::Load, TickOp::Load)),
                (None, Some(clock)) => match self.next_claim(now, clock, term, nonce, notices) {
                    Ok(op) => Ok((Kind::Claim, op)),
                    Err(at) => Err(Some(at.map_or(self.look_at, |at| at.min(self.look_at)))),
                },
            },
        }
    }

    fn term(&self) -> Option<Term> {
        match self.lead {
            Lead::No => None,
            Lead::LoadingOld(term) | Lead::Loading(term) | Lead::Led(term) => Some(term),
        }
    }

    fn register(&self) -> TickOp {
        let knows = self.vouches || self.is_at_least_once();
        let known = (knows && self.last > 0).then_some(self.last);
        TickOp::Register { schedule: self.text.clone(), known: known.max(self.known_of_the_old()) }
    }

    /// A run of the job excludes others.
    fn is_exclusive(&self) -> bool {
        self.policy.is_exclusive()
    }

    fn is_at_least_once(&self) -> bool {
        self.policy.delivery == Delivery::AtLeastOnce
    }

    fn planner(&self) -> Planner<'_> {
        Planner { schedule: &self.schedule, policy: &self.policy, seed: self.seed }
    }

    fn take_run(&mut self, nonce: u128) -> Option<Run> {
        let place = self.runs.iter().position(|run| run.nonce == nonce)?;
        Some(self.runs.remove(place))
    }
}

fn wait<const N: usize>(instants: [Option<BootInstant>; N]) -> Poll {
    instants.into_iter().flatten().min().map_or(Poll::Idle, Poll::Wait)
}
