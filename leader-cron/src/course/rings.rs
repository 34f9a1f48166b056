//! A job that somebody else's scheduler wakes: its ordinary ticks wait for a ring.

use leader_core::BootInstant;

use super::Course;
use crate::plan::{Due, MICROS};
use crate::rings::patience;

impl Course {
    /// A scheduler outside says that a tick has come.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub fn ring(&mut self, now: BootInstant) {
        self.rung = Some(now);
    }

    /// Until when, by the store's clock, a tick that is due waits for its ring. Nothing that is late for another reason waits.
    pub(super) fn waits_for_ring(&mut self, now: BootInstant, store_now: i64, due: &Due) -> Option<i64> {
        let rung = i64::try_from(now.saturating_since(self.rung?).as_micros()).unwrap_or(i64::MAX);
        let rung = store_now.saturating_sub(rung);
        // One that is run only while it is young is still young then: the claim takes its time, too.
        let young = i64::try_from(self.policy.within().as_secs() / 2).unwrap_or(i64::MAX);
        let (tick, patience) = (due.tick * MICROS, patience(&self.schedule, due.tick).min(young) * MICROS);
        if rung.saturating_add(patience) >= tick {
            return None;
        }
        let until = tick + patience;
        if due.missed.is_some() || until <= store_now {
            // In vain: the next ones do not wait, before it rings again.
            self.rung = None;
            return None;
        }
        Some(until)
    }
}
