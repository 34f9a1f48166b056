//! The slots of runs: kept for as long as a run is on, which is cut when its slot ends all the same.

use leader_core::BootInstant;

use super::{Course, Notice, Outstanding, Run};

impl Course {
    pub(super) fn cut_what_ran_out(&mut self, now: BootInstant, notices: &mut Vec<Notice>) {
        if !self.is_exclusive() {
            return;
        }
        for run in self.runs.iter_mut().filter(|run| !run.cut && run.slot_until <= now) {
            run.cut = true;
            notices.push(Notice::Cut(run.nonce));
        }
    }

    pub(super) fn next_slot_end(&self) -> Option<BootInstant> {
        self.slots().map(|run| run.slot_until).min()
    }

    pub(super) fn next_keep(&self) -> Option<BootInstant> {
        self.slots().map(|run| run.keep_at).min()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| self.is_exclusive() && !run.cut)
    }

    /// The store answered whether it keeps a slot.
    pub(super) fn kept(&mut self, sent: &Outstanding, nonce: u128, kept: bool, notices: &mut Vec<Notice>) {
        let rules = self.rules;
        let Some(run) = self.runs.iter_mut().find(|run| run.nonce == nonce && !run.cut) else { return };
        if kept {
            run.slot_until = run.slot_until.max(sent.sent.saturating_add(rules.slot.saturating_sub(rules.guard)));
            run.keep_at = sent.sent.saturating_add(rules.slot / 3);
        } else {
            run.cut = true;
            notices.push(Notice::Cut(nonce));
        }
    }
}
