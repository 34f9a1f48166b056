//! When a machine acts: how long what it has lasts, and when it asks next.

use std::time::Duration;

use super::super::Span;
use super::{Machine, Outstanding};
use crate::clock::BootInstant;
use crate::store::Busy;

/// Time from one question of one who waits to the next, if nothing wakes it before: so long lasts a gap that a lost
/// announcement makes.
pub(super) const REFRESH: Duration = Duration::from_secs(1);
/// One who waits for a lock of another implementation, which announces nothing, asks after so long at the earliest.
const FOREIGN: Duration = Duration::from_millis(250);
/// So many who wait behind a place that nobody makes use of look for its end.
const FEW: u32 = 8;
/// A store that was away is asked again after so long at most: others may wait for what is to be given back or noted.
const SLOWEST: Duration = Duration::from_secs(10);
/// What is added to the time that the store gave: it may have been rounded down.
const ROUNDING: Duration = Duration::from_millis(1);

/// When one who waits asks again, by what it was answered.
pub(super) fn next_question(now: BootInstant, busy: &Busy) -> Span {
    let foreign = busy.holder.is_none() && busy.ahead == 0;
    let ends = now.saturating_add(busy.remaining.saturating_add(ROUNDING));
    // Who is next has to be there when the lock ends by itself. If it is free, the first in the queue may have ended, and
    // some behind it, too: a few of the others look when its place ends.
    let is_next = busy.ahead == 0 || (busy.ahead <= FEW && busy.holder.is_none());
    let refresh = now.saturating_add(REFRESH);
    if foreign {
        Span { earliest: now.saturating_add(FOREIGN), latest: refresh }.before(ends)
    } else if is_next && ends < refresh {
        Span::at(ends)
    } else {
        Span { earliest: refresh.saturating_sub(REFRESH / 8), latest: refresh }
    }
}

impl Machine {
    /// How long a place in the queue lasts: some questions, and one that takes all the time that it may.
    pub(super) fn place(&self) -> Duration {
        (3 * REFRESH).saturating_add(self.rules.operation_timeout)
    }

    pub(super) fn deadline(&self, sent: &Outstanding) -> BootInstant {
        #[cfg(feature = "testing")]
        if self.rules.known_bad == Some(crate::election::KnownBad::NoDeadline) {
            return BootInstant::from_nanos(u64::MAX);
        }
        sent.sent.saturating_add(self.rules.ttl.saturating_sub(self.rules.guard))
    }

    pub(super) fn renew_window(&self, sent: BootInstant) -> Span {
        let heartbeat = self.rules.ttl / 3;
        let latest = sent.saturating_add(heartbeat);
        Span { earliest: latest.saturating_sub(heartbeat / 8), latest }
    }

    /// At once, if it was announced meanwhile that it is worth it.
    pub(super) fn retry_at(&mut self, now: BootInstant, most: Duration) -> Span {
        if std::mem::take(&mut self.woken) { Span::at(now) } else { self.retry_window(now, most.min(SLOWEST)) }
    }

    /// Jitter only shortens; back-off begins with the second failure in a row.
    fn retry_window(&self, now: BootInstant, most: Duration) -> Span {
        let doublings = self.failures.saturating_sub(1).min(16);
        let wait = self.rules.retry.saturating_mul(1 << doublings).min(most.max(self.rules.retry));
        Span { earliest: now.saturating_add(wait / 2), latest: now.saturating_add(wait) }
    }
}
