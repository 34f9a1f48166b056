//! The figures.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// What became of the ticks of one kind of jobs, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Ticks that were expected.
    pub expected: u64,
    /// Those that were begun.
    pub ran: u64,
    /// Those that were not, with no excuse.
    pub lost: u64,
    /// Bodies that began for a tick that had been begun, and were no further attempt at it.
    pub doubled: u64,
    /// Bodies that began before their tick was due.
    pub early: u64,
    /// Bodies that began while another one of the job was on.
    pub overlapping: u64,
    /// Ticks that were claimed by a process that was killed before the body's first line.
    pub died: u64,
    /// Ticks that the store may have forgotten, and a process said so.
    pub forgotten: u64,
    /// Ticks that a newer one was run in place of, as the job says.
    pub passed: u64,
    /// Bodies that were a further attempt.
    pub repeated: u64,
    /// Bodies that were cut.
    pub cut: u64,
    /// Ticks whose every attempt died, until they were given up.
    pub given_up: u64,
    /// From a tick to the first body of it, in milliseconds of this host's clock, at the most.
    pub latest_ms: i64,
}

/// The figures of a chaos.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// Of all jobs.
    pub all: Counts,
    /// By their kind.
    pub kinds: BTreeMap<&'static str, Counts>,
    /// Bodies that began.
    pub bodies: u64,
    /// How often another process led than before.
    pub leader_changes: u64,
    /// How often somebody became leader.
    pub terms: u64,
    /// Overlaps that came of a process that stood still.
    pub after_halts: u64,
    /// Overlaps of runs of which the store has forgotten the first.
    pub joined: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.expected += other.expected;
        self.ran += other.ran;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.early += other.early;
        self.overlapping += other.overlapping;
        self.died += other.died;
        self.forgotten += other.forgotten;
        self.passed += other.passed;
        self.repeated += other.repeated;
        self.cut += other.cut;
        self.given_up += other.given_up;
        self.latest_ms = self.latest_ms.max(other.latest_ms);
    }
}

impl Figures {
    /// Adds those of another time; who led is not among them.
    pub(crate) fn add(&mut self, other: &Self) {
        self.all.add(&other.all);
        for (kind, counts) in &other.kinds {
            self.kinds.entry(kind).or_default().add(counts);
        }
        self.bodies += other.bodies;
        self.after_halts += other.after_halts;
        self.joined += other.joined;
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, kinds, bodies, leader_changes, terms, after_halts, joined } = self;
        writeln!(f, "leader changes   {leader_changes}, in {terms} terms")?;
        writeln!(f, "bodies           {bodies}; {} repeated, {} cut", all.repeated, all.cut)?;
        let Counts { expected, ran, lost, doubled, early, overlapping, .. } = all;
        writeln!(f, "ticks            {expected} expected, {ran} ran")?;
        writeln!(f, "lost             {lost}")?;
        writeln!(f, "doubled          {doubled}")?;
        writeln!(f, "early            {early}")?;
        writeln!(
            f,
            "overlapping      {overlapping}, and {after_halts} after a process had stood still, {joined} after the store had forgotten"
        )?;
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
        Ok(())
    }
}
