//! One lock of an elector: its machine, and those who wait to be told.

use std::sync::Arc;
use std::time::Duration;

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
    /// What the store last failed at, if it has not answered since.
    pub(super) trouble: Option<StoreError>,
    /// It was held at some time.
    pub(super) taken: bool,
    /// That it waits was told.
    pub(super) waiting_told: bool,
}

/// After so long that one waits is told: somewhat less than what one question is apart from the next.
const LONG_WAIT: Duration = Duration::from_millis(800);

impl Entry {
    pub(super) fn is_in_use(&self) -> bool {
        self.has_handle && !self.machine.is_over()
    }

    /// What there is to say of a wait, once: after an answer of the store, or a failure, in the time that it has lasted.
    pub(super) fn long_wait(&mut self, now: BootInstant, error: Option<&StoreError>) -> Option<LockReport> {
        let waits = self.has_handle && self.machine.is_waiting();
        if self.waiting_told || !waits || now.saturating_since(self.cell.since) < LONG_WAIT {
            return None;
        }
        let (busy, error) = (self.machine.waits_for().cloned(), error.cloned());
        self.waiting_told = busy.is_some() || error.is_some();
        self.waiting_told.then(|| LockReport::Waiting { key: self.cell.key.clone(), busy, error })
    }

    pub(super) fn tell(&mut self, notice: Notice, error: Option<&StoreError>, address: &str) -> Option<LockReport> {
        let key = || self.cell.key.clone();
        let cause = || {
            let unknown = || StoreError::Unavailable {
                attempted: format!("a lock command on {address}"),
                cause: "nothing is known of the cause".to_owned(),
            };
            error.or(self.trouble.as_ref()).cloned().unwrap_or_else(unknown)
        };
        match notice {
            Notice::Won(token) => {
                let waited = self.cell.clock_now().saturating_since(self.cell.since);
                let report = LockReport::Taken { key: key(), token, waited };
                self.taken = true;
                answer(self.acquired.take(), Ok(Outcome::Won));
                return Some(report);
            }
            Notice::Done => answer(self.acquired.take(), Ok(Outcome::Done)),
            Notice::Busy(Busy { holder, remaining, ahead, .. }) => {
                let own = holder.as_ref() == Some(&self.cell.owner.candidate.id);
                answer(self.acquired.take(), Err(LockError::Busy { key: key(), holder, own, remaining, ahead }));
            }
            Notice::Failed => {
                let failed = LockError::Store { key: key(), error: cause() };
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
            Notice::Completed => {
                answer(self.completed.take(), Ok(()));
                return Some(LockReport::Completed { key: key(), token: self.cell.token() });
            }
            Notice::NotCompleted => answer(self.completed.take(), Err(lost(&self.cell))),
            Notice::Unconfirmed(token) => {
                let unconfirmed = LockError::Unconfirmed { key: key(), token, error: cause() };
                answer(self.completed.take(), Err(unconfirmed));
            }
            Notice::Released(true) => {
                answer(self.left.take(), Ok(()));
                // One that was given up before may have left a place in the queue, or nothing.
                return self.taken.then(|| LockReport::Released { key: key(), token: self.cell.token() });
            }
            Notice::Released(false) => answer(self.left.take(), Err(lost(&self.cell))),
            Notice::NotReleased => {
                let (token, error) = (self.cell.token(), cause());
                answer(self.left.take(), Err(LockError::Unconfirmed { key: key(), token, error }));
            }
        }
        None
    }
}
