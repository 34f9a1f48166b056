//! What ends of itself, and when.

use std::thread;
use std::time::Instant;

/// Ends of what has begun.
#[derive(Debug)]
pub struct Agenda<E> {
    ends: Vec<(Instant, E)>,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { ends: Vec::new() }
    }
}

impl<E> Agenda<E> {
    /// This ends then.
    pub fn add(&mut self, at: Instant, end: E) {
        let place = self.ends.partition_point(|(other, _)| *other <= at);
        self.ends.insert(place, (at, end));
    }

    /// Waits for the next end until this instant: it is due; or none is, and the instant has come.
    pub fn wait(&mut self, until: Instant) -> Option<E> {
        let next = self.ends.first().map_or(until, |(at, _)| until.min(*at));
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let due = self.ends.first().is_some_and(|(at, _)| *at <= next);
        due.then(|| self.ends.remove(0).1)
    }

    /// The next end, which comes before its time.
    pub fn pull(&mut self) -> Option<E> {
        (!self.ends.is_empty()).then(|| self.ends.remove(0).1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ends_come_in_the_order_of_their_time_and_none_before_it() {
        let begin = Instant::now();
        let mut agenda = Agenda::default();
        for ms in [30, 10, 3_600_000] {
            agenda.add(begin + Duration::from_millis(ms), ms);
        }
        let until = begin + Duration::from_millis(40);
        for due in [10, 30] {
            assert_eq!(agenda.wait(until), Some(due));
            assert!(begin.elapsed() >= Duration::from_millis(due));
        }
        assert_eq!(agenda.wait(until), None);
        assert!(Instant::now() >= until);
        assert_eq!((agenda.pull(), agenda.pull()), (Some(3_600_000), None));
    }
}
