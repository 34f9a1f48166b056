//! One lock of an elector: its machine, and those who wait to be told.

use std::sync::Arc;

use super::report::LockReport;
use super::{answer, lost};
use crate::clock::BootInstant;
use crate::error::StoreError;
use crate::lock::machine::{Machine, Notice, Span};
use crate::lock::mail::Reply;
use crate::lock::{Cell, LockError, Outcome};
use crate::store::Busy;

/// One attempt, and what came of it.
pub(super) struct Entry {
    pub(super) machine: Machine,
    pub(super) cell: Arc<Cell>,
    pub(super) inside_work: bool,
    /// A handle has it, or waits for it.
    pub(super) has_handle: bool,
    /// Until when it is held.
    pub(super) deadline: Option<BootInstant>,
    /// What it was counted as.
    pub(super) counted: (bool, bool),
    pub(super) span: Option<Span>,
    /// The instant that was chosen in that span.
    pub(super) chosen: BootInstant,
    pub(super) acquired: Option<Reply<Outcome>>,
    pub(super) left: Option<Reply<()>>,
    pub(super) completed: Option<Reply<()>>,
}

impl Entry {
    pub(super) fn is_in_use(&self) -> bool {
        self.has_handle && !self.machine.is_over()
    }

    pub(super) fn tell(&mut self, notice: Notice, error: Option<&StoreError>, address: &str) -> Option<LockReport> {
        let key = || self.cell.key.clone();
        let failed = || {
            let unknown = || StoreError::Unavailable {
                attempted: format!("a lock command on {address}"),
                cause: "nothing is known of the cause".to_owned(),
            };
            LockError::Store { key: key(), error: error.cloned().unwrap_or_else(unknown) }
        };
        match notice {
            Notice::Won(_) => answer(self.acquired.take(), Ok(Outcome::Won)),
            Notice::Done => answer(self.acquired.take(), Ok(Outcome::Done)),
            Notice::Busy(Busy { holder, remaining, ahead, .. }) => {
                answer(self.acquired.take(), Err(LockError::Busy { key: key(), holder, remaining, ahead }));
            }
            Notice::Failed => {
                let failed = failed();
                answer(self.acquired.take(), Err(failed));
            }
            Notice::Late => {
                let attempted = format!("lock on {address}");
                let after = self.cell.clock_now().saturating_since(self.cell.since);
                let error = StoreError::TimedOut { attempted, after };
                answer(self.acquired.take(), Err(LockError::Store { key: key(), error }));
            }
            Notice::Lost(token, why) => {
                self.cell.end();
                return Some(LockReport::Lost { key: key(), token, why });
            }
            Notice::Completed => answer(self.completed.take(), Ok(())),
            Notice::NotCompleted => answer(self.completed.take(), Err(lost(&self.cell))),
            Notice::Released(true) => answer(self.left.take(), Ok(())),
            Notice::Released(false) => answer(self.left.take(), Err(lost(&self.cell))),
            Notice::NotReleased => {
                let failed = failed();
                answer(self.left.take(), Err(failed));
            }
        }
        None
    }
}
