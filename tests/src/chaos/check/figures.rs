//! The figures.

use std::fmt;

use serde::Serialize;

/// The figures of a chaos.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// How long a lock outlives its holder, in nanoseconds.
    pub ttl_ns: u64,
    /// Attempts to get a lock.
    pub attempts: usize,
    /// Bodies that began.
    pub acquisitions: usize,
    /// Steps of bodies.
    pub steps: usize,
    /// Bodies that ended with the lock held.
    pub done: usize,
    /// Bodies that were dropped because the lock was lost.
    pub lost: usize,
    /// Attempts that found somebody else in possession to the end of their wait.
    pub busy: usize,
    /// Attempts that failed because of the store.
    pub failed: usize,
    /// Attempts that were dropped.
    pub dropped: usize,
    /// Bodies whose process died.
    pub died: usize,
    /// Pairs of bodies that ran at once.
    pub overlaps: usize,
    /// Tokens that did not rise.
    pub bad_tokens: usize,
    /// Waiters of whom can be told whether they were passed.
    pub waiters_judged: usize,
    /// How many of those who came later passed one of them, at most.
    pub most_passes: usize,
    /// Locks whose holder died, and that were taken afterwards.
    pub holders_died: usize,
    /// Those of them where nothing but that death was the matter while somebody waited.
    pub deaths_judged: usize,
    /// The longest time that a lock was with nobody while somebody waited.
    pub longest_gap_ns: u64,
    /// The same, less what faults of the waiting and of the store account for.
    pub longest_unexcused_ns: u64,
    /// The longest time after the death of a holder where nothing else was the matter.
    pub longest_after_death_ns: u64,
}

fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "attempts         {}", self.attempts)?;
        let Self { acquisitions, done, lost, died, busy, failed, dropped, steps, .. } = self;
        writeln!(f, "acquisitions     {acquisitions}: {done} to the end, {lost} lost, {died} killed; {steps} steps")?;
        writeln!(f, "not had          {busy} busy, {failed} failed, {dropped} dropped at some instant")?;
        writeln!(f, "overlaps         {}", self.overlaps)?;
        writeln!(f, "bad tokens       {}", self.bad_tokens)?;
        writeln!(f, "waiters passed   by {} at most, of {} that can tell", self.most_passes, self.waiters_judged)?;
        let (gap, rest) = (millis(self.longest_gap_ns), millis(self.longest_unexcused_ns));
        writeln!(f, "longest gap      {gap:.0} ms with somebody waiting; {rest:.0} ms without a fault of the waiting")?;
        let (gap, ttl) = (millis(self.longest_after_death_ns), millis(self.ttl_ns));
        let Self { holders_died: died, deaths_judged: judged, .. } = self;
        writeln!(
            f,
            "holder's death   {died}; of the {judged} with nothing else the matter, {gap:.0} ms at most (ttl {ttl:.0} ms)"
        )
    }
}
