//! What came of a chaos.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::check::{Figures, Violation};
use super::plan::KINDS;
use super::settings::Settings;

/// What one chaos did, and what the checker found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// How long faults happened, in seconds.
    pub seconds: f64,
    /// All processes that there were.
    pub processes: usize,
    /// How long a lock outlives its holder, in nanoseconds.
    pub ttl_ns: u64,
    /// How often each kind of fault struck, in the order of [`KINDS`].
    pub faults: [u64; KINDS.len()],
    /// The figures.
    pub figures: Figures,
    /// What must not be.
    pub violations: Vec<Violation>,
    /// Where the logs are, if they are kept.
    pub logs: Option<PathBuf>,
}

impl Report {
    pub(super) fn new(
        settings: &Settings,
        processes: usize,
        faults: [u64; KINDS.len()],
        figures: Figures,
        violations: Vec<Violation>,
        logs: Option<PathBuf>,
    ) -> Self {
        let (seed, seconds) = (settings.seed, settings.time.as_secs_f64());
        Self { seed, seconds, processes, ttl_ns: super::log::nanos(settings.ttl), faults, figures, violations, logs }
    }

    /// Nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}

fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        writeln!(f, "seed             {}, {:.0} s, {} processes", self.seed, self.seconds, self.processes)?;
        writeln!(f, "faults           {}", self.faults.iter().sum::<u64>())?;
        for (name, count) in KINDS.iter().zip(self.faults).filter(|(_, count)| *count > 0) {
            writeln!(f, "  {name:<28} {count}")?;
        }
        writeln!(f, "attempts         {}", figures.attempts)?;
        let Figures { acquisitions, done, lost, died, busy, failed, dropped, steps, .. } = figures;
        writeln!(f, "acquisitions     {acquisitions}: {done} to the end, {lost} lost, {died} killed; {steps} steps")?;
        writeln!(f, "not had          {busy} busy, {failed} failed, {dropped} dropped at some instant")?;
        writeln!(f, "overlaps         {}", figures.overlaps)?;
        writeln!(f, "bad tokens       {}", figures.bad_tokens)?;
        writeln!(
            f,
            "waiters passed   by {} at most, of {} that can tell",
            figures.most_passes, figures.waiters_judged
        )?;
        let (gap, rest) = (millis(figures.longest_gap_ns), millis(figures.longest_unexcused_ns));
        writeln!(f, "longest gap      {gap:.0} ms with somebody waiting; {rest:.0} ms without a fault of the waiting")?;
        let (gap, ttl) = (millis(figures.longest_after_death_ns), millis(self.ttl_ns));
        let Figures { holders_died: died, deaths_judged: judged, .. } = figures;
        writeln!(
            f,
            "holder's death   {died}; of the {judged} with nothing else the matter, {gap:.0} ms at most (ttl {ttl:.0} ms)"
        )?;
        write!(f, "violations       {}", self.violations.len())?;
        for violation in self.violations.iter().take(20) {
            write!(f, "\n  {violation}")?;
        }
        if let Some(logs) = &self.logs {
            write!(f, "\nlogs             {}", logs.display())?;
        }
        Ok(())
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seed", &self.seed)?;
        map.serialize_entry("seconds", &self.seconds)?;
        map.serialize_entry("processes", &self.processes)?;
        map.serialize_entry("ttl_ns", &self.ttl_ns)?;
        let faults: BTreeMap<_, _> = KINDS.iter().zip(self.faults).filter(|(_, count)| *count > 0).collect();
        map.serialize_entry("faults", &faults)?;
        map.serialize_entry("figures", &self.figures)?;
        let violations: Vec<_> = self.violations.iter().map(ToString::to_string).collect();
        map.serialize_entry("violations", &violations)?;
        map.end()
    }
}
