//! Measuring in turns, and what came of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Done once before it counts.
const WARM_UP: usize = 20;

/// What is measured, under its name. A call says how long it took.
pub(super) struct Subject {
    name: &'static str,
    call: Box<dyn FnMut() -> Duration>,
}

impl Subject {
    pub(super) fn new(name: &'static str, mut call: impl FnMut() + 'static) -> Self {
        Self::timed(name, move || {
            let begin = Instant::now();
            call();
            begin.elapsed()
        })
    }

    /// One that knows itself which part of it counts.
    pub(super) fn timed(name: &'static str, call: impl FnMut() -> Duration + 'static) -> Self {
        Self { name, call: Box::new(call) }
    }
}

/// Of each subject, how long its calls took, by round.
pub(super) struct Table(Vec<(&'static str, Vec<Vec<Duration>>)>);

impl Table {
    /// So many rounds, in each of which every subject is called so many times in a row.
    pub(super) fn measure(subjects: &mut [Subject], rounds: usize, calls: usize) -> Self {
        let mut rows: Vec<_> = subjects.iter().map(|subject| (subject.name, Vec::new())).collect();
        for round in 0..=rounds {
            for (subject, (_, taken)) in subjects.iter_mut().zip(&mut rows) {
                let calls = if round == 0 { calls.min(WARM_UP) } else { calls };
                let mut took: Vec<_> = (0..calls).map(|_| (subject.call)()).collect();
                took.sort_unstable();
                if round > 0 {
                    taken.push(took);
                }
            }
        }
        Self(rows)
    }

    /// Prints it, and returns for each subject the ratio of its median to that of the first, which is the median of all
    /// rounds' ratios.
    pub(super) fn print(&self, title: &str) -> BTreeMap<&'static str, f64> {
        println!("{title}");
        println!(
            "  {:42}{:>10}{:>10}{:>10}{:>12}{:>12}",
            "", "p50 µs", "p99 µs", "least µs", "p50 ratio", "least ratio"
        );
        let mut ratios = BTreeMap::new();
        let Some((_, first)) = self.0.first() else { return ratios };
        for (name, rounds) in &self.0 {
            let mut all: Vec<Duration> = rounds.iter().flatten().copied().collect();
            all.sort_unstable();
            let mut of_rounds: Vec<f64> =
                rounds.iter().zip(first).map(|(own, first)| part(own, 0.5) / part(first, 0.5)).collect();
            of_rounds.sort_unstable_by(f64::total_cmp);
            let ratio = of_rounds[of_rounds.len() / 2];
            let least = |rounds: &[Vec<Duration>]| rounds.iter().map(|round| part(round, 0.0)).fold(f64::MAX, f64::min);
            let (p50, p99, least_ratio) = (part(&all, 0.5), part(&all, 0.99), least(rounds) / least(first));
            println!("  {name:42}{p50:>10.0}{p99:>10.0}{:>10.0}{ratio:>12.2}{least_ratio:>12.2}", least(rounds));
            ratios.insert(*name, ratio);
        }
        println!();
        ratios
    }
}

/// In microseconds: what so large a part of them did not exceed.
fn part(sorted: &[Duration], part: f64) -> f64 {
    let at = (sorted.len() as f64 * part) as usize;
    sorted[at.min(sorted.len() - 1)].as_secs_f64() * 1e6
}
