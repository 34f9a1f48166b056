//! How far a chaos has come, by the lines so far.

use std::collections::{BTreeMap, BTreeSet};

use super::jobs::Facts;
use super::line::Line;

/// A tick that dies so often is given up.
const ATTEMPTS: u32 = 3;

/// What the lines tell so far.
#[derive(Default)]
pub(crate) struct Progress {
    /// Jobs that are run at least once.
    to_the_end: BTreeSet<String>,
    /// Who was the last to lead, and since when.
    leader: Option<(u64, String)>,
    /// The newest tick of each job that was begun.
    newest: BTreeMap<String, i64>,
    /// Their runs that have not ended.
    open: BTreeMap<(String, u64), (String, i64)>,
    /// Runs that began before this instant of the boot clock may have been forgotten.
    forgot_ns: u64,
    /// Their ticks that have, or were begun for the last time.
    ended: BTreeSet<(String, i64)>,
}

impl Progress {
    pub(crate) fn of(jobs: &[Facts]) -> Self {
        let to_the_end = jobs.iter().filter(|job| job.kind.is_at_least_once()).map(|job| job.name.clone()).collect();
        Self { to_the_end, ..Self::default() }
    }

    /// Who was the last to lead.
    pub(crate) fn leader(&self) -> Option<&str> {
        self.leader.as_ref().map(|(_, label)| label.as_str())
    }

    pub(crate) fn all_have_begun(&self, jobs: &[Facts]) -> bool {
        self.newest.len() == jobs.len()
    }

    /// All ticks up to this second are over, and, unless nobody repeats them, what is run until it ends has ended.
    pub(crate) fn is_over(&self, jobs: &[Facts], until: i64, without_ledger: bool) -> bool {
        let newest = |job: &Facts| self.newest.get(&job.name).is_some_and(|tick| *tick > until);
        jobs.iter().all(newest) && (without_ledger || !self.open.values().any(|open| self.waits(open, until)))
    }

    /// This tick of a job is to end before all up to this second is over.
    fn waits(&self, open: &(String, i64), until: i64) -> bool {
        open.1 <= until && !self.ended.contains(open)
    }

    /// Changes as long as there is something to wait for, and it comes nearer: the newest ticks of jobs that are behind, added
    /// up, and how many runs are waited for.
    pub(crate) fn lag(&self, jobs: &[Facts], until: i64) -> (i64, usize) {
        let newest = jobs.iter().filter_map(|job| self.newest.get(&job.name)).filter(|tick| **tick <= until);
        (newest.sum(), self.open.values().filter(|open| self.waits(open, until)).count())
    }

    /// No run that began before this instant is waited for: the store has forgotten it.
    pub(crate) fn forget_open(&mut self, before_ns: u64) {
        self.open.clear();
        self.forgot_ns = before_ns;
    }

    /// Nobody asks any more about ticks before this second.
    pub(crate) fn forget_before(&mut self, second: i64) {
        self.ended.retain(|(_, tick)| *tick >= second);
        self.open.retain(|_, (_, tick)| *tick >= second);
    }

    pub(crate) fn note(&mut self, label: &str, line: &Line) {
        match line {
            Line::Leads { at_ns, .. } if self.leader.as_ref().is_none_or(|(since, _)| since < at_ns) => {
                self.leader = Some((*at_ns, label.to_owned()));
            }
            Line::Began { run, job, tick, attempt, at_ns, .. } => {
                let newest = self.newest.entry(job.clone()).or_insert(*tick);
                *newest = (*newest).max(*tick);
                if *attempt >= ATTEMPTS {
                    self.ended.insert((job.clone(), *tick));
                } else if self.to_the_end.contains(job) && *at_ns >= self.forgot_ns {
                    self.open.insert((label.to_owned(), *run), (job.clone(), *tick));
                }
            }
            Line::Ended { run, .. } => {
                let tick = self.open.remove(&(label.to_owned(), *run));
                self.ended.extend(tick);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron_chaos::jobs::Jobs;

    fn began(run: u64, tick: i64) -> Line {
        Line::Began {
            run,
            job: "again-0".to_owned(),
            tick,
            attempt: 1,
            missed: 0,
            term: 1,
            instance: "a".to_owned(),
            at_ns: run,
            true_us: 0,
            own_us: 0,
        }
    }

    #[test]
    fn what_comes_later_is_no_progress_of_what_is_waited_for() {
        let jobs: Vec<_> = Jobs::All(1).list().into_iter().filter(|job| job.name == "again-0").collect();
        let mut progress = Progress::of(&jobs);
        progress.note("a", &began(1, 10));
        progress.note("a", &began(2, 20));
        let lag = progress.lag(&jobs, 10);
        assert!(!progress.is_over(&jobs, 10, false));
        progress.note("a", &began(3, 30));
        assert_eq!(progress.lag(&jobs, 10), lag, "the first run has died");
        progress.note("b", &began(1, 10));
        progress.note("b", &Line::Ended { run: 1, at_ns: 5 });
        assert_ne!(progress.lag(&jobs, 10), lag);
        assert!(progress.is_over(&jobs, 10, false));
    }

    #[test]
    fn what_was_forgotten_is_not_waited_for_also_if_its_line_is_read_later() {
        let jobs: Vec<_> = Jobs::All(1).list().into_iter().filter(|job| job.name == "again-0").collect();
        let mut progress = Progress::of(&jobs);
        progress.note("a", &began(1, 10));
        progress.forget_open(3);
        progress.note("a", &began(2, 20));
        assert!(progress.is_over(&jobs, 19, false));
        progress.note("a", &began(3, 21));
        progress.note("a", &began(4, 30));
        assert!(!progress.is_over(&jobs, 21, false));
    }
}
