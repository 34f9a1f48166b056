//! Spans of time, in nanoseconds of the boot clock.

/// Spans that may overlap each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// Adds what lies within the window.
    pub(super) fn add(&mut self, (from, to): (u64, u64), window: (u64, u64)) {
        let (from, to) = (from.max(window.0), to.min(window.1));
        if from < to {
            self.0.push((from, to));
        }
    }

    /// In order, and none touches another.
    fn apart(&self) -> Vec<(u64, u64)> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let mut apart: Vec<(u64, u64)> = Vec::new();
        for (from, to) in sorted {
            match apart.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => apart.push((from, to)),
            }
        }
        apart
    }

    /// How long they are together, what they share counted once.
    pub(super) fn length(&self) -> u64 {
        self.apart().iter().map(|(from, to)| to - from).sum()
    }

    /// How much of them lies outside of the others.
    pub(super) fn length_without(&self, others: &Self) -> u64 {
        let shared = |(from, to): (u64, u64)| {
            let mut both = Self::default();
            others.0.iter().for_each(|other| both.add(*other, (from, to)));
            both.length()
        };
        self.apart().into_iter().map(|span| span.1 - span.0 - shared(span)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: (u64, u64) = (0, 100);

    fn spans(all: &[(u64, u64)]) -> Spans {
        let mut spans = Spans::default();
        all.iter().for_each(|span| spans.add(*span, ALL));
        spans
    }

    #[test]
    fn what_is_shared_counts_once_and_what_is_outside_of_the_window_not_at_all() {
        assert_eq!(spans(&[]).length(), 0);
        assert_eq!(spans(&[(10, 20), (15, 30), (30, 31), (50, 60), (52, 53)]).length(), 31);
        assert_eq!(spans(&[(90, 120), (100, 300)]).length(), 10);
        assert_eq!(spans(&[(20, 20), (30, 10)]).length(), 0);
    }

    #[test]
    fn what_is_left_is_what_no_other_covers() {
        let waited = spans(&[(0, 10), (5, 30), (50, 60)]);
        assert_eq!(waited.length_without(&spans(&[])), 40);
        assert_eq!(waited.length_without(&spans(&[(8, 12), (10, 14), (29, 52), (90, 95)])), 31);
        assert_eq!(waited.length_without(&spans(&[ALL])), 0);
    }
}
