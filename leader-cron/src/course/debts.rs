//! What the ledger has to be told, and is told until it confirms.

use std::collections::VecDeque;

use leader_core::BootInstant;
use leader_core::store::{HistoryEvent, Missed as MissedTicks, RunEnd, TickOp, TickReply};

use super::{Course, Kind, Notice};
use crate::plan::{Gap, Reason};
use crate::policy::Missed;

/// What the ledger has to be told, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Debts {
    all: VecDeque<Debt>,
    last: u64,
}

#[derive(Debug)]
struct Debt {
    number: u64,
    /// Not before.
    at: BootInstant,
    /// Of the run that it is about; that run is settled when the debt is.
    nonce: Option<u128>,
    tick: i64,
    op: TickOp,
}

impl Debts {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether something is owed about this run.
    pub(super) fn are_of(&self, nonce: u128) -> bool {
        self.all.iter().any(|debt| debt.nonce == Some(nonce))
    }

    pub(super) fn ready(&self, now: BootInstant) -> Option<(Kind, TickOp)> {
        let debt = self.all.iter().find(|debt| debt.at <= now)?;
        Some((Kind::Debt(debt.number), debt.op.clone()))
    }

    pub(super) fn next(&self) -> Option<BootInstant> {
        self.all.iter().map(|debt| debt.at).min()
    }

    /// It is a line of the history, and nothing else.
    pub(super) fn is_note(&self, number: u64) -> bool {
        self.all.iter().any(|debt| debt.number == number && matches!(debt.op, TickOp::Note(_)))
    }

    /// It is owed no more.
    pub(super) fn forget(&mut self, number: u64) {
        self.all.retain(|debt| debt.number != number);
    }

    fn settle(&mut self, number: u64) -> Option<Debt> {
        let place = self.all.iter().position(|debt| debt.number == number)?;
        self.all.remove(place)
    }

    fn owe(&mut self, at: BootInstant, nonce: Option<u128>, tick: i64, op: TickOp) {
        self.last += 1;
        self.all.push_back(Debt { number: self.last, at, nonce, tick, op });
    }
}

impl Course {
    pub(super) fn give_back(&mut self, nonce: u128, tick: i64, begun: bool, at: BootInstant) {
        let keep = self.is_at_least_once() || self.policy.missed == Missed::All;
        self.debts.owe(at, Some(nonce), tick, TickOp::GiveBack { nonce, begun, keep });
    }

    pub(super) fn owe_end(&mut self, nonce: u128, tick: i64, end: RunEnd) {
        self.debts.owe(BootInstant::default(), Some(nonce), tick, TickOp::End { nonce, end });
    }

    /// The run of this number was outside of the ticks.
    pub(super) fn owe_note(&mut self, nonce: u128, event: HistoryEvent) {
        self.debts.owe(BootInstant::default(), Some(nonce), 0, TickOp::Note(event));
    }

    /// These ticks are not run, and no claim says so: the history does.
    pub(super) fn pass_over(&mut self, gap: Gap, notices: &mut Vec<Notice>) {
        self.owe_missed(gap);
        notices.push(Notice::Missed(gap));
    }

    pub(super) fn owe_missed(&mut self, gap: Gap) {
        let missed = MissedTicks { from: gap.from, count: gap.count, reason: gap.reason.to_string() };
        self.debts.owe(BootInstant::default(), None, gap.from, TickOp::Note(HistoryEvent::Missed(missed)));
    }

    /// The ledger was told.
    pub(super) fn told(&mut self, number: u64, reply: &TickReply, notices: &mut Vec<Notice>) {
        let Some(debt) = self.debts.settle(number) else { return };
        match *reply {
            // Due again.
            TickReply::Returned => self.take = self.take.or(Some(debt.tick)),
            TickReply::Superseded { tick } => {
                notices.push(Notice::Superseded(tick));
                if matches!(debt.op, TickOp::GiveBack { begun: false, .. }) {
                    self.owe_missed(Gap { from: tick, count: 1, reason: Reason::Coalesced });
                }
            }
            _ => {}
        }
    }
}
