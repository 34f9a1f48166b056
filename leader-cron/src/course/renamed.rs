//! A job that had another name: what was claimed under that counts, and ticks that nobody claimed under either are made up for.
//!
//! A new record begins with the last tick of the old one. Whoever leads reads the old record first: nobody else can claim under
//! either name from then on, so, if the store has forgotten nothing since the old record was written, nothing later than the two
//! records tell has been claimed.

use leader_core::BootInstant;
use leader_core::store::{JobName, TickAnswer, TickReply};

use super::answers::BUSY;
use super::{Course, Lead, Notice, Outstanding};

/// The old name.
#[derive(Debug)]
pub(super) struct Renamed {
    pub(super) name: JobName,
    /// Its record was read, before the job was registered under the new one.
    read: bool,
    /// With which tick a new record begins.
    known: Option<i64>,
}

impl Course {
    /// The same, for a job that had this name before, in the same group.
    #[must_use]
    pub fn renamed_from(mut self, name: Option<JobName>) -> Self {
        self.renamed_from = name.map(|name| Renamed { name, read: false, known: None });
        self
    }

    pub(super) fn asks_for_the_old_first(&self) -> bool {
        self.renamed_from.as_ref().is_some_and(|old| !old.read)
    }

    pub(super) fn known_of_the_old(&self) -> Option<i64> {
        self.renamed_from.as_ref()?.known
    }

    /// The ledger told the record under the old name, or that there is none.
    pub(super) fn read_old(
        &mut self,
        now: BootInstant,
        sent: &Outstanding,
        answer: &TickAnswer,
        notices: &mut Vec<Notice>,
    ) {
        let Some(old) = &mut self.renamed_from else { return };
        let record = if let TickReply::Loaded(record) = &answer.reply { Some(record) } else { None };
        // With another schedule the job begins anew, as after any change of it.
        let same = record.filter(|record| record.schedule == self.text);
        (old.read, old.known) = (true, same.map(|record| record.last));
        let Lead::LoadingOld(term) = self.lead else { return };
        if sent.term != Some(term) {
            return;
        }
        let on = record.and_then(|record| record.open.as_ref()).filter(|run| !run.left.is_zero());
        if let Some(run) = on.filter(|_| self.is_exclusive()) {
            // It began under an earlier leader, and under the old name. None begins any more.
            self.retry_at = now.saturating_add(run.left.min(BUSY));
            self.kept_waiting_by(run, answer.now_us, notices);
            return;
        }
        if let Some(record) = same {
            self.last = self.last.max(record.last);
            self.vouches |= record.floor == 0;
        }
        self.lead = Lead::Loading(term);
    }

    /// The store has forgotten the job: what it says of the old name is read again before the job is registered.
    pub(super) fn register_again(&mut self) {
        self.registered = false;
        if let Some(old) = &mut self.renamed_from {
            old.read = false;
        }
    }
}
