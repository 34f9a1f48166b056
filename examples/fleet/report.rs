//! What the logs prove.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use leader_examples::history::{History, Overlap, Tick, Ticks};
use serde::Serialize;

use crate::faults::Fault;

/// A job that every instance has: its group, and from one tick to the next, in seconds.
pub struct JobFacts {
    pub name: &'static str,
    pub group: &'static str,
    pub every: i64,
}

/// The jobs of `instance.rs`, as their attributes say it: what is expected must not come from who is watched.
pub const JOBS: [JobFacts; 2] =
    [JobFacts { name: "report", group: "default", every: 1 }, JobFacts { name: "cleanup", group: "cleanup", every: 2 }];

/// The time in which the fleet was watched: from the moment in which all instances were ready to the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watched {
    pub from_ns: u64,
    pub to_ns: u64,
    /// The same on the parent's wall clock, in milliseconds since 1970.
    pub from_unix_ms: i64,
    pub to_unix_ms: i64,
    /// How long a lease lasts, in milliseconds.
    pub ttl_ms: i64,
}

/// A fault that was made, and what was led by the instance that it hit.
#[derive(Debug, Clone)]
pub struct Strike {
    pub fault: Fault,
    pub signal_ns: u64,
    pub led: Vec<Led>,
}

/// A group that the victim led.
#[derive(Debug, Clone)]
pub struct Led {
    pub group: String,
    pub term: u64,
    /// Until when the victim could believe in it, as far as it had told.
    pub until_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct Report {
    store: String,
    instances: usize,
    seconds: u64,
    handovers: Vec<Handover>,
    overlap_ms: f64,
    leaderless_ms: f64,
    ticks: TickCounts,
    /// With `--rounds`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    summary: Vec<Summary>,
    #[serde(skip)]
    violations: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Handover {
    kind: Fault,
    group: String,
    /// From the signal to the next view of the group; `None` if there was none before the end.
    took_ms: Option<f64>,
    /// The same from the end of the victim's view; nothing, if it came before.
    #[serde(skip)]
    after_lease_ms: Option<f64>,
}

#[derive(Debug, Serialize)]
struct TickCounts {
    expected: usize,
    ran: usize,
    lost: usize,
    /// Those that were due as the leader was killed: it had claimed them, and took them with it.
    died: usize,
    doubled: usize,
}

/// The hand-overs of one kind.
#[derive(Debug, Serialize)]
struct Summary {
    kind: Fault,
    /// What is measured: from the signal, or from the end of the victim's view.
    from: &'static str,
    count: usize,
    p50_ms: f64,
    max_ms: f64,
}

impl Report {
    pub fn new(store: &str, instances: usize, watched: Watched, strikes: &[Strike], history: &History) -> Self {
        let handovers: Vec<Handover> = strikes.iter().flat_map(|strike| handovers(strike, history)).collect();
        let overlaps = history.overlaps();
        let Ticks { expected, ran, lost, doubled } = history.ticks(&told_ticks(watched, history));
        let (died, lost): (Vec<Tick>, Vec<Tick>) = lost.into_iter().partition(|tick| died_with(tick, watched, strikes));
        let mut violations: Vec<String> = overlaps.iter().map(ToString::to_string).collect();
        violations.extend(history.term_faults().iter().map(ToString::to_string));
        violations.extend(lost.iter().map(|tick| format!("{} did not run for {}", tick.job, tick.unix_seconds)));
        violations
            .extend(doubled.iter().map(|tick| format!("{} ran more than once for {}", tick.job, tick.unix_seconds)));
        let leaderless = JOBS.iter().map(|job| history.leaderless_ns(job.group, watched.from_ns, watched.to_ns));
        Self {
            store: store.to_owned(),
            instances,
            seconds: (watched.to_ns.saturating_sub(watched.from_ns) + 500_000_000) / 1_000_000_000,
            summary: Vec::new(),
            handovers,
            overlap_ms: overlap_ms(overlaps.iter().map(Overlap::shared_ns).sum()),
            leaderless_ms: ms(leaderless.sum()),
            ticks: TickCounts { expected, ran, lost: lost.len(), died: died.len(), doubled: doubled.len() },
            violations,
        }
    }

    /// Adds how long the hand-overs of each kind took.
    pub fn summarize(mut self) -> Self {
        for kind in Fault::ALL {
            let of_kind = || self.handovers.iter().filter(|handover| handover.kind == kind);
            let from_signal: Vec<f64> = of_kind().filter_map(|handover| handover.took_ms).collect();
            self.summary.extend(Summary::new(kind, "signal", from_signal));
            // Where a death is not seen at once, the fleet can know no sooner than by the end of the lease.
            let from_end: Vec<f64> = of_kind().filter_map(|handover| handover.after_lease_ms).collect();
            if kind != Fault::Drain && from_end.iter().any(|took| *took > 0.0) {
                self.summary.extend(Summary::new(kind, "end of the view", from_end));
            }
        }
        self
    }

    /// What must never happen, and did.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// For people; the last line says it in one sentence.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: String| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {what:<11} {value}");
        };
        if self.summary.is_empty() {
            for Handover { kind, group, took_ms, .. } in &self.handovers {
                let took = took_ms.map_or_else(|| "no new leader".to_owned(), |took| format!("{took:.1} ms"));
                line("hand-over", format!("{:<6} {group:<8} {took}", kind.name()));
            }
        }
        for Summary { kind, from, count, p50_ms, max_ms } in &self.summary {
            line(
                "hand-overs",
                format!("{count} × {:<6} p50 {p50_ms:.1} ms, max {max_ms:.1} ms from the {from}", kind.name()),
            );
        }
        let TickCounts { expected, ran, lost, died, doubled } = &self.ticks;
        line("leaderless", format!("{:.0} ms, all groups together", self.leaderless_ms));
        line("overlap", format!("{} ms in {} s", self.overlap_ms, self.seconds));
        line(
            "ticks",
            format!("{expected} expected, {ran} ran, {lost} lost, {died} died with their leader, {doubled} doubled"),
        );
        for violation in &self.violations {
            line("BROKEN", violation.clone());
        }
        let _ = writeln!(text, "\n{}", self.sentence());
        text
    }

    fn sentence(&self) -> String {
        let TickCounts { expected, ran, lost, doubled, .. } = &self.ticks;
        let handovers = self.handovers.iter().filter(|handover| handover.took_ms.is_some()).count();
        let s = if handovers == 1 { "" } else { "s" };
        format!(
            "{handovers} hand-over{s}, {} ms overlap, {ran} of {expected} ticks, {lost} lost, {doubled} doubled.",
            self.overlap_ms
        )
    }
}

impl Summary {
    fn new(kind: Fault, from: &'static str, mut took: Vec<f64>) -> Option<Self> {
        took.sort_by(f64::total_cmp);
        let max_ms = *took.last()?;
        Some(Self { kind, from, count: took.len(), p50_ms: took[took.len() / 2], max_ms })
    }
}

fn handovers(strike: &Strike, history: &History) -> Vec<Handover> {
    let of_group = |led: &Led| {
        let next = history.next_view(&led.group, strike.signal_ns, led.term);
        let since = |from_ns: u64| next.map(|view| ms(view.began_ns.saturating_sub(from_ns)));
        Handover {
            kind: strike.fault,
            group: led.group.clone(),
            took_ms: since(strike.signal_ns),
            after_lease_ms: led.until_ns.and_then(since),
        }
    };
    strike.led.iter().map(of_group).collect()
}

/// The ticks whose fate is known: those up to the last that ran, as jobs run each of theirs in order; and all that came so long
/// before the end that any leader would have been found for them.
fn told_ticks(watched: Watched, history: &History) -> BTreeSet<Tick> {
    let mut last: BTreeMap<&str, i64> = BTreeMap::new();
    for run in history.runs() {
        let last = last.entry(&run.job).or_insert(run.tick);
        *last = run.tick.max(*last);
    }
    // A lease that runs out, and what a busy machine takes.
    let surely = watched.to_unix_ms.saturating_sub(watched.ttl_ms).saturating_sub(3000) / 1000;
    let mut expected = expected_ticks(watched);
    expected.retain(|tick| tick.unix_seconds <= last.get(&*tick.job).copied().unwrap_or(surely).max(surely));
    expected
}

/// A tick is claimed before it is run, and run at most once: a leader that is killed in between takes it along.
fn died_with(tick: &Tick, watched: Watched, strikes: &[Strike]) -> bool {
    /// From a tick to the line in the log, on a busy machine.
    const RUNS_NS: i64 = 100_000_000;
    let Some(job) = JOBS.iter().find(|job| job.name == tick.job) else { return false };
    let began_ns = (tick.unix_seconds * 1000 - watched.from_unix_ms) * 1_000_000;
    strikes.iter().filter(|strike| strike.fault == Fault::Kill).any(|strike| {
        let struck_ns =
            i64::try_from(strike.signal_ns).unwrap_or(i64::MAX) - i64::try_from(watched.from_ns).unwrap_or(0);
        strike.led.iter().any(|led| led.group == job.group) && (0..RUNS_NS).contains(&(struck_ns - began_ns))
    })
}

/// Every tick whose second lies between the two moments, but for the last second: its run may still be under way.
fn expected_ticks(watched: Watched) -> BTreeSet<Tick> {
    let (first, last) = ((watched.from_unix_ms + 999) / 1000, (watched.to_unix_ms - 1000) / 1000);
    let seconds = |job: &'static JobFacts| (first..=last).filter(|second| second % job.every == 0);
    let ticks =
        JOBS.iter().flat_map(|job| seconds(job).map(|second| Tick { job: job.name.to_owned(), unix_seconds: second }));
    ticks.collect()
}

/// Rounded up to the microsecond, so that not even the shortest overlap looks like none.
fn overlap_ms(nanoseconds: u64) -> f64 {
    (nanoseconds as f64 / 1e3).ceil() / 1e3
}

/// Milliseconds, to the microsecond.
fn ms(nanoseconds: u64) -> f64 {
    (nanoseconds as f64 / 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use leader_examples::history::{Run, View};

    use super::*;

    const MS: u64 = 1_000_000;

    fn view(group: &str, instance: &str, term: u64, from_ms: u64, to_ms: u64) -> View {
        let (group, instance) = (group.to_owned(), instance.to_owned());
        View { group, instance, term, began_ns: from_ms * MS, ended_ns: to_ms * MS }
    }

    fn watched() -> Watched {
        Watched { from_ns: 0, to_ns: 4_000 * MS, from_unix_ms: 100_400, to_unix_ms: 104_400, ttl_ms: 1_000 }
    }

    /// A fleet in which `a` led both groups and was killed at 1,000 ms.
    fn history() -> History {
        let mut history = History::default();
        history.extend([
            view("default", "a", 1, 0, 999),
            view("cleanup", "a", 1, 0, 999),
            view("default", "b", 2, 1_020, 4_000),
            view("cleanup", "c", 2, 1_500, 4_000),
        ]);
        history.extend([(101, "report"), (102, "report"), (102, "cleanup")].map(|(tick, job)| Run {
            job: job.to_owned(),
            tick,
            instance: "b".to_owned(),
            term: 2,
            began_ns: 0,
            ended_ns: 0,
        }));
        history
    }

    fn strike(fault: Fault) -> Strike {
        let led = |group: &str| Led { group: group.to_owned(), term: 1, until_ns: Some(1_010 * MS) };
        let led = vec![led("default"), led("cleanup")];
        Strike { fault, signal_ns: 1_000 * MS, led }
    }

    fn report(history: &History) -> Report {
        Report::new("sqlite:///x.db", 3, watched(), &[strike(Fault::Kill)], history)
    }

    #[test]
    fn the_report_has_the_agreed_form() {
        let expected = serde_json::json!({
            "store": "sqlite:///x.db", "instances": 3, "seconds": 4,
            "handovers": [
                {"kind": "kill", "group": "default", "took_ms": 20.0},
                {"kind": "kill", "group": "cleanup", "took_ms": 500.0},
            ],
            "overlap_ms": 0.0, "leaderless_ms": 522.0,
            "ticks": {"expected": 3, "ran": 3, "lost": 0, "died": 0, "doubled": 0},
        });
        let report = report(&history());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&report.to_json().unwrap()).unwrap(), expected);
        assert_eq!(report.violations(), [""; 0]);
        assert_eq!(report.sentence(), "2 hand-overs, 0 ms overlap, 3 of 3 ticks, 0 lost, 0 doubled.");
    }

    #[test]
    fn expected_are_the_whole_seconds_up_to_one_second_before_the_end() {
        let seconds: Vec<_> = expected_ticks(watched()).into_iter().map(|tick| (tick.job, tick.unix_seconds)).collect();
        let expect = [("cleanup", 102), ("report", 101), ("report", 102), ("report", 103)];
        assert_eq!(seconds, expect.map(|(job, second)| (job.to_owned(), second)));
        assert!(expected_ticks(Watched::default()).is_empty());
    }

    #[test]
    fn an_overlap_a_repeated_term_and_a_doubled_tick_are_violations() {
        let mut history = history();
        history.add(view("default", "c", 2, 3_000, 3_001));
        history.add(history.runs()[0].clone());
        let report = report(&history);
        assert_eq!(report.violations().len(), 3, "{:?}", report.violations());
        assert_eq!(report.overlap_ms, 1.001);
        assert_eq!(report.ticks.doubled, 1);
        assert!(report.to_text().contains("BROKEN"));
    }

    #[test]
    fn a_tick_that_was_passed_over_is_a_violation_unless_its_leader_was_killed_at_it() {
        let without = |tick: i64| {
            let mut all = history();
            let runs: Vec<Run> =
                all.runs().iter().filter(|run| (run.tick, &*run.job) != (tick, "report")).cloned().collect();
            all = History::default();
            all.extend([view("default", "a", 1, 0, 999), view("cleanup", "a", 1, 0, 999)]);
            all.extend(runs);
            all.extend([Run {
                job: "report".into(),
                tick: 103,
                instance: "b".into(),
                term: 2,
                began_ns: 0,
                ended_ns: 0,
            }]);
            all
        };
        let lost = report(&without(102));
        assert_eq!((lost.ticks.lost, lost.ticks.died), (1, 0));
        assert!(lost.violations()[0].contains("report did not run for 102"), "{:?}", lost.violations());
        // The second 102 began 1.6 s after the watch did.
        let mut killed = strike(Fault::Kill);
        killed.signal_ns = watched().from_ns + 1_650 * MS;
        let died = Report::new("s", 3, watched(), &[killed], &without(102));
        assert_eq!((died.ticks.lost, died.ticks.died), (0, 1));
        assert_eq!(died.violations(), [""; 0]);
    }

    #[test]
    fn a_summary_tells_a_stall_from_the_end_of_the_view_too() {
        let report = Report::new("s", 3, watched(), &[strike(Fault::Stall)], &history()).summarize();
        let told: Vec<_> = report.summary.iter().map(|s| (s.kind, s.from, s.count, s.p50_ms, s.max_ms)).collect();
        let expected = [(Fault::Stall, "signal", 2, 500.0, 500.0), (Fault::Stall, "end of the view", 2, 490.0, 490.0)];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_summary_of_deaths_tells_the_end_of_the_view_only_if_it_had_to_be_waited_for() {
        let summary = |until_ms: u64| {
            let mut killed = strike(Fault::Kill);
            killed.led.iter_mut().for_each(|led| led.until_ns = Some(until_ms * MS));
            let report = Report::new("s", 3, watched(), &[killed], &history()).summarize();
            report.summary.iter().map(|s| (s.from, s.p50_ms)).collect::<Vec<_>>()
        };
        assert_eq!(summary(1_010), [("signal", 500.0), ("end of the view", 490.0)]);
        assert_eq!(summary(3_000), [("signal", 500.0)]);
    }

    #[test]
    fn a_group_without_a_new_leader_is_no_hand_over() {
        let mut history = History::default();
        history.add(view("default", "a", 1, 0, 999));
        let report = report(&history);
        assert_eq!(report.handovers[0].took_ms, None);
        assert!(report.sentence().starts_with("0 hand-overs"));
    }
}
