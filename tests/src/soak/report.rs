//! The figures of a soak.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::check::locks::Counts as LockCounts;
use super::check::wear::Wear;
use crate::cron_chaos::judge::{Counts, Figures as Ticks};

/// How long it took each time until somebody led again, in milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Spread(Vec<u32>);

impl Spread {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
    }

    fn figures(&self, bound: Duration) -> Figure {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |share: f64| sorted.get(((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1)));
        let of = |share| at(share).copied().unwrap_or_default();
        let beyond = sorted.iter().filter(|ms| u128::from(**ms) > bound.as_millis()).count();
        Figure { times: sorted.len(), p50_ms: of(0.5), p90_ms: of(0.9), p99_ms: of(0.99), max_ms: of(1.0), beyond }
    }
}

/// A distribution in short.
#[derive(Debug, Clone, Copy, Serialize)]
struct Figure {
    times: usize,
    p50_ms: u32,
    p90_ms: u32,
    p99_ms: u32,
    max_ms: u32,
    /// So often it took longer than a ttl and two tries.
    beyond: usize,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { times, p50_ms, p90_ms, p99_ms, max_ms, beyond } = self;
        write!(f, "{times} times, median {p50_ms} ms, 90 % {p90_ms}, 99 % {p99_ms}, at most {max_ms}; {beyond} beyond")
    }
}

/// The figures of a soak.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// What the store is.
    pub store: &'static str,
    /// The store is somebody else's: nothing was done to it.
    pub only_processes: bool,
    /// It was told to end before its time.
    pub ended_early: bool,
    /// So often all was mended, and judged.
    pub windows: u64,
    /// How often somebody began to lead.
    pub terms: u64,
    /// How often it was another one than before.
    pub leader_changes: u64,
    /// How often the store lost its memory, or may have.
    pub losses: u64,
    /// A ttl and two tries.
    #[serde(serialize_with = "millis")]
    pub bound: Duration,
    /// By the fault, how long after its end all groups had leaders again.
    #[serde(serialize_with = "in_short")]
    pub led_again: BTreeMap<&'static str, Spread>,
    /// What became of ticks.
    pub ticks: Ticks,
    /// What became of locks, and of what is done once.
    pub locks: LockCounts,
    /// What was in use.
    pub wear: Wear,
    /// The command that does it again.
    pub command: String,
}

fn millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(time.as_millis())
}

fn in_short<S: Serializer>(all: &BTreeMap<&'static str, Spread>, serializer: S) -> Result<S::Ok, S::Error> {
    // Without the bound, which stands beside it.
    serializer.collect_map(all.iter().map(|(name, spread)| (name, spread.figures(Duration::MAX))))
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, windows, terms, leader_changes, losses, bound, locks, wear, .. } = self;
        let early = if self.ended_early { "; ended early" } else { "" };
        writeln!(f, "store            {store}, {windows} times all was mended and judged{early}")?;
        if self.only_processes {
            writeln!(f, "                 it is somebody else's: only processes were hurt")?;
        }
        writeln!(
            f,
            "leader changes   {leader_changes}, in {terms} terms; the store lost its memory, or may have, {losses} times"
        )?;
        writeln!(f, "led again        after the end of a fault; a ttl and two tries are {} ms", bound.as_millis())?;
        for (name, spread) in &self.led_again {
            writeln!(f, "  {name:<36} {}", spread.figures(*bound))?;
        }
        let Ticks { all, bodies, after_halts, joined, .. } = &self.ticks;
        let Counts { expected, ran, lost, doubled, early, overlapping, .. } = all;
        writeln!(f, "ticks            {expected} expected, {ran} ran; {bodies} bodies")?;
        writeln!(f, "                 {lost} lost, {doubled} doubled, {early} early, {overlapping} overlapping")?;
        let Counts { died, forgotten, passed, given_up, repeated, latest_ms, .. } = all;
        writeln!(
            f,
            "by contract      {died} died with their claimer, {forgotten} forgotten, {passed} passed over, {given_up} given up, \
             {repeated} repeated"
        )?;
        writeln!(
            f,
            "                 {after_halts} beside a process that stood still, {joined} beside a run that was forgotten"
        )?;
        writeln!(f, "latest           {latest_ms} ms")?;
        let LockCounts { acquisitions, lost, once, forgotten, again } = locks;
        writeln!(f, "locks            {acquisitions} had, {lost} lost meanwhile; {once} things done once")?;
        writeln!(
            f,
            "by contract      {forgotten} had beside one that was forgotten, {again} done again that were forgotten"
        )?;
        writeln!(f, "in use           first third and last third, by {} looks", wear.samples)?;
        let (a, b) = (&wear.first, &wear.last);
        writeln!(
            f,
            "  a process      {} and {} threads, {} and {} files, {} and {} KiB",
            a.threads, b.threads, a.descriptors, b.descriptors, a.resident_kib, b.resident_kib
        )?;
        writeln!(
            f,
            "  the servers    {} and {} connections, {} and {} KiB; the checker {} and {} KiB",
            a.connections, b.connections, a.server_kib, b.server_kib, a.checker_kib, b.checker_kib
        )?;
        writeln!(f, "again            {}", self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_told_in_short() {
        let mut spread = Spread::default();
        assert_eq!(
            spread.figures(Duration::ZERO).to_string(),
            "0 times, median 0 ms, 90 % 0, 99 % 0, at most 0; 0 beyond"
        );
        for ms in (0..100).rev() {
            spread.add(Duration::from_millis(ms));
        }
        let text = spread.figures(Duration::from_millis(97)).to_string();
        assert_eq!(text, "100 times, median 50 ms, 90 % 90, 99 % 99, at most 99; 2 beyond");
    }
}
