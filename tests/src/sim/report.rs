//! What came of one run, or of many.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::fault_set::Kind;
use super::faults::{Fault, KINDS};

/// The figures of one run, or of many together. Times are nanoseconds of true time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Runs, each of one seed.
    pub runs: u64,
    /// Simulated time.
    pub simulated: u64,
    /// How often each kind of fault struck, in the order of [`Kind::all`].
    pub faults: [u64; KINDS],
    /// Leases that the store handed out.
    pub acquisitions: u64,
    /// Commands that the store executed.
    pub commands: u64,
    /// Answers that told a candidate to wait for lost memory.
    pub quarantines: u64,
    /// Instances that found a second process with their id, and stayed out until restarted.
    pub duplicates: u64,
    /// Another instance led than before.
    pub handovers: u64,
    /// Leaderless time at these, together.
    pub handover_gaps: u64,
    /// Time with a leader.
    pub led: u64,
    /// The longest time without.
    pub longest_gap: u64,
    /// Runs that had no leader after ten quiet ttls at their end.
    pub stuck: u64,
    /// Two views at one time.
    pub overlaps: u64,
    /// The longest of them.
    pub longest_overlap: u64,
    /// Terms that repeated or fell.
    pub bad_terms: u64,
    /// The smallest seed with an overlap or a bad term, and the first thing wrong there.
    pub failure: Option<(u64, String)>,
}

impl Report {
    /// Counts a fault.
    pub fn struck(&mut self, fault: Fault) {
        self.faults[fault.number()] += 1;
    }

    /// Adds the figures of other runs.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.simulated += other.simulated;
        for (sum, more) in self.faults.iter_mut().zip(other.faults) {
            *sum += more;
        }
        self.acquisitions += other.acquisitions;
        self.commands += other.commands;
        self.quarantines += other.quarantines;
        self.duplicates += other.duplicates;
        self.handovers += other.handovers;
        self.handover_gaps += other.handover_gaps;
        self.led += other.led;
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.stuck += other.stuck;
        self.overlaps += other.overlaps;
        self.longest_overlap = self.longest_overlap.max(other.longest_overlap);
        self.bad_terms += other.bad_terms;
        let first = [self.failure.take(), other.failure.clone()].into_iter().flatten().min_by_key(|(seed, _)| *seed);
        self.failure = first;
    }

    /// Neither an overlap nor a bad term.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.overlaps == 0 && self.bad_terms == 0
    }

    /// Simulated hours.
    #[must_use]
    pub fn hours(&self) -> f64 {
        self.simulated as f64 / 3.6e12
    }

    /// The share of time that nobody led, in percent.
    #[must_use]
    pub fn leaderless_percent(&self) -> f64 {
        100.0 * (1.0 - self.led as f64 / self.simulated.max(1) as f64)
    }

    fn mean_gap_ms(&self) -> f64 {
        self.handover_gaps as f64 / 1e6 / self.handovers.max(1) as f64
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seeds            {}", self.runs)?;
        writeln!(f, "simulated        {:.2} h", self.hours())?;
        writeln!(f, "faults           {}", self.faults.iter().sum::<u64>())?;
        for ((_, name), count) in Fault::all().zip(self.faults).filter(|(_, count)| *count > 0) {
            writeln!(f, "  {name:<26} {count}")?;
        }
        writeln!(f, "commands         {}", self.commands)?;
        writeln!(f, "acquisitions     {}", self.acquisitions)?;
        writeln!(f, "quarantine waits {}", self.quarantines)?;
        writeln!(f, "duplicates       {}", self.duplicates)?;
        writeln!(f, "hand-overs       {}, mean gap {:.1} ms", self.handovers, self.mean_gap_ms())?;
        let longest = self.longest_gap as f64 / 1e9;
        writeln!(f, "leaderless       {:.2} %, at most {longest:.2} s", self.leaderless_percent())?;
        writeln!(f, "stuck at the end {}", self.stuck)?;
        writeln!(f, "overlaps         {}, at most {:.3} ms", self.overlaps, millis(self.longest_overlap))?;
        write!(f, "bad terms        {}", self.bad_terms)
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seeds", &self.runs)?;
        map.serialize_entry("hours", &self.hours())?;
        let faults: std::collections::BTreeMap<_, _> = Fault::all().map(|(_, name)| name).zip(self.faults).collect();
        map.serialize_entry("faults", &faults)?;
        map.serialize_entry("commands", &self.commands)?;
        map.serialize_entry("acquisitions", &self.acquisitions)?;
        map.serialize_entry("quarantine_waits", &self.quarantines)?;
        map.serialize_entry("duplicates", &self.duplicates)?;
        map.serialize_entry("handovers", &self.handovers)?;
        map.serialize_entry("mean_gap_ms", &self.mean_gap_ms())?;
        map.serialize_entry("leaderless_percent", &self.leaderless_percent())?;
        map.serialize_entry("longest_gap_ms", &millis(self.longest_gap))?;
        map.serialize_entry("stuck", &self.stuck)?;
        map.serialize_entry("overlaps", &self.overlaps)?;
        map.serialize_entry("longest_overlap_ms", &millis(self.longest_overlap))?;
        map.serialize_entry("bad_terms", &self.bad_terms)?;
        map.serialize_entry("failure", &self.failure.as_ref().map(|(_, what)| what))?;
        map.serialize_entry("failing_seed", &self.failure.as_ref().map(|(seed, _)| seed))?;
        map.end()
    }
}
