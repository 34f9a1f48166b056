//! The end of an elector, as its locks see it: whoever holds one is waited for like running work, and what outlives that is
//! not given away.

use std::sync::Arc;

use super::{Cell, Entry, Event, Locks, answer, stopped};
use crate::clock::BootInstant;
use crate::lock::name::plain;
use crate::work::RunningWork;

/// So many locks are named.
const SHOWN: usize = 20;

impl Locks {
    /// The shutdown has begun: nobody waits any more but the work that it waits for.
    pub(in crate::driver) fn stop_waiting(&mut self) {
        self.turn_away(|entry| !entry.inside_work);
    }

    fn turn_away(&mut self, whom: impl Fn(&Entry) -> bool) {
        let now = self.now();
        let waiting = self.entries.iter_mut().filter(|(_, entry)| entry.machine.is_waiting() && whom(entry));
        let mut away = Vec::new();
        for (nonce, entry) in waiting {
            answer(entry.acquired.take(), Err(stopped(&entry.cell)));
            entry.has_handle = false;
            away.push(*nonce);
        }
        away.into_iter().for_each(|nonce| self.handle(nonce, now, Event::Leave));
    }

    /// Nobody holds a lock, or waits for one, and all are given back as far as that can be waited for.
    pub(in crate::driver) fn are_quiet(&mut self) -> bool {
        // Whoever has just ended its work has asked for the release before.
        self.read_on();
        self.in_use == 0 && self.leaving == 0
    }

    /// Releases are on their way; they end by themselves, by the operation time-out.
    pub(in crate::driver) fn are_leaving(&self) -> bool {
        self.leaving > 0
    }

    /// Some are held that do not end by being cancelled.
    pub(in crate::driver) fn must_finish(&self) -> bool {
        self.in_use > 0 && self.entries.values().any(|entry| entry.is_in_use() && !entry.cell.is_cancellable())
    }

    /// Work under a lock that may be cancelled is dropped.
    pub(in crate::driver) fn cancel(&self) {
        self.entries.values().for_each(|entry| entry.cell.cancel());
    }

    /// What a shutdown that is not over waits for: the oldest, and how many more there are.
    pub(in crate::driver) fn running(&self) -> Vec<RunningWork> {
        let now = self.now();
        let mut cells: Vec<_> =
            self.entries.values().filter(|entry| entry.is_in_use()).map(|entry| &entry.cell).collect();
        cells.sort_by(|a, b| a.since.cmp(&b.since).then_with(|| a.key.cmp(&b.key)));
        let more = cells.len().saturating_sub(SHOWN);
        let name = |(n, cell): (usize, &&Arc<Cell>)| RunningWork {
            what: if n < SHOWN { plain(&cell.key).to_string() } else { format!("{more} more locks") },
            group: None,
            running_for: now.saturating_since(cell.since),
            is_lock: true,
        };
        cells.iter().enumerate().take(SHOWN + 1).map(name).collect()
    }

    /// From here on nothing is renewed or begun.
    pub(in crate::driver) fn close(&mut self) {
        self.closed = true;
        self.read_on();
        self.turn_away(|_| true);
        let now = self.now();
        let all: Vec<u128> = self.entries.keys().copied().collect();
        all.into_iter().for_each(|nonce| self.handle(nonce, now, Event::StopRenewing));
    }

    pub(in crate::driver) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// After [`close`](Self::close): until all that is held was given back, or has run out.
    pub(in crate::driver) async fn outlive(&mut self, connected: bool) {
        let clock = self.shared.clock.clone();
        if !connected {
            return;
        }
        loop {
            self.advance(self.now(), None);
            let Some(wake) =
                self.next_wake().or_else(|| (!self.calls.is_empty()).then_some(BootInstant::from_nanos(u64::MAX)))
            else {
                return;
            };
            tokio::select! {
                biased;
                happened = self.happened() => self.take_in(happened),
                () = clock.sleep_until(wake) => {}
            }
        }
    }
}

impl Drop for Locks {
    /// The driver has ended, or died: nothing is renewed any more.
    fn drop(&mut self) {
        self.entries.values().for_each(|entry| entry.cell.end());
    }
}
