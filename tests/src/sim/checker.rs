//! The judge: it is told of every view as it changes, in true time, and counts what must not be.

/// What a run is judged by. Times are nanoseconds of true time.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    views: Vec<Option<View>>,
    highest_minted: u64,
    highest_used: u64,
    last: Option<(usize, u64)>,
    /// Two views at one time.
    pub overlaps: u64,
    /// The longest of them.
    pub longest_overlap: u64,
    /// Terms handed out or led under that were not larger than all before.
    pub bad_terms: u64,
    /// Time with a leader.
    pub led: u64,
    /// The longest time without.
    pub longest_gap: u64,
    /// How often another instance led than before.
    pub handovers: u64,
    /// Gaps at hand-overs, together.
    pub handover_gaps: u64,
}

#[derive(Debug, Clone, Copy)]
struct View {
    term: u64,
    since: u64,
    until: u64,
}

impl Checker {
    /// For this many instances.
    #[must_use]
    pub fn new(instances: usize) -> Self {
        Self { views: vec![None; instances], ..Self::default() }
    }

    /// From `now` on, `instance` believes in `term` until the instant given, unless told otherwise before; or in nothing.
    /// Returns what is wrong with that.
    pub fn view(&mut self, now: u64, instance: usize, believed: Option<(u64, u64)>) -> Option<String> {
        match (&mut self.views[instance], believed) {
            (Some(old), Some((term, until))) if term == old.term && now <= old.until => {
                old.until = until;
                return None;
            }
            _ => self.end(now, instance),
        }
        let (term, until) = believed.filter(|(_, until)| now < *until)?;
        for other in 0..self.views.len() {
            if self.views[other].is_some_and(|v| v.until <= now) {
                self.end(now, other);
            }
        }
        self.views[instance] = Some(View { term, since: now, until });
        let gap = now.saturating_sub(self.last.map_or(0, |(_, end)| end));
        self.longest_gap = self.longest_gap.max(gap);
        if self.last.is_some_and(|(before, _)| before != instance) {
            self.handovers += 1;
            self.handover_gaps += gap;
        }
        let mut wrong = None;
        if term <= self.highest_used {
            self.bad_terms += 1;
            wrong = Some(format!("instance {instance} leads under term {term} after {}", self.highest_used));
        }
        self.highest_used = self.highest_used.max(term);
        for (other, view) in self.views.iter().enumerate() {
            let Some(view) = view.filter(|v| other != instance && now < v.until) else { continue };
            self.overlaps += 1;
            self.longest_overlap = self.longest_overlap.max(view.until.min(until) - now);
            wrong = Some(format!("instances {other} and {instance} both believe to lead"));
        }
        wrong
    }

    /// The store handed out a term.
    pub fn minted(&mut self, term: u64) -> Option<String> {
        let before = self.highest_minted;
        self.highest_minted = before.max(term);
        (term <= before).then(|| {
            self.bad_terms += 1;
            format!("term {term} handed out after {before}")
        })
    }

    /// Whether somebody led at or after an instant; to be asked when the run is over.
    #[must_use]
    pub fn led_after(&self, at: u64) -> bool {
        self.last.is_some_and(|(_, end)| end > at)
    }

    /// The run is over.
    pub fn finish(&mut self, now: u64) {
        for instance in 0..self.views.len() {
            self.end(now, instance);
        }
        let gap = now.saturating_sub(self.last.map_or(0, |(_, end)| end));
        self.longest_gap = self.longest_gap.max(gap);
    }

    fn end(&mut self, now: u64, instance: usize) {
        if let Some(view) = self.views[instance].take() {
            let end = view.until.min(now);
            self.led += end - view.since;
            if self.last.is_none_or(|(_, last)| last <= end) {
                self.last = Some((instance, end));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_ends_by_its_deadline_without_anybody_looking() {
        let mut checker = Checker::new(2);
        assert_eq!(checker.view(0, 0, Some((1, 100))), None);
        assert_eq!(checker.view(100, 1, Some((2, 200))), None);
        checker.view(300, 0, None);
        checker.finish(300);
        assert_eq!((checker.overlaps, checker.led, checker.handovers), (0, 200, 1));
    }

    #[test]
    fn one_instant_of_two_views_is_an_overlap() {
        let mut checker = Checker::new(2);
        checker.view(0, 0, Some((1, 100)));
        assert!(checker.view(99, 1, Some((2, 200))).is_some());
        assert_eq!((checker.overlaps, checker.longest_overlap), (1, 1));
    }

    #[test]
    fn a_prolonged_view_is_one_view() {
        let mut checker = Checker::new(1);
        checker.view(0, 0, Some((1, 100)));
        assert_eq!(checker.view(50, 0, Some((1, 150))), None);
        checker.finish(200);
        assert_eq!((checker.led, checker.longest_gap), (150, 50));
    }

    #[test]
    fn a_term_that_repeats_or_falls_is_seen() {
        let mut checker = Checker::new(2);
        assert_eq!(checker.minted(5), None);
        assert!(checker.minted(5).is_some());
        checker.view(0, 0, Some((5, 100)));
        assert!(checker.view(100, 1, Some((4, 200))).is_some());
        assert_eq!(checker.bad_terms, 2);
    }
}
