//! What the ledger has to be told, and is told until it confirms.

use leader_core::BootInstant;
use leader_core::store::{RunEnd, TickOp};

use super::{Course, Kind};
use crate::policy::Missed;

/// What the ledger has to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Debt {
    /// Not before.
    pub(super) at: BootInstant,
    pub(super) nonce: u128,
    pub(super) tick: i64,
    pub(super) op: TickOp,
}

impl Course {
    pub(super) fn ready_debt(&self, now: BootInstant) -> Option<(Kind, TickOp)> {
        let debt = self.debts.iter().find(|debt| debt.at <= now)?;
        Some((Kind::Debt(debt.nonce), debt.op.clone()))
    }

    pub(super) fn next_debt(&self) -> Option<BootInstant> {
        self.debts.iter().map(|debt| debt.at).min()
    }

    pub(super) fn give_back(&mut self, nonce: u128, tick: i64, begun: bool, at: BootInstant) {
        let keep = self.is_at_least_once() || self.policy.missed == Missed::All;
        self.debts.push_back(Debt { at, nonce, tick, op: TickOp::GiveBack { nonce, begun, keep } });
    }

    pub(super) fn owe_end(&mut self, nonce: u128, tick: i64, end: RunEnd) {
        self.debts.push_back(Debt { at: BootInstant::default(), nonce, tick, op: TickOp::End { nonce, end } });
    }
}
