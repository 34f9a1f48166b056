//! What came of a chaos of jobs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::judge::{Counts, Figures, Violation};
use super::settings::Settings;

/// What one chaos did, and what the judge found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// How long faults happened, in seconds.
    pub seconds: f64,
    /// All processes that there were.
    pub processes: usize,
    /// How often each kind of fault struck.
    pub faults: BTreeMap<&'static str, u64>,
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
        faults: BTreeMap<&'static str, u64>,
        figures: Figures,
        violations: Vec<Violation>,
        logs: Option<PathBuf>,
    ) -> Self {
        let (seed, seconds) = (settings.seed, settings.time().as_secs_f64());
        Self { seed, seconds, processes, faults, figures, violations, logs }
    }

    /// Nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { all, kinds, bodies, leader_changes, terms, after_halts } = &self.figures;
        writeln!(f, "seed             {}, {:.0} s, {} processes", self.seed, self.seconds, self.processes)?;
        writeln!(f, "faults           {}", self.faults.values().sum::<u64>())?;
        for (name, count) in &self.faults {
            writeln!(f, "  {name:<36} {count}")?;
        }
        writeln!(f, "leader changes   {leader_changes}, in {terms} terms")?;
        writeln!(f, "bodies           {bodies}; {} repeated, {} cut", all.repeated, all.cut)?;
        let Counts { expected, ran, lost, doubled, early, overlapping, .. } = all;
        writeln!(f, "ticks            {expected} expected, {ran} ran")?;
        writeln!(f, "lost             {lost}")?;
        writeln!(f, "doubled          {doubled}")?;
        writeln!(f, "early            {early}")?;
        writeln!(f, "overlapping      {overlapping}, and {after_halts} after a process had stood still")?;
        let Counts { died, forgotten, passed, given_up, latest_ms, .. } = all;
        writeln!(
            f,
            "by contract      {died} died with their claimer, {forgotten} forgotten, {passed} passed over, {given_up} given up"
        )?;
        writeln!(f, "latest           {latest_ms} ms")?;
        for (name, counts) in kinds {
            let Counts { expected, ran, lost, doubled, died, forgotten, passed, repeated, latest_ms, .. } = counts;
            writeln!(
                f,
                "  {name:<12} {ran}/{expected}, {lost} lost, {doubled} doubled, {died} died, {forgotten} forgotten, {passed} \
                 passed over, {repeated} repeated, latest {latest_ms} ms"
            )?;
        }
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
        map.serialize_entry("faults", &self.faults)?;
        map.serialize_entry("figures", &self.figures)?;
        let violations: Vec<_> = self.violations.iter().map(ToString::to_string).collect();
        map.serialize_entry("violations", &violations)?;
        map.end()
    }
}
