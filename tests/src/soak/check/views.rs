//! Who led when.

use std::collections::BTreeMap;

use leader_examples::history::{History, Line, View};

use super::Violation;

/// The views that matter still.
#[derive(Debug, Default)]
pub(in crate::soak) struct Views {
    history: History,
    /// Views before this instant were counted.
    news_ns: u64,
    /// Who led each group last, of those that were counted.
    last: BTreeMap<String, String>,
    /// How often somebody began to lead, and how often it was another one.
    pub(in crate::soak) terms: u64,
    pub(in crate::soak) changes: u64,
}

/// A fault that was over between two looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::soak) struct Struck {
    /// Its name.
    pub(in crate::soak) name: &'static str,
    /// When it began.
    pub(in crate::soak) from_ns: u64,
    /// When it was over.
    pub(in crate::soak) to_ns: u64,
}

impl Views {
    pub(in crate::soak) fn add(&mut self, lines: Vec<Line>) {
        self.history.extend(lines);
    }

    /// Whoever was the last to begin to lead.
    pub(in crate::soak) fn leader(&self, group: &str) -> Option<&str> {
        self.history.newest_view(group).map(|view| view.instance.as_str())
    }

    /// Somebody was seen to lead then, or later.
    pub(in crate::soak) fn is_led(&self, group: &str, since_ns: u64) -> bool {
        self.of(group).any(|view| view.ended_ns >= since_ns)
    }

    fn of(&self, group: &str) -> impl Iterator<Item = &View> {
        self.history.views().iter().filter(move |view| view.group == group)
    }

    /// What must not be.
    pub(in crate::soak) fn judge(&self) -> Vec<Violation> {
        let overlaps = self.history.overlaps().into_iter().map(|overlap| Violation::Leaders(overlap.to_string()));
        let terms = self.history.term_faults().into_iter().map(|fault| Violation::Term(fault.to_string()));
        overlaps.chain(terms).collect()
    }

    /// For each fault, how long after its end the last of the groups had a leader, in nanoseconds. None if another fault was
    /// on meanwhile: the last of them tells.
    pub(in crate::soak) fn recovery(&self, groups: &[String], struck: &[Struck]) -> Vec<(&'static str, u64)> {
        let mut all = Vec::new();
        for fault in struck {
            let led = groups.iter().map(|group| self.led_after(group, fault.to_ns)).collect::<Option<Vec<_>>>();
            let Some(led_ns) = led.and_then(|led| led.into_iter().max()) else { continue };
            let meanwhile = |other: &&Struck| other.from_ns < led_ns && other.to_ns > fault.to_ns;
            if !struck.iter().any(|other| meanwhile(&other)) {
                all.push((fault.name, led_ns - fault.to_ns));
            }
        }
        all
    }

    /// The first instant not before this one at which somebody led.
    fn led_after(&self, group: &str, at_ns: u64) -> Option<u64> {
        self.of(group).filter(|view| view.ended_ns >= at_ns).map(|view| view.began_ns.max(at_ns)).min()
    }

    /// All that came before this instant was judged: counts it, and forgets what nothing can contradict any more.
    pub(in crate::soak) fn forget_before(&mut self, cut_ns: u64) {
        let mut views: Vec<_> = self.history.views().to_vec();
        views.sort_by_key(|view| view.began_ns);
        for view in views.iter().filter(|view| (self.news_ns..cut_ns).contains(&view.began_ns)) {
            self.terms += 1;
            let before = self.last.insert(view.group.clone(), view.instance.clone());
            self.changes += u64::from(before.is_some_and(|before| before != view.instance));
        }
        self.news_ns = cut_ns;
        let newest = |view: &View| views.iter().all(|other| other.group != view.group || other.term <= view.term);
        let kept: Vec<_> = views.iter().filter(|view| view.ended_ns >= cut_ns || newest(view)).cloned().collect();
        self.history = History::default();
        self.history.extend(kept);
    }

    #[cfg(test)]
    fn kept(&self) -> usize {
        self.history.views().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(all: &[(&str, u64, u64, u64)]) -> Views {
        let mut views = Views::default();
        add(&mut views, all);
        views
    }

    fn add(views: &mut Views, all: &[(&str, u64, u64, u64)]) {
        views.add(
            all.iter().map(|&(instance, term, began_ns, ended_ns)| line(instance, term, began_ns, ended_ns)).collect(),
        );
    }

    fn line(instance: &str, term: u64, began_ns: u64, ended_ns: u64) -> Line {
        let (group, instance) = ("default".to_owned(), instance.to_owned());
        View { group, instance, term, began_ns, ended_ns }.into()
    }

    #[test]
    fn what_is_forgotten_is_found_all_the_same_if_it_is_contradicted_later() {
        let mut views = views(&[("a", 1, 10, 20), ("b", 5, 30, 40), ("a", 6, 50, 90)]);
        assert_eq!(views.judge(), []);
        views.forget_before(80);
        assert_eq!((views.kept(), views.terms, views.changes), (1, 3, 2), "only the one that is on is kept");
        add(&mut views, &[("b", 6, 100, 110)]);
        assert!(matches!(views.judge()[..], [Violation::Term(_)]), "a term repeats that began before");
        let mut views = self::views(&[("a", 6, 50, 90)]);
        views.forget_before(80);
        add(&mut views, &[("a", 6, 50, 120), ("b", 7, 110, 130)]);
        assert!(matches!(views.judge()[..], [Violation::Leaders(_)]), "a view goes on that began before");
    }

    #[test]
    fn the_newest_term_is_remembered_however_long_nobody_leads() {
        let mut views = views(&[("a", 6, 50, 60)]);
        for cut in [80, 90, 100] {
            views.forget_before(cut);
        }
        assert_eq!((views.kept(), views.terms), (1, 1));
        add(&mut views, &[("b", 5, 200, 210)]);
        assert!(matches!(views.judge()[..], [Violation::Term(_)]));
    }

    #[test]
    fn a_fault_is_over_when_the_last_group_has_a_leader_and_tells_nothing_if_another_one_came_meanwhile() {
        let mut views = views(&[("a", 1, 10, 20), ("b", 2, 50, 90)]);
        let fault = |from_ns, to_ns| Struck { name: "kill", from_ns, to_ns };
        let groups = ["default".to_owned()];
        assert_eq!(views.recovery(&groups, &[fault(18, 20)]), [("kill", 0)], "somebody leads at that instant");
        assert_eq!(views.recovery(&groups, &[fault(20, 21)]), [("kill", 29)]);
        assert_eq!(views.recovery(&groups, &[fault(20, 21), fault(30, 40)]), [("kill", 10)]);
        assert_eq!(views.recovery(&groups, &[fault(20, 95)]), [], "nobody has led since");
        let group = "reports".to_owned();
        let other = View { group: group.clone(), instance: "a".to_owned(), term: 1, began_ns: 70, ended_ns: 71 };
        views.add(vec![other.into()]);
        assert_eq!(views.recovery(&["default".to_owned(), group], &[fault(20, 21)]), [("kill", 49)]);
    }
}
