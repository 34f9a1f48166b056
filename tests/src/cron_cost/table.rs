//! The figures of all subjects, side by side.

use std::collections::BTreeMap;

use super::subject::Subject;
use super::tally::Figures;

/// The lateness that one in a hundred exceeds may be this part of theirs, at most.
const LATENESS: f64 = 0.1;
/// And the processor time this part.
const CPU: f64 = 0.25;

/// By subject, its turns.
#[derive(Debug, Default)]
pub(super) struct Table(BTreeMap<Subject, Vec<Figures>>);

impl Table {
    pub(super) fn add(&mut self, subject: Subject, figures: Figures) {
        self.0.entry(subject).or_default().push(figures);
    }

    /// Prints it. Whether every tick ran, and the goals are met, by jobs that do what theirs do: run on every instance.
    pub(super) fn print(&self, jobs: usize, seconds: u32, rounds: usize) -> bool {
        println!("{jobs} jobs, each due each second, for {seconds} s, {rounds} times; medians of the turns");
        println!(
            "  {:26}{:>9}{:>9}{:>10}{:>10}{:>10}{:>9}{:>9}{:>11}{:>11}",
            "", "ran %", "doubled", "p50 ms", "p99 ms", "max ms", "CPU %", "server %", "p99 ratio", "CPU ratio"
        );
        let median = |subject: Subject, of: fn(&Figures) -> f64| {
            let mut all: Vec<f64> = self.0.get(&subject).into_iter().flatten().map(of).collect();
            all.sort_unstable_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let mut ok = true;
        for (subject, turns) in &self.0 {
            let ratio = |of: fn(&Figures) -> f64| median(*subject, of) / median(Subject::Theirs, of);
            let (late, cpu) = (ratio(|f| f.p99_ms), ratio(|f| f.cpu));
            let (due, ran, again) = turns
                .iter()
                .fold((0, 0, 0), |(due, ran, again), turn| (due + turn.due, ran + turn.ran, again + turn.again));
            println!(
                "  {:26}{:>9.2}{again:>9}{:>10.1}{:>10.1}{:>10.1}{:>9.2}{:>9.2}{late:>11.2}{cpu:>11.2}",
                subject.name(),
                ran as f64 * 100.0 / due as f64,
                median(*subject, |f| f.p50_ms),
                median(*subject, |f| f.p99_ms),
                median(*subject, |f| f.max_ms),
                median(*subject, |f| f.cpu) * 100.0,
                median(*subject, |f| f.server_cpu) * 100.0,
            );
            if *subject != Subject::Theirs {
                ok &= ran == due && again == 0;
            }
            if *subject == Subject::Everywhere {
                ok &= late <= LATENESS && cpu <= CPU;
            }
        }
        println!(
            "  {}\n",
            if ok { "ok" } else { "missed: every tick once; on every instance p99 ≤ 0.1 and CPU ≤ 0.25 of theirs" }
        );
        ok
    }
}
