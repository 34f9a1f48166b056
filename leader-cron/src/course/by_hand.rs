//! Runs by hand: outside of the ticks and, where runs exclude each other, never beside another one.
//!
//! The ledger knows nothing of such a run while it is on, and need not: only the leader claims ticks. So it is enough that
//! this instance leads, that it claims nothing meanwhile, that nothing it claimed before is still to be settled, and that the
//! record, read after all that, names no run of another instance; and that the run ends with the lease.

use std::time::Duration;

use leader_core::BootInstant;
use leader_core::store::{HistoryEvent, JobRecord, OpenRun};

use super::{Course, Lead, Notice, Outstanding};

/// Runs by hand, by the numbers that tell them apart.
#[derive(Debug, Default)]
pub(super) struct ByHand {
    /// Begins once the record says that the job is free.
    asked: Option<u128>,
    on: Vec<u128>,
}

impl ByHand {
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_none() && self.on.is_empty()
    }

    pub(super) fn knows(&self, nonce: u128) -> bool {
        self.asked == Some(nonce) || self.on.contains(&nonce)
    }

    /// Whether it was known.
    pub(super) fn forget(&mut self, nonce: u128) -> bool {
        let known = self.knows(nonce);
        self.asked.take_if(|asked| *asked == nonce);
        self.on.retain(|on| *on != nonce);
        known
    }
}

impl Course {
    /// Somebody asks for a run by hand. [`Notice::Free`] or [`Notice::Taken`] answers; or [`Notice::Corrupt`], with which it is
    /// forgotten. Where runs exclude each other, no tick is claimed from now on until it has [ended](Self::ended_by_hand), or
    /// was [refused](Self::refused).
    pub fn ask_by_hand(&mut self, now: BootInstant, nonce: u128, notices: &mut Vec<Notice>) {
        if !self.is_exclusive() {
            self.by_hand.on.push(nonce);
            notices.push(Notice::Free(nonce));
        } else if self.runs.is_empty() && self.by_hand.is_empty() {
            self.by_hand.asked = Some(nonce);
            // A person waits.
            self.retry_at = now;
        } else {
            notices.push(Notice::Taken { nonce, by: None });
        }
    }

    /// The body of this run by hand has ended, as the event says. Whether there was one of this number.
    pub fn ended_by_hand(&mut self, nonce: u128, event: impl FnOnce() -> HistoryEvent) -> bool {
        let known = self.by_hand.forget(nonce);
        if known {
            self.owe_note(nonce, event());
        }
        known
    }

    /// For which run by hand the record has to be read now: nothing is being claimed.
    pub(super) fn asked_by_hand(&self) -> Option<u128> {
        self.by_hand.asked.filter(|_| self.claim.is_none())
    }

    /// A run of a tick begins, which had been claimed before.
    pub(super) fn overtaken_by_hand(&mut self, notices: &mut Vec<Notice>) {
        notices.extend(self.by_hand.asked.take().map(|nonce| Notice::Taken { nonce, by: None }));
    }

    /// A run is on elsewhere, whose end is waited for.
    pub(super) fn kept_waiting_by(&mut self, run: &OpenRun, now_us: u64, notices: &mut Vec<Notice>) {
        notices.extend(self.by_hand.asked.take().map(|nonce| taken(nonce, run, now_us)));
    }

    /// The record is broken.
    pub(super) fn give_up_by_hand(&mut self) {
        self.by_hand.asked = None;
    }

    /// The record was read for it.
    pub(super) fn decide_by_hand(
        &mut self,
        now_us: u64,
        sent: &Outstanding,
        nonce: u128,
        record: &JobRecord,
        notices: &mut Vec<Notice>,
    ) {
        let led = matches!(self.lead, Lead::Led(term) if sent.term == Some(term));
        // Otherwise it is read again, under this term.
        if !led || self.by_hand.asked.take_if(|asked| *asked == nonce).is_none() {
            return;
        }
        match record.open.as_ref().filter(|run| !run.left.is_zero()) {
            Some(run) => notices.push(taken(nonce, run, now_us)),
            None => {
                self.by_hand.on.push(nonce);
                notices.push(Notice::Free(nonce));
            }
        }
    }
}

fn taken(nonce: u128, run: &OpenRun, now_us: u64) -> Notice {
    let since = Duration::from_micros(now_us.saturating_sub(run.began_us));
    Notice::Taken { nonce, by: Some((run.holder.id.clone(), since)) }
}
