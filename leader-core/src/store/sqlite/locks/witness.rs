//! What this process has seen of the locks of other clocks, and of those who may hold locks by another file.

use std::collections::HashMap;
use std::time::Duration;

use super::super::life::Strangers;
use crate::clock::BootInstant;

/// The longest that anything is watched: no lock lasts longer, and no place does.
const LONGEST: Duration = Duration::from_secs(3600);

#[derive(Debug, Default)]
pub(in crate::store::sqlite) struct LockWitness {
    /// By whatever shows its last change.
    seen: HashMap<(&'static str, u128), (u64, BootInstant, BootInstant)>,
    swept: Option<BootInstant>,
    /// Those who lived by another file when this process opened this one, and when that was.
    strangers: Option<(Strangers, BootInstant)>,
}

impl LockWitness {
    pub(in crate::store::sqlite) fn new(strangers: Option<Strangers>, now: BootInstant) -> Self {
        Self { strangers: strangers.map(|strangers| (strangers, now)), ..Self::default() }
    }

    /// How long locks that another file holds may still be believed in. Whoever lived by it has found out since that it is
    /// not the one any more, or believes for no longer than it asked for, which was before this file was opened.
    pub(super) fn closed(&mut self, ttl: Duration, now: BootInstant) -> Duration {
        let Some((strangers, since)) = &self.strangers else { return Duration::ZERO };
        let left = since.saturating_add(ttl).saturating_since(now);
        if !left.is_zero() && !strangers.live() {
            self.strangers = None;
            return Duration::ZERO;
        }
        left
    }

    /// Since when what this owner wrote has stood as it is, as far as this process has seen.
    pub(super) fn seen(&mut self, nonce: u128, change: u64, now: BootInstant) -> BootInstant {
        self.seen_in("", nonce, change, now)
    }

    /// The same, where one owner may have written several things.
    pub(in crate::store::sqlite) fn seen_in(
        &mut self,
        what: &'static str,
        nonce: u128,
        change: u64,
        now: BootInstant,
    ) -> BootInstant {
        let (known, since, last) = self.seen.entry((what, nonce)).or_insert((change, now, now));
        if *known != change {
            (*known, *since) = (change, now);
        }
        *last = now;
        *since
    }

    /// It is not of another clock.
    pub(super) fn forget(&mut self, nonce: u128) {
        if !self.seen.is_empty() {
            self.seen.remove(&("", nonce));
        }
    }

    /// Keeps only what was looked at lately.
    pub(super) fn forget_all_but(&mut self, now: BootInstant) {
        self.seen.retain(|_, (_, _, last)| now.saturating_since(*last) <= LONGEST);
    }

    /// There is more to sweep.
    pub(super) fn sweep_soon(&mut self) {
        self.swept = None;
    }

    /// Whether it is so long since the last time that this was answered with yes.
    pub(super) fn is_to_sweep(&mut self, now: BootInstant, every: Duration) -> bool {
        let due = self.swept.is_none_or(|last| now.saturating_since(last) >= every);
        if due {
            self.swept = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn second(n: u64) -> BootInstant {
        BootInstant::from_nanos(n * 1_000_000_000)
    }

    #[test]
    fn each_change_is_seen_anew() {
        let mut witness = LockWitness::default();
        assert_eq!(witness.seen(1, 7, second(10)), second(10));
        assert_eq!(witness.seen(1, 7, second(12)), second(10));
        assert_eq!(witness.seen_in("lock", 1, 7, second(12)), second(12));
        assert_eq!(witness.seen(1, 8, second(13)), second(13));
        witness.forget(1);
        assert_eq!(witness.seen(1, 8, second(14)), second(14));
    }

    #[test]
    fn what_nobody_looks_at_is_forgotten() {
        let mut witness = LockWitness::default();
        witness.seen(1, 7, second(10));
        witness.seen(2, 7, second(20));
        witness.forget_all_but(second(3_611));
        assert_eq!(witness.seen.len(), 1);
        assert!(witness.is_to_sweep(second(1), 10 * S) && !witness.is_to_sweep(second(10), 10 * S));
        assert!(witness.is_to_sweep(second(11), 10 * S));
    }
}
