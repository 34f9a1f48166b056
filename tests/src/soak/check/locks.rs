//! Who held a lock when, and what was done once.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Violation;
use crate::chaos::check::{Attempt, attempts, overlap, overlapping, token_faults};
use crate::chaos::log::{How, Line};
use crate::cron_chaos::judge::Loss;
use crate::soak::member::ONCE;

/// So long after it is done nobody asks for what is to be done once.
const ASKED_NS: u64 = 100_000_000_000;

/// The figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Locks that were had.
    pub acquisitions: u64,
    /// Those that were lost while the body ran.
    pub lost: u64,
    /// What was done once.
    pub once: u64,
    /// Two held a lock that the store had forgotten.
    pub forgotten: u64,
    /// Something was done again, because the store had forgotten that it was done.
    pub again: u64,
}

/// The lines that matter still.
#[derive(Debug, Default)]
pub(in crate::soak) struct Locks {
    lines: BTreeMap<String, Vec<Line>>,
    news_ns: u64,
    pub(in crate::soak) counts: Counts,
}

impl Locks {
    pub(in crate::soak) fn add(&mut self, member: &str, lines: Vec<Line>) {
        if !lines.is_empty() {
            self.lines.entry(member.to_owned()).or_default().extend(lines);
        }
    }

    /// What must not be; the store has lost its memory at these times.
    pub(in crate::soak) fn judge(&mut self, losses: &[Loss], ttl_ns: u64) -> Vec<Violation> {
        let mut found = Vec::new();
        for (key, attempts) in &attempts(&self.lines) {
            for pair in overlapping(attempts) {
                let [(_, first), (_, second)] = pair;
                let forgotten = losses.iter().any(|loss| loss.lies_between(first.at_ns, second.at_ns));
                // Until it notices, and no longer than it may believe.
                let shared_ns = first.last_ns.min(second.last_ns) - second.at_ns;
                if forgotten && shared_ns <= ttl_ns {
                    self.counts.forgotten += u64::from(second.at_ns >= self.news_ns);
                } else {
                    found.push(Violation::Lock(overlap(pair)));
                }
            }
            if key.starts_with(ONCE) {
                done_twice(attempts, losses, self.news_ns, &mut self.counts, &mut found);
            } else {
                found.extend(token_faults(attempts).into_iter().map(Violation::Lock));
            }
        }
        found
    }

    /// All that came before this instant was judged: counts it, and forgets what nothing can contradict any more. These
    /// members will write nothing more.
    pub(in crate::soak) fn forget_before(&mut self, cut_ns: u64, gone: &BTreeSet<String>) {
        let by_key = attempts(&self.lines);
        let mut kept: BTreeSet<(&str, u64)> = BTreeSet::new();
        for (key, attempts) in &by_key {
            let newest = attempts
                .iter()
                .filter_map(|attempt| Some((attempt.body?.token, attempt)))
                .max_by_key(|(token, _)| *token);
            let is_once = key.starts_with(ONCE);
            for attempt in attempts {
                self.counts.count(attempt, is_once, self.news_ns..cut_ns);
                let left_ns = attempt.left.as_ref().map(|(at_ns, _)| *at_ns);
                let goes_on = left_ns.is_none_or(|at_ns| at_ns >= cut_ns) && !gone.contains(&attempt.member);
                let is_newest = !is_once && newest.is_some_and(|(_, newest)| newest == attempt);
                let was_done = is_once
                    && matches!(attempt.how(), Some(How::Done))
                    && left_ns.is_some_and(|at_ns| at_ns + ASKED_NS >= cut_ns);
                if goes_on || is_newest || was_done {
                    kept.insert((&attempt.member, attempt.number));
                }
            }
        }
        let kept: BTreeSet<_> = kept.into_iter().map(|(member, number)| (member.to_owned(), number)).collect();
        for (member, lines) in &mut self.lines {
            lines.retain(|line| number_of(line).is_some_and(|number| kept.contains(&(member.clone(), number))));
        }
        self.lines.retain(|_, lines| !lines.is_empty());
        self.news_ns = cut_ns;
    }
}

impl Counts {
    fn count(&mut self, attempt: &Attempt, is_once: bool, time: std::ops::Range<u64>) {
        let Some(body) = attempt.body else { return };
        if !is_once && time.contains(&body.at_ns) {
            self.acquisitions += 1;
        }
        if let Some((at_ns, how)) = &attempt.left
            && time.contains(at_ns)
        {
            self.lost += u64::from(*how == How::Lost);
            self.once += u64::from(is_once && *how == How::Done);
        }
    }
}

/// A body begins after it was known to be done.
fn done_twice(attempts: &[Attempt], losses: &[Loss], news_ns: u64, counts: &mut Counts, found: &mut Vec<Violation>) {
    let done = |attempt: &Attempt| match (&attempt.left, attempt.body) {
        (Some((at_ns, How::Done)), Some(body)) => Some((*at_ns, body.at_ns)),
        _ => None,
    };
    for first in attempts {
        let Some((done_ns, began_ns)) = done(first) else { continue };
        for second in attempts {
            let Some(body) = second.body.filter(|body| body.at_ns > done_ns && second != first) else { continue };
            if losses.iter().any(|loss| loss.lies_between(began_ns, body.at_ns)) {
                counts.again += u64::from(body.at_ns >= news_ns);
            } else {
                found.push(Violation::DoneTwice { first: first.name(), second: second.name() });
            }
        }
    }
}

fn number_of(line: &Line) -> Option<u64> {
    match line {
        Line::Asked { attempt, .. }
        | Line::Began { attempt, .. }
        | Line::Step { attempt, .. }
        | Line::Left { attempt, .. } => Some(*attempt),
        Line::Started { .. } | Line::Stalled { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::crew::Between;

    const TTL: u64 = 100;

    /// A body of this attempt, from the first instant to the second.
    fn body(attempt: u64, key: &str, token: u64, from: u64, to: u64, how: Option<How>) -> Vec<Line> {
        let mut lines = vec![
            Line::Asked { attempt, key: key.to_owned(), at_ns: from - 1, wait_ns: 0, must: false },
            Line::Began { attempt, token, since_ns: from - 1, at_ns: from },
            Line::Step { attempt, since_ns: to },
        ];
        lines.extend(how.map(|how| Line::Left { attempt, at_ns: to + 1, how }));
        lines
    }

    fn loss(at: u64) -> Loss {
        Loss { at: Between { from_ns: at, to_ns: at }, second: 0 }
    }

    fn two(second_from: u64) -> Locks {
        let mut locks = Locks::default();
        locks.add("a", body(1, "lock-0", 7, 10, 50, Some(How::Lost)));
        locks.add("b", body(1, "lock-0", 8, second_from, 90, Some(How::Done)));
        locks
    }

    #[test]
    fn two_holders_at_once_are_found_unless_the_store_forgot_the_first() {
        assert_eq!(two(60).judge(&[], TTL), []);
        assert!(matches!(two(40).judge(&[], TTL)[..], [Violation::Lock(_)]));
        assert!(matches!(two(40).judge(&[loss(5), loss(45)], TTL)[..], [Violation::Lock(_)]), "before and after");
        let mut forgotten = two(40);
        assert_eq!(forgotten.judge(&[loss(30)], TTL), []);
        assert_eq!(forgotten.counts.forgotten, 1);
        assert!(matches!(two(40).judge(&[loss(30)], 5)[..], [Violation::Lock(_)]), "longer than it may believe");
    }

    #[test]
    fn a_token_that_does_not_rise_is_found_also_if_the_first_was_long_ago() {
        let mut locks = two(60);
        locks.forget_before(200, &BTreeSet::new());
        assert_eq!(locks.lines.values().map(Vec::len).sum::<usize>(), 4, "only the newest token is remembered");
        assert_eq!(locks.counts, Counts { acquisitions: 2, lost: 1, ..Counts::default() });
        locks.add("a", body(2, "lock-0", 8, 300, 310, Some(How::Done)));
        assert!(matches!(locks.judge(&[], TTL)[..], [Violation::Lock(_)]));
    }

    #[test]
    fn a_body_that_goes_on_is_remembered_until_its_process_has_died() {
        let open = || {
            let mut locks = Locks::default();
            locks.add("a", body(1, "lock-0", 7, 10, 50, None));
            locks
        };
        let mut locks = open();
        locks.forget_before(60, &BTreeSet::new());
        locks.add("a", vec![Line::Step { attempt: 1, since_ns: 90 }]);
        locks.add("b", body(1, "lock-0", 8, 80, 85, Some(How::Done)));
        assert!(matches!(locks.judge(&[], TTL)[..], [Violation::Lock(_)]));
        let mut locks = open();
        locks.add("b", body(1, "lock-0", 8, 52, 55, Some(How::Done)));
        locks.forget_before(60, &BTreeSet::from(["a".to_owned()]));
        assert_eq!(locks.lines.keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn what_was_done_is_not_done_again_unless_the_store_forgot_it() {
        let again = || {
            let mut locks = Locks::default();
            locks.add("a", body(1, "once-3", 0, 10, 20, Some(How::Done)));
            locks.forget_before(30, &BTreeSet::new());
            locks.add("b", body(1, "once-3", 0, 40, 50, Some(How::Done)));
            locks
        };
        assert!(matches!(again().judge(&[], TTL)[..], [Violation::DoneTwice { .. }]));
        let mut locks = again();
        assert_eq!(locks.judge(&[loss(35)], TTL), []);
        assert_eq!((locks.counts.again, locks.counts.once), (1, 1));
    }
}
