//! The ledger's rules on one record in memory.

use std::time::Duration;

use leader_core::store::{TickAnswer, TickCommand};
use leader_core::testing::ledger::{Record, Seen, decide};
use leader_core::{Candidate, Term};

/// A store that knows one job and one lease, and forgets nothing.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) lease: Option<(Candidate, Term)>,
    record: Option<Record>,
    lost: Option<i64>,
    /// When the slot of the open run ends, in true time.
    slot_end: u64,
}

impl Store {
    /// Executes a command at the true time `at`, when its clock shows `now_us`. `forgets`: and writes nothing down.
    pub(super) fn execute(&mut self, at: u64, now_us: u64, command: &TickCommand, forgets: bool) -> TickAnswer {
        let decision = decide(
            Seen {
                record: Ok(self.record.clone()),
                left: Duration::from_nanos(self.slot_end.saturating_sub(at)),
                lease: self.lease.as_ref().map(|(holder, term)| (holder, *term)),
                now_us,
                identity: "1",
                lost: self.lost,
                other_last: Ok(None),
            },
            command,
        );
        if forgets {
            return TickAnswer { now_us, reply: decision.reply };
        }
        if let Some(slot) = decision.change.slot {
            self.slot_end = at + slot.as_nanos() as u64;
        }
        self.record = decision.change.record.or(self.record.take());
        self.lost = decision.change.lost.or(self.lost);
        TickAnswer { now_us, reply: decision.reply }
    }

    /// When the job's record began, in seconds of the store's clock.
    pub(super) fn since(&self) -> Option<i64> {
        self.record.as_ref().map(|record| record.since)
    }
}
