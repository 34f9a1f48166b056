//! What is due at which reading of the wall clock. Pure: the clock is read by whoever asks.
//!
//! Each tick is computed from the one before it, never from the time of asking. So late asking loses none silently, a clock
//! that is set back finds nothing due until it has caught up with the ticks that were handed out, and one that jumps ahead
//! finds each job due once.

use std::collections::{BTreeMap, BTreeSet};

use crate::rings::patience;
use crate::schedule::Schedule;

/// So many ticks are counted one by one when a job is found late; past that the count is a lower bound.
const COUNTED: u64 = 10_000;

/// The next tick of every job.
#[derive(Debug, Default)]
pub(crate) struct Timetable {
    /// By the number of the job.
    rows: BTreeMap<usize, Row>,
    /// When a job is due, in Unix seconds, and which.
    due: BTreeSet<(i64, usize)>,
}

#[derive(Debug)]
struct Row {
    schedule: Schedule,
    /// Its next tick.
    next: Option<i64>,
    /// When somebody else's scheduler said last that a tick has come; none if it never did, or one waited for it in vain.
    rung: Option<i64>,
}

impl Row {
    /// When its next tick is due: later, if that waits for a ring.
    fn due(&self) -> Option<i64> {
        let tick = self.next?;
        let Some(rung) = self.rung else { return Some(tick) };
        let patience = patience(&self.schedule, tick);
        Some(if rung + patience < tick { tick + patience } else { tick })
    }
}

/// A job that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// Its number.
    pub(crate) job: usize,
    /// The newest tick that has come, in Unix seconds.
    pub(crate) tick: i64,
    /// How many came before it since the last time; at least so many, if they are more than can be counted quickly.
    pub(crate) missed: u64,
    /// The tick that comes next; `None` if that was the last.
    pub(crate) next: Option<i64>,
}

impl Timetable {
    /// Adds a job, by its number, with the ticks that come after `now`. Its first tick.
    pub(crate) fn add(&mut self, job: usize, schedule: Schedule, now: i64) -> Option<i64> {
        let next = schedule.next_after(now);
        self.due.extend(next.map(|next| (next, job)));
        self.rows.insert(job, Row { schedule, next, rung: None });
        next
    }

    pub(crate) fn remove(&mut self, job: usize) {
        self.rows.remove(&job);
        self.due.retain(|(_, of)| *of != job);
    }

    /// Somebody else's scheduler says that a tick of this job has come.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub(crate) fn ring(&mut self, job: usize, now: i64) {
        let Some(row) = self.rows.get_mut(&job) else { return };
        if let Some(due) = row.due() {
            self.due.remove(&(due, job));
        }
        row.rung = Some(now);
        self.due.extend(row.due().map(|due| (due, job)));
    }

    /// When something is due next, in Unix seconds.
    pub(crate) fn next(&self) -> Option<i64> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Takes one job that is due at `now`, if there is one, with its newest tick.
    pub(crate) fn take_due(&mut self, now: i64) -> Option<Due> {
        self.next().filter(|due| *due <= now)?;
        let (due, job) = self.due.pop_first()?;
        let row = self.rows.get_mut(&job)?;
        let first = row.next?;
        if due > first {
            // It waited for a ring, in vain.
            row.rung = None;
        }
        let (mut tick, mut missed) = (first, 0);
        let mut next = row.schedule.next_after(tick);
        while let Some(later) = next.filter(|later| *later <= now) {
            if missed == COUNTED {
                tick = row.schedule.last_until(tick, now).unwrap_or(later);
                next = row.schedule.next_after(tick);
                break;
            }
            missed += 1;
            tick = later;
            next = row.schedule.next_after(tick);
        }
        row.next = next;
        self.due.extend(row.due().map(|due| (due, job)));
        Some(Due { job, tick, missed, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round hour.
    const START: i64 = 1_800_000_000;

    fn timetable(expressions: &[&str]) -> Timetable {
        let mut timetable = Timetable::default();
        for (job, expression) in expressions.iter().enumerate() {
            timetable.add(job, Schedule::parse(expression, None).unwrap(), START);
        }
        timetable
    }

    fn all_due(timetable: &mut Timetable, now: i64) -> Vec<Due> {
        std::iter::from_fn(|| timetable.take_due(now)).collect()
    }

    #[test]
    fn each_tick_is_handed_out_once_and_none_before_its_time() {
        let mut timetable = timetable(&["* * * * * *", "*/2 * * * * *"]);
        let mut ticks = [Vec::new(), Vec::new()];
        for now in START..=START + 10 {
            for _ in 0..3 {
                for due in all_due(&mut timetable, now) {
                    assert_eq!((due.tick, due.missed), (now, 0));
                    ticks[due.job].push(due.tick - START);
                }
            }
        }
        assert_eq!(ticks[0], (1..=10).collect::<Vec<_>>());
        assert_eq!(ticks[1], [2, 4, 6, 8, 10]);
    }

    #[test]
    fn the_tick_of_the_starting_second_is_over() {
        assert_eq!(timetable(&["* * * * * *"]).next(), Some(START + 1));
    }

    #[test]
    fn a_clock_that_is_set_back_runs_no_tick_again() {
        let mut timetable = timetable(&["* * * * * *"]);
        assert_eq!(all_due(&mut timetable, START + 1).len(), 1);
        for now in START - 3600..START + 2 {
            assert_eq!(all_due(&mut timetable, now), [], "{}", now - START);
        }
        assert_eq!(all_due(&mut timetable, START + 2).len(), 1);
    }

    #[test]
    fn a_clock_that_jumps_ahead_finds_the_newest_tick_and_counts_the_others() {
        let mut timetable = timetable(&["* * * * * *", "0 */5 * * * *"]);
        let now = START + 3600;
        let expected = [
            Due { job: 0, tick: now, missed: 3599, next: Some(now + 1) },
            Due { job: 1, tick: now, missed: 11, next: Some(now + 300) },
        ];
        assert_eq!(all_due(&mut timetable, now), expected);
    }

    #[test]
    fn years_of_missed_seconds_are_not_walked() {
        let mut timetable = timetable(&["* * * * * *"]);
        let now = START + 10 * 365 * 86_400;
        let expected = Due { job: 0, tick: now, missed: COUNTED, next: Some(now + 1) };
        assert_eq!(all_due(&mut timetable, now), [expected]);
    }

    #[test]
    fn a_job_that_was_taken_out_is_due_no_more() {
        let mut timetable = timetable(&["* * * * * *", "* * * * * *"]);
        timetable.remove(0);
        assert_eq!(all_due(&mut timetable, START + 1).iter().map(|due| due.job).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn the_last_tick_of_a_schedule_ends_that_job_only() {
        let year = 2027;
        let mut timetable = timetable(&[&format!("0 0 0 1 2 * {year}"), "@daily"]);
        let ends = all_due(&mut timetable, START + 366 * 86_400);
        assert_eq!(ends.iter().map(|due| (due.job, due.next.is_none())).collect::<Vec<_>>(), [(1, false), (0, true)]);
        assert_eq!(timetable.take_due(START + 366 * 86_400), None);
        assert!(timetable.take_due(START + 367 * 86_400).is_some_and(|due| due.job == 1));
    }

    /// The ticks that are handed out while nobody rings from `from` to `to`, and when.
    #[cfg(feature = "tokio-cron-scheduler")]
    fn walked(timetable: &mut Timetable, from: i64, to: i64) -> Vec<(i64, i64)> {
        let walk = (from..=to).flat_map(|now| all_due(timetable, START + now).into_iter().map(move |due| (now, due)));
        walk.map(|(now, due)| (now, due.tick - START)).collect()
    }

    #[cfg(feature = "tokio-cron-scheduler")]
    #[test]
    fn a_tick_waits_for_its_ring_and_one_in_vain_is_the_last_that_does() {
        let mut timetable = timetable(&["*/10 * * * * *"]);
        // Never rung.
        assert_eq!(walked(&mut timetable, 0, 10), [(10, 10)]);
        timetable.ring(0, START + 10);
        assert_eq!(walked(&mut timetable, 11, 20), []);
        timetable.ring(0, START + 20);
        timetable.ring(0, START + 20);
        assert_eq!(walked(&mut timetable, 20, 21), [(20, 20)]);
        // Twice, early by far, and early by what clocks differ.
        timetable.ring(0, START + 21);
        timetable.ring(0, START + 25);
        assert_eq!(walked(&mut timetable, 21, 27), []);
        timetable.ring(0, START + 28);
        assert_eq!(walked(&mut timetable, 28, 31), [(30, 30)]);
        // And no more.
        assert_eq!(walked(&mut timetable, 32, 60), [(42, 40), (50, 50), (60, 60)]);
    }
}
