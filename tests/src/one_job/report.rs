//! What became of the ticks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use leader_cron::testing::{Gap, Reason, Schedule};

/// A body that began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// The tick, in seconds since 1970.
    pub tick: i64,
    /// Where.
    pub instance: usize,
    /// How many ticks before it were not run, as it was told.
    pub missed: u64,
    /// What the store's clock showed, in microseconds.
    pub store_us: u64,
}

/// What became of the ticks.
#[derive(Debug, Default)]
pub struct Report {
    /// The bodies, in the order of their beginnings.
    pub ran: Vec<Ran>,
    /// Ticks that were expected: from the job's registration to the end.
    pub expected: u64,
    /// Ticks of which nothing was told and that did not run.
    pub lost: Vec<i64>,
    /// Ticks that ran more than once.
    pub doubled: Vec<i64>,
    /// Ticks that ran before the store's clock had shown them.
    pub early: Vec<i64>,
    /// Ticks that ran, and of which it was told that they do not.
    pub misreported: Vec<i64>,
    /// Ticks that did not run, and of which it was told why.
    pub told: BTreeMap<&'static str, u64>,
    /// Seconds after its tick that the latest run began, by the store's clock.
    pub latest_s: i64,
    /// How often the lead changed, clocks were set, and the course was woken.
    pub reigns: u64,
    /// See `reigns`.
    pub steps: u64,
    /// See `reigns`.
    pub wakes: u64,
    /// What was told, as it came.
    pub(super) gaps: Vec<Gap>,
    pub(super) superseded: BTreeSet<i64>,
}

impl Report {
    /// The count of what was told for this reason.
    #[must_use]
    pub fn told(&self, reason: &str) -> u64 {
        self.told.get(reason).copied().unwrap_or(0)
    }

    /// Nothing is lost, doubled, early, or told wrongly.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        [&self.lost, &self.doubled, &self.early, &self.misreported].iter().all(|ticks| ticks.is_empty())
    }

    /// Adds up, for the ticks after `since`, up to `until`; `peaks`: what the store's clock had shown at most, by body.
    pub(super) fn judge(&mut self, schedule: &Schedule, since: i64, until: i64, peaks: &[u64]) {
        let mut times: BTreeMap<i64, u64> = BTreeMap::new();
        for (body, peak) in self.ran.iter().zip(peaks) {
            *times.entry(body.tick).or_default() += 1;
            if *peak < body.tick.cast_unsigned() * 1_000_000 {
                self.early.push(body.tick);
            }
            self.latest_s = self.latest_s.max((body.store_us / 1_000_000) as i64 - body.tick);
        }
        let mut told: BTreeMap<i64, &'static str> = self.superseded.iter().map(|tick| (*tick, "superseded")).collect();
        for gap in &self.gaps {
            let ticks = std::iter::successors(schedule.next_after(gap.from - 1), |tick| schedule.next_after(*tick));
            told.extend(ticks.take(gap.count as usize).map(|tick| (tick, name(gap.reason))));
        }
        let ticks = std::iter::successors(schedule.next_after(since), |tick| schedule.next_after(*tick));
        for tick in ticks.take_while(|tick| *tick <= until) {
            self.expected += 1;
            match (times.get(&tick), told.get(&tick)) {
                (None, None) => self.lost.push(tick),
                (None, Some(reason)) => *self.told.entry(reason).or_default() += 1,
                (Some(_), Some(_)) => self.misreported.push(tick),
                (Some(_), None) => {}
            }
        }
        self.doubled = times.into_iter().filter(|(_, times)| *times > 1).map(|(tick, _)| tick).collect();
    }
}

fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::Coalesced => "coalesced",
        Reason::TooOld => "too old",
        Reason::TooMany => "too many",
        Reason::Forgotten => "forgotten",
        Reason::Paused => "paused",
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, ran, lost, doubled, early, misreported, told, latest_s, reigns, steps, wakes, .. } = self;
        write!(
            f,
            "{expected} ticks: {} ran, {} lost, {} doubled, {} early, {} told wrongly, told why not: {told:?}; at most \
             {latest_s} s late; {reigns} reigns, {steps} steps of clocks, {wakes} wakes",
            ran.len(),
            lost.len(),
            doubled.len(),
            early.len(),
            misreported.len()
        )
    }
}
