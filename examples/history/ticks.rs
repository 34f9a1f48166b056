//! Which ticks ran, and how often.

use std::collections::{BTreeMap, BTreeSet};

use super::History;

/// One scheduled instant of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick {
    /// The job's name.
    pub job: String,
    /// The intended time, in seconds since 1970-01-01 00:00 UTC.
    pub unix_seconds: i64,
}

/// What became of the ticks that were expected, and of others that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticks {
    /// How many were expected.
    pub expected: usize,
    /// How many of those ran.
    pub ran: usize,
    /// Those that did not run.
    pub lost: Vec<Tick>,
    /// Every tick that ran more than once, expected or not.
    pub doubled: Vec<Tick>,
}

impl History {
    /// Compares the runs with the ticks that were `expected`.
    #[must_use]
    pub fn ticks(&self, expected: &BTreeSet<Tick>) -> Ticks {
        let mut runs: BTreeMap<Tick, usize> = BTreeMap::new();
        for run in self.runs() {
            *runs.entry(Tick { job: run.job.clone(), unix_seconds: run.tick }).or_default() += 1;
        }
        let lost: Vec<Tick> = expected.iter().filter(|tick| !runs.contains_key(tick)).cloned().collect();
        let doubled = runs.into_iter().filter(|(_, times)| *times > 1).map(|(tick, _)| tick).collect();
        Ticks { expected: expected.len(), ran: expected.len() - lost.len(), lost, doubled }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Run;
    use super::*;

    fn tick(unix_seconds: i64) -> Tick {
        Tick { job: "report".to_owned(), unix_seconds }
    }

    fn history(ticks: &[(&str, i64)]) -> History {
        let mut history = History::default();
        history.extend(ticks.iter().map(|&(instance, tick)| Run {
            job: "report".to_owned(),
            tick,
            instance: instance.to_owned(),
            term: 1,
            began_ns: 0,
            ended_ns: 1,
        }));
        history
    }

    #[test]
    fn lost_and_doubled_ticks_are_found() {
        let expected = (1..=4).map(tick).collect();
        let ticks = history(&[("a", 1), ("a", 2), ("b", 2), ("b", 4)]).ticks(&expected);
        assert_eq!(ticks, Ticks { expected: 4, ran: 3, lost: vec![tick(3)], doubled: vec![tick(2)] });
    }

    #[test]
    fn a_doubled_tick_counts_also_when_it_was_not_expected() {
        let ticks = history(&[("a", 9), ("b", 9), ("b", 1)]).ticks(&BTreeSet::from([tick(1)]));
        assert_eq!(ticks, Ticks { expected: 1, ran: 1, lost: vec![], doubled: vec![tick(9)] });
    }

    #[test]
    fn the_same_second_of_two_jobs_is_two_ticks() {
        let mut history = history(&[("a", 1)]);
        let other = Run { job: "cleanup".into(), tick: 1, instance: "a".into(), term: 1, began_ns: 0, ended_ns: 1 };
        history.add(other);
        assert_eq!(history.ticks(&BTreeSet::new()).doubled, []);
    }
}
