//! What a window of time hands to the judge of ticks, and what it has to remember of it.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use crate::chaos::crew::Between;
use crate::cron_chaos::Known;
use crate::cron_chaos::Line;
use crate::cron_chaos::jobs::Facts;
use crate::cron_chaos::judge::{Bounds, Evidence, Figures, Loss, Trouble, judge};

/// So many seconds back a tick may be begun again, or a run be on: both are compared with what was judged before.
const BACK: i64 = 30;
/// Ticks of the rarest jobs are so many seconds apart.
const RAREST: i64 = 5;

/// The lines that matter still.
#[derive(Debug)]
pub(in crate::soak) struct Ticks {
    jobs: Vec<Facts>,
    ledger: bool,
    lines: BTreeMap<String, Vec<Line>>,
    /// The first second that was not judged.
    from: i64,
    /// Bodies before this instant were counted.
    news_ns: u64,
    pub(in crate::soak) figures: Figures,
}

/// What went wrong in a window.
#[derive(Debug, Default)]
pub(in crate::soak) struct Window {
    /// When processes were killed.
    pub(in crate::soak) deaths: BTreeMap<String, Between>,
    /// What else went wrong.
    pub(in crate::soak) troubles: Vec<Trouble>,
    /// When the store lost its memory.
    pub(in crate::soak) losses: Vec<Loss>,
    /// How often the store was restarted.
    pub(in crate::soak) restarts: u64,
}

impl Ticks {
    pub(in crate::soak) fn new(jobs: Vec<Facts>, ledger: bool) -> Self {
        Self { jobs, ledger, lines: BTreeMap::new(), from: i64::MAX, news_ns: 0, figures: Figures::default() }
    }

    pub(in crate::soak) fn jobs(&self) -> &[Facts] {
        &self.jobs
    }

    /// From this second on each tick is expected.
    pub(in crate::soak) fn begin(&mut self, from: i64, now_ns: u64) {
        self.from = from;
        self.news_ns = now_ns;
    }

    /// All ticks up to this second were judged.
    pub(in crate::soak) fn until(&self) -> i64 {
        self.from.saturating_sub(1)
    }

    pub(in crate::soak) fn add(&mut self, member: &str, lines: Vec<Line>) {
        self.lines.entry(member.to_owned()).or_default().extend(lines);
    }

    /// Judges all ticks up to this second, of which bodies that began before `cut_ns` tell; and forgets what nothing can
    /// contradict any more. These members will write nothing more.
    pub(in crate::soak) fn judge(
        &mut self,
        until: i64,
        cut_ns: u64,
        window: &Window,
        known: Known,
        gone: &BTreeSet<String>,
    ) -> Vec<Violation> {
        let mut found = self.late(&window.losses);
        let later = |line: &Line| matches!(line, Line::Began { at_ns, .. } if *at_ns >= cut_ns);
        let before = |lines: &Vec<Line>| lines.iter().filter(|line| !later(line)).cloned().collect::<Vec<_>>();
        let evidence = Evidence {
            jobs: self.jobs.clone(),
            members: self.lines.iter().map(|(member, lines)| (member.clone(), before(lines))).collect(),
            deaths: window.deaths.clone(),
            shifts: Vec::new(),
            troubles: window.troubles.clone(),
            losses: window.losses.clone(),
            known,
            bounds: Bounds {
                expected: (self.from, until),
                // All processes have the clock of this host.
                own_clocks: false,
                ledger: self.ledger,
                restarts: window.restarts,
                news_ns: self.news_ns,
            },
        };
        let (figures, violations) = judge(&evidence);
        self.figures.add(&figures);
        found.extend(violations.into_iter().map(Violation::Tick));
        (self.from, self.news_ns) = (until + 1, cut_ns);
        for lines in self.lines.values_mut() {
            forget(lines, until - BACK, cut_ns);
        }
        self.lines.retain(|member, lines| !(lines.is_empty() || gone.contains(member) && lines.iter().all(is_stall)));
        found
    }

    /// Bodies of ticks about which all was known long ago. At least once, they may run again if the store has lost its memory:
    /// from there on that the next leader remembers.
    fn late(&mut self, losses: &[Loss]) -> Vec<Violation> {
        let mut found = Vec::new();
        let again = |name: &str| self.jobs.iter().any(|job| job.name == name && job.kind.is_at_least_once());
        let mut repeated = 0;
        for (member, lines) in &self.lines {
            for line in lines {
                if let Line::Began { job, tick, at_ns, .. } = line
                    && *at_ns >= self.news_ns
                    && *tick < self.from.saturating_sub(BACK)
                    && self.from != i64::MAX
                {
                    if again(job) && losses.iter().any(|loss| loss.at.from_ns <= *at_ns) {
                        repeated += 1;
                        continue;
                    }
                    found.push(Violation::LateTick { member: member.clone(), job: job.clone(), tick: *tick });
                }
            }
        }
        self.figures.all.repeated += repeated;
        found
    }
}

fn is_stall(line: &Line) -> bool {
    matches!(line, Line::Stalled { .. })
}

/// All but what ticks from `since` on, and bodies from `cut_ns` on, may have to do with.
fn forget(lines: &mut Vec<Line>, since: i64, cut_ns: u64) {
    let kept: BTreeSet<u64> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Began { run, tick, at_ns, .. } if *tick >= since || *at_ns >= cut_ns => Some(*run),
            _ => None,
        })
        .collect();
    let back_ns = cut_ns.saturating_sub(BACK.unsigned_abs() * 1_000_000_000);
    lines.retain(|line| match line {
        Line::Began { run, .. } | Line::Ended { run, .. } | Line::Cut { run, .. } => kept.contains(run),
        Line::Told { tick, count, .. } => tick.saturating_add_unsigned(count.saturating_mul(RAREST as u64)) >= since,
        Line::Stalled { to_ns, .. } => *to_ns >= back_ns,
        Line::Started { .. } | Line::Leads { .. } | Line::Flushed { .. } => false,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron_chaos::jobs::Jobs;

    const S: i64 = 1_000;
    const NS: u64 = 1_000_000_000;

    fn ticks() -> Ticks {
        let jobs = Jobs::All(1).list().into_iter().filter(|job| job.name == "all-0").collect();
        let mut ticks = Ticks::new(jobs, true);
        ticks.begin(S, 0);
        ticks
    }

    /// Runs the tick some seconds late.
    fn runs(ticks: &mut Ticks, member: &str, run: u64, tick: i64, late: i64) {
        let at_ns = (tick - S + late).unsigned_abs() * NS + 1;
        let us = (tick + late) * 1_000_000 + 1;
        let began = Line::Began {
            run,
            job: "all-0".to_owned(),
            tick,
            attempt: 1,
            missed: 0,
            term: 1,
            instance: member.to_owned(),
            at_ns,
            true_us: us,
            own_us: us,
        };
        ticks.add(member, vec![began, Line::Ended { run, at_ns: at_ns + 1 }]);
    }

    fn judged(ticks: &mut Ticks, until: i64) -> Vec<String> {
        let cut_ns = (until - S).unsigned_abs() * NS + NS / 2;
        let found = ticks.judge(until, cut_ns, &Window::default(), Known::default(), &BTreeSet::new());
        found.iter().map(|violation| violation.to_string().split(':').take(2).collect()).collect()
    }

    #[test]
    fn each_tick_is_expected_once_whatever_the_windows_are() {
        let mut ticks = ticks();
        for tick in S..S + 10 {
            runs(&mut ticks, "a", (tick - S) as u64, tick, 0);
        }
        for until in [S + 3, S + 9] {
            assert_eq!(judged(&mut ticks, until), [""; 0]);
        }
        let all = &ticks.figures.all;
        assert_eq!((all.expected, all.ran, ticks.figures.bodies), (10, 10, 10));
        assert_eq!(judged(&mut ticks, S + 10), ["tick lost"]);
    }

    #[test]
    fn a_tick_that_was_run_in_a_window_before_is_doubled_however_long_ago() {
        for (windows, found) in
            [(1, "tick doubled"), (60, "tick a began all-0 at 1000 long after all was known of that tick")]
        {
            let mut ticks = ticks();
            runs(&mut ticks, "a", 0, S, 0);
            for until in S..S + windows {
                assert_eq!(judged(&mut ticks, until), [""; 0]);
                runs(&mut ticks, "a", (until - S + 1).unsigned_abs(), until + 1, 0);
            }
            runs(&mut ticks, "a", 1_000, S, windows);
            assert!(judged(&mut ticks, S + windows).contains(&found.to_owned()));
        }
    }

    #[test]
    fn a_tick_of_long_ago_is_run_again_only_at_least_once_and_if_the_store_has_forgotten() {
        for (name, forgets, found) in [("again-0", true, 0), ("again-0", false, 1), ("all-0", true, 1)] {
            let mut ticks = ticks();
            ticks.jobs = Jobs::All(1).list().into_iter().filter(|job| job.name == name).collect();
            ticks.begin(S + 100, 100 * NS);
            runs(&mut ticks, "a", 0, S, 101);
            for line in ticks.lines.values_mut().flatten() {
                if let Line::Began { job, .. } = line {
                    name.clone_into(job);
                }
            }
            let losses = [Loss { at: Between { from_ns: 99 * NS, to_ns: 99 * NS }, second: S + 99 }];
            assert_eq!(ticks.late(if forgets { &losses } else { &[] }).len(), found, "{name}");
        }
    }

    #[test]
    fn what_is_remembered_does_not_grow() {
        let mut ticks = ticks();
        let mut most = Vec::new();
        for tick in S..S + 400 {
            runs(&mut ticks, "a", (tick - S).unsigned_abs(), tick, 0);
            if tick % 20 == 0 {
                assert_eq!(judged(&mut ticks, tick), [""; 0]);
                most.push(ticks.lines["a"].len());
            }
        }
        assert_eq!(most[3], *most.last().unwrap());
    }
}
