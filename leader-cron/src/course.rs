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
mod claim;
mod debts;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use leader_core::store::{RunEnd, TickOp};
use leader_core::{BootInstant, Term};

use self::claim::Claim;
use self::debts::Debt;
use crate::plan::{Gap, Planner};
use crate::policy::{Delivery, Overlap, Policy};
use crate::schedule::Schedule;
use crate::store_clock::StoreClock;

/// So often is the record of a job looked at that claims nothing meanwhile: what others gave back, paused or resumed is seen
/// then, and what the store's clock says by now.
const LOOK: Duration = Duration::from_secs(30);
/// After a record that cannot be read.
const CORRUPT: Duration = Duration::from_secs(60);

/// How a job's course is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long a run holds its job without being kept.
    pub slot: Duration,
    /// The part of that which the run does not use.
    pub guard: Duration,
    /// How long a call of the store may take.
    pub operation_timeout: Duration,
}

/// What is asked of the ledger; an answer is handed back with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub no: u64,
    /// What is asked.
    pub op: TickOp,
}

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Poll {
    /// Send this now: slots count from this instant. Then ask again: a slot may end before the answer comes.
    Send(Request),
    /// Come back then, unless something happens before.
    Wait(BootInstant),
    /// Come back when something happens.
    Idle,
}

/// What a course has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Begin this run, unless the lease has ended.
    Run(Claimed),
    /// The run of this claim must end: another instance may run the job.
    Cut(u128),
    /// These ticks are not run.
    Missed(Gap),
    /// This tick was given back, and a newer one has taken its place.
    Superseded(i64),
    /// This tick was begun so often, or so long ago, that it is not begun any more.
    GaveUp {
        /// The tick.
        tick: i64,
        /// How often.
        attempts: u32,
    },
    /// The job's record is broken at this field.
    Corrupt(&'static str),
    /// The schedule has no tick any more.
    Ended,
}

/// A run that the ledger permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed {
    /// The tick.
    pub tick: i64,
    /// 1 if it was never begun before.
    pub attempt: u32,
    /// Of its claim.
    pub nonce: u128,
    /// The ticks before it that are not run.
    pub missed: Option<Gap>,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// May pass by itself; whether the request was executed is unknown.
    Passing,
    /// Will not pass without somebody's doing.
    Permanent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    No,
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
    Claim,
    Keep(u128),
    Debt(u128),
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
    /// Until when the job is paused.
    paused: Option<i64>,
    claim: Option<Claim>,
    /// This tick has to be claimed first.
    take: Option<i64>,
    runs: Vec<Run>,
    debts: VecDeque<Debt>,
    outstanding: Option<Outstanding>,
    last_no: u64,
    failures: u32,
    /// Nothing is asked before.
    retry_at: BootInstant,
    /// Nothing is claimed before.
    claim_at: BootInstant,
    /// The record is read again then.
    look_at: BootInstant,
    ended: bool,
}

impl Course {
    /// Of a job that this instance has just come to know. `seed`: spreads its jitter, the same on every instance.
    pub fn new(schedule: Schedule, policy: Policy, seed: u64, rules: Rules) -> Self {
        let text = format!("{} {}", schedule.expression().trim(), schedule.zone());
        Self {
            schedule,
            text,
            policy,
            seed,
            rules,
            lead: Lead::No,
            vouches: false,
            last_term: None,
            registered_at: None,
            registered: false,
            last: 0,
            floor: 0,
            paused: None,
            claim: None,
            take: None,
            runs: Vec::new(),
            debts: VecDeque::new(),
            outstanding: None,
            last_no: 0,
            failures: 0,
            retry_at: BootInstant::default(),
            claim_at: BootInstant::default(),
            look_at: BootInstant::default(),
            ended: false,
        }
    }

    /// The group's lease is ours, under this term. Nobody else can have led since the elector's term `unbroken_since`.
    pub fn led(&mut self, now: BootInstant, term: Term, unbroken_since: Term) {
        if matches!(self.lead, Lead::Loading(known) | Lead::Led(known) if known == term) {
            return;
        }
        self.vouches &= self.last_term.is_some_and(|last| unbroken_since <= last);
        self.last_term = Some(term);
        self.lead = Lead::Loading(term);
        self.take = None;
        self.claim_at = now;
    }

    /// It is ours no more.
    pub fn unled(&mut self) {
        self.lead = Lead::No;
    }

    /// The lease had ended before the body began.
    pub fn refused(&mut self, nonce: u128) {
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
        self.debts.iter().all(|debt| debt.nonce != nonce) && self.runs.iter().all(|run| run.nonce != nonce)
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
        self.claim.is_none() && self.runs.is_empty() && self.debts.is_empty()
    }

    /// A request that has no answer.
    pub fn failed(&mut self, now: BootInstant, no: u64, failure: Failure) {
        let Some(sent) = self.outstanding.take_if(|outstanding| outstanding.no == no) else { return };
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
                Poll::Send(Request { no: self.last_no, op })
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
        if let Some(debt) = self.ready_debt(now) {
            return Ok(debt);
        }
        if let Some(run) = self.runs.iter().find(|run| self.is_exclusive() && !run.cut && run.keep_at <= now) {
            return Ok((Kind::Keep(run.nonce), TickOp::KeepSlot { nonce: run.nonce, slot: self.rules.slot }));
        }
        if !self.registered {
            return Ok((Kind::Register, self.register()));
        }
        match self.lead {
            Lead::No => {
                let settled = self.settle(now);
                self.ready_debt(now).ok_or([settled, self.next_debt()].into_iter().flatten().min())
            }
            Lead::Loading(_) => Ok((Kind::Load, TickOp::Load)),
            Lead::Led(_) if self.look_at <= now => Ok((Kind::Load, TickOp::Load)),
            // One claim at a time, until it is settled.
            Lead::Led(_) if !self.debts.is_empty() => Err(self.next_debt()),
            Lead::Led(term) => match clock {
                None => Ok((Kind::Load, TickOp::Load)),
                Some(clock) => match self.next_claim(now, clock, term, nonce, notices) {
                    Ok(op) => Ok((Kind::Claim, op)),
                    Err(at) => Err(Some(at.map_or(self.look_at, |at| at.min(self.look_at)))),
                },
            },
        }
    }

    fn term(&self) -> Option<Term> {
        match self.lead {
            Lead::No => None,
            Lead::Loading(term) | Lead::Led(term) => Some(term),
        }
    }

    fn register(&self) -> TickOp {
        let knows = self.vouches || self.is_at_least_once();
        let known = (knows && self.last > 0).then_some(self.last);
        TickOp::Register { schedule: self.text.clone(), known }
    }

    /// A run of the job excludes others.
    fn is_exclusive(&self) -> bool {
        self.policy.overlap == Overlap::Forbid || self.is_at_least_once()
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
