//! What views must never show, and how long nobody led.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{History, View};

/// Two instances saw themselves lead one group at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The view that began first.
    pub earlier: View,
    /// The view that began before the other had ended.
    pub later: View,
}

impl Overlap {
    /// For how long. Both ends of a view were seen, so a shared instant counts as one nanosecond.
    #[must_use]
    pub fn shared_ns(&self) -> u64 {
        self.earlier.ended_ns.min(self.later.ended_ns) - self.later.began_ns + 1
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (earlier, later) = (&self.earlier, &self.later);
        write!(
            f,
            "{} (term {}) and {} (term {}) both led group {} for {:?}",
            earlier.instance,
            earlier.term,
            later.instance,
            later.term,
            earlier.group,
            Duration::from_nanos(self.shared_ns())
        )
    }
}

/// A term that is not larger than every term before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermFault {
    /// The view that had the largest term so far.
    pub earlier: View,
    /// The view that began later, with the same term or a smaller one.
    pub later: View,
}

impl fmt::Display for TermFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (earlier, later) = (&self.earlier, &self.later);
        let verb = if earlier.term == later.term { "repeats" } else { "falls behind" };
        write!(
            f,
            "in group {} the term {} of {} {verb} the term {} that {} had before",
            later.group, later.term, later.instance, earlier.term, earlier.instance
        )
    }
}

impl History {
    /// Every pair of views of different instances in one group that share an instant.
    #[must_use]
    pub fn overlaps(&self) -> Vec<Overlap> {
        let mut overlaps = Vec::new();
        for views in self.by_group().values() {
            for (n, earlier) in views.iter().enumerate() {
                let meanwhile = views[n + 1..].iter().take_while(|later| later.began_ns <= earlier.ended_ns);
                let others = meanwhile.filter(|later| later.instance != earlier.instance);
                overlaps.extend(others.map(|later| Overlap { earlier: (*earlier).clone(), later: (*later).clone() }));
            }
        }
        overlaps
    }

    /// Every view whose term is not larger than all that began before it in its group. An instance that lost its lease and
    /// comes back under the same term is found too.
    #[must_use]
    pub fn term_faults(&self) -> Vec<TermFault> {
        let mut faults = Vec::new();
        for views in self.by_group().values() {
            let mut largest: Option<&View> = None;
            for view in views {
                match largest {
                    Some(earlier) if view.term <= earlier.term => {
                        faults.push(TermFault { earlier: earlier.clone(), later: (*view).clone() });
                    }
                    _ => largest = Some(view),
                }
            }
        }
        faults
    }

    /// For how long, between the two instants, no instance saw itself lead `group`.
    #[must_use]
    pub fn leaderless_ns(&self, group: &str, from_ns: u64, to_ns: u64) -> u64 {
        let mut leaderless = 0;
        let mut led_until = from_ns;
        for view in self.by_group().remove(group).unwrap_or_default() {
            leaderless += view.began_ns.min(to_ns).saturating_sub(led_until);
            led_until = led_until.max(view.ended_ns);
        }
        leaderless + to_ns.saturating_sub(led_until)
    }

    /// The views of each group, by their beginning.
    fn by_group(&self) -> BTreeMap<&str, Vec<&View>> {
        let mut groups: BTreeMap<&str, Vec<&View>> = BTreeMap::new();
        for view in &self.views {
            groups.entry(&view.group).or_default().push(view);
        }
        for views in groups.values_mut() {
            views.sort_by_key(|view| (view.began_ns, view.term));
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(views: &[(&str, u64, u64, u64)]) -> History {
        let mut history = History::default();
        history.extend(views.iter().map(|&(instance, term, began_ns, ended_ns)| View {
            group: "default".to_owned(),
            instance: instance.to_owned(),
            term,
            began_ns,
            ended_ns,
        }));
        history
    }

    #[test]
    fn leaders_one_after_another_are_well() {
        let history = history(&[("a", 1, 10, 20), ("b", 2, 21, 30), ("a", 5, 40, 41)]);
        assert_eq!(history.overlaps(), []);
        assert_eq!(history.term_faults(), []);
    }

    #[test]
    fn two_leaders_at_once_are_found_with_their_time() {
        let history = history(&[("b", 2, 15, 30), ("a", 1, 10, 20), ("c", 3, 16, 16)]);
        let found: Vec<_> = history
            .overlaps()
            .into_iter()
            .map(|o| (o.earlier.instance.clone(), o.later.instance.clone(), o.shared_ns()))
            .collect();
        let expect = |a: &str, b: &str, ns| (a.to_owned(), b.to_owned(), ns);
        assert_eq!(found, [expect("a", "b", 6), expect("a", "c", 1), expect("b", "c", 1)]);
    }

    #[test]
    fn a_shared_instant_is_an_overlap() {
        assert_eq!(history(&[("a", 1, 10, 20), ("b", 2, 20, 30)]).overlaps()[0].shared_ns(), 1);
        assert_eq!(history(&[("a", 1, 10, 20), ("b", 2, 21, 30)]).overlaps(), []);
    }

    #[test]
    fn leaders_of_different_groups_and_one_instance_with_itself_do_not_overlap() {
        let mut history = history(&[("a", 1, 10, 20), ("a", 2, 15, 30)]);
        let other = View { group: "cleanup".into(), instance: "b".into(), term: 9, began_ns: 0, ended_ns: 99 };
        history.add(other);
        assert_eq!(history.overlaps(), []);
        assert_eq!(history.term_faults(), []);
    }

    #[test]
    fn lines_that_extend_a_view_are_one_view() {
        let history = history(&[("a", 1, 10, 10), ("b", 2, 31, 31), ("a", 1, 10, 20), ("a", 1, 10, 15)]);
        assert_eq!(history.views().len(), 2);
        assert_eq!(history.views()[0].ended_ns, 20);
        assert_eq!(history.term_faults(), []);
    }

    #[test]
    fn a_term_that_repeats_or_falls_is_found() {
        let repeated = history(&[("a", 3, 10, 20), ("b", 3, 30, 40)]).term_faults();
        assert!(repeated[0].to_string().contains("the term 3 of b repeats the term 3 that a had"), "{}", repeated[0]);
        let fell = history(&[("a", 3, 10, 20), ("b", 4, 30, 40), ("c", 2, 50, 60)]).term_faults();
        assert!(fell[0].to_string().contains("the term 2 of c falls behind the term 4 that b had"), "{}", fell[0]);
        let came_back = history(&[("a", 3, 10, 20), ("a", 3, 25, 40)]).term_faults();
        assert_eq!(came_back.len(), 1);
    }

    #[test]
    fn leaderless_time_is_what_no_view_covers() {
        let history = history(&[("a", 1, 10, 20), ("b", 2, 30, 50), ("c", 3, 40, 45)]);
        assert_eq!(history.leaderless_ns("default", 0, 60), 10 + 10 + 10);
        assert_eq!(history.leaderless_ns("default", 15, 35), 10);
        assert_eq!(history.leaderless_ns("default", 22, 28), 6);
        assert_eq!(history.leaderless_ns("default", 32, 48), 0);
        assert_eq!(history.leaderless_ns("nobody's", 5, 15), 10);
    }
}
