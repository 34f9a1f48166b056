//! What came of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// So many violations are shown.
const SHOWN: usize = 20;

/// What was done, and what was found.
#[derive(Debug, Clone)]
pub struct Report<F, V> {
    /// The seed.
    pub seed: u64,
    /// How long faults happened, in seconds.
    pub seconds: f64,
    /// All processes that there were.
    pub processes: usize,
    /// How often each kind of fault struck.
    pub faults: BTreeMap<&'static str, u64>,
    /// The figures.
    pub figures: F,
    /// What must not be.
    pub violations: Vec<V>,
    /// Where the logs are, if they are kept.
    pub logs: Option<PathBuf>,
}

impl<F, V> Report<F, V> {
    /// Nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// How many faults struck.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.faults.values().sum()
    }
}

impl<F: fmt::Display, V: fmt::Display> fmt::Display for Report<F, V> {
    /// The figures end each of their lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed             {}, {:.0} s, {} processes", self.seed, self.seconds, self.processes)?;
        writeln!(f, "faults           {}", self.struck())?;
        for (name, count) in &self.faults {
            writeln!(f, "  {name:<36} {count}")?;
        }
        write!(f, "{}", self.figures)?;
        write!(f, "violations       {}", self.violations.len())?;
        for violation in self.violations.iter().take(SHOWN) {
            write!(f, "\n  {violation}")?;
        }
        if let Some(logs) = &self.logs {
            write!(f, "\nlogs             {}", logs.display())?;
        }
        Ok(())
    }
}

impl<F: Serialize, V: fmt::Display> Serialize for Report<F, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seed", &self.seed)?;
        map.serialize_entry("seconds", &self.seconds)?;
        map.serialize_entry("processes", &self.processes)?;
        map.serialize_entry("faults", &self.faults)?;
        map.serialize_entry("figures", &self.figures)?;
        let violations: Vec<_> = self.violations.iter().map(ToString::to_string).collect();
        map.serialize_entry("violations", &violations)?;
        if let Some(logs) = &self.logs {
            map.serialize_entry("logs", logs)?;
        }
        map.end()
    }
}
