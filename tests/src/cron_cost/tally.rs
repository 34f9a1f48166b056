//! What the bodies of one turn write down, and what that comes to.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The ticks of all jobs in a span of time that is set when all of them are known: how late each was run, and how often.
#[derive(Debug)]
pub(super) struct Tally {
    jobs: usize,
    seconds: usize,
    /// The first second that counts, since 1970.
    first: OnceLock<u64>,
    /// By second and job: 0, or one more than the lateness in microseconds.
    late: Vec<AtomicU32>,
    again: AtomicU64,
}

/// What one turn came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// Ticks that were due.
    pub due: u64,
    /// Those of them that were run.
    pub ran: u64,
    /// Runs of a tick that had been run.
    pub again: u64,
    /// Half of the runs began later than this after their tick, in milliseconds.
    pub p50_ms: f64,
    /// One in a hundred did.
    pub p99_ms: f64,
    /// The latest.
    pub max_ms: f64,
    /// Processor time of the process, as a part of the time that passed.
    pub cpu: f64,
    /// That of the store's server.
    pub server_cpu: f64,
}

impl Tally {
    pub(super) fn new(jobs: usize, seconds: u32) -> Self {
        let seconds = seconds as usize;
        let late = (0..jobs * seconds).map(|_| AtomicU32::new(0)).collect();
        Self { jobs, seconds, first: OnceLock::new(), late, again: AtomicU64::new(0) }
    }

    /// Counting begins with this second.
    pub(super) fn begin(&self, first: u64) {
        let _ = self.first.set(first);
    }

    /// A body of this job began now, for this tick; without one, for the last whole second: who is not told its tick, and is
    /// later than a second, gets away with it.
    pub(super) fn note(&self, job: usize, tick: Option<u64>) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let tick = tick.unwrap_or(now.as_secs());
        let Some(second) = self.first.get().and_then(|first| tick.checked_sub(*first)) else { return };
        let Some(place) = usize::try_from(second).ok().filter(|second| *second < self.seconds) else { return };
        let late = now.saturating_sub(Duration::from_secs(tick)).as_micros();
        let late = u32::try_from(late).unwrap_or(u32::MAX - 1) + 1;
        if self.late[place * self.jobs + job].compare_exchange(0, late, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            self.again.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn figures(&self, cpu: f64, server_cpu: f64) -> Figures {
        let mut late: Vec<u32> =
            self.late.iter().map(|late| late.load(Ordering::Relaxed)).filter(|late| *late > 0).collect();
        late.sort_unstable();
        let part = |part: f64| {
            let at = ((late.len() as f64 * part) as usize).min(late.len().saturating_sub(1));
            late.get(at).map_or(f64::NAN, |late| f64::from(*late - 1) / 1_000.0)
        };
        Figures {
            due: self.late.len() as u64,
            ran: late.len() as u64,
            again: self.again.load(Ordering::Relaxed),
            p50_ms: part(0.5),
            p99_ms: part(0.99),
            max_ms: part(1.0),
            cpu,
            server_cpu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_counts_once_and_one_outside_of_the_time_not_at_all() {
        let tally = Tally::new(2, 3);
        tally.note(0, Some(100));
        tally.begin(100);
        for tick in [99, 100, 100, 102, 103] {
            tally.note(1, Some(tick));
        }
        let figures = tally.figures(0.0, 0.0);
        assert_eq!((figures.due, figures.ran, figures.again), (6, 2, 1));
    }
}
