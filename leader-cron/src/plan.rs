//! Which tick of a job comes next: a pure function of the schedule, the policy, what was claimed last, and the time.
//!
//! Every tick after the last claimed one is looked at, never the time of asking alone: so whatever wakes a job late, or not at
//! all for a while, loses none. All that is old is cut with a count and a reason.

use std::fmt;
use std::time::Duration;

use crate::policy::{Missed, Policy};
use crate::schedule::Schedule;

/// So late may a tick be that a job with [`Missed::Skip`] runs: what a wake-up, a claim and a busy machine take.
const PROMPT: i64 = 5;
/// So many ticks are run after one another with [`Missed::All`].
const CAUGHT_UP: u64 = 1_000;
/// So many ticks are counted one by one; past that a count is a lower bound.
pub(crate) const COUNTED: u64 = 10_000;
pub(crate) const MICROS: i64 = 1_000_000;

/// What to do about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// This tick is due.
    Claim(Due),
    /// Nothing is, before this instant, in microseconds since 1970.
    At(i64),
    /// The schedule has ended.
    Never,
}

/// A tick that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// In seconds since 1970.
    pub(crate) tick: i64,
    /// The ticks before it that are not run.
    pub(crate) missed: Option<Gap>,
}

/// Ticks that are not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The first of them.
    pub from: i64,
    /// How many; at least so many, if they are more than can be counted quickly.
    pub count: u64,
    /// Why.
    pub reason: Reason,
}

/// Why ticks are not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A newer one is run in their place.
    Coalesced,
    /// They are older than what the job runs.
    TooOld,
    /// They are more than are caught up.
    TooMany,
    /// They may have been run: the store has lost its memory since.
    Forgotten,
    /// The job was paused, or they were still to be run when it was.
    Paused,
}

/// What a plan is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) policy: &'a Policy,
    /// The job's own: jobs of one schedule are spread by it.
    pub(crate) seed: u64,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Coalesced => "a newer one is run in their place",
            Self::TooOld => "they are older than what the job runs",
            Self::Forgotten => "the store has lost its memory, and may have forgotten that they were run",
            Self::Paused => "the job was paused",
            Self::TooMany => "they are more than are caught up",
        })
    }
}

impl Planner<'_> {
    /// What comes after `base`, the newest tick that was claimed, or before which the job does not count, in seconds; at
    /// `now`, by the store's clock, in microseconds.
    pub(crate) fn next(&self, base: i64, now: i64) -> Next {
        let second = now.div_euclid(MICROS);
        let cut = base.max(self.oldest(second));
        let tick = match self.policy.missed {
            Missed::Once => self.newest(cut, second, now),
            Missed::Skip => self.first_due(cut, now),
            Missed::All => self.first_due(self.cut_to_the_newest(cut, second), now),
        };
        match tick {
            Some(tick) => Next::Claim(Due { tick, missed: self.gap(base, cut, tick) }),
            None => match self.schedule.next_after(cut) {
                Some(next) => Next::At(self.due_at(next).max(now.saturating_add(1))),
                None => Next::Never,
            },
        }
    }

    /// No tick up to this one is run any more.
    fn oldest(&self, second: i64) -> i64 {
        let late = match self.policy.missed {
            Missed::Once | Missed::All => seconds(self.policy.within()),
            Missed::Skip => PROMPT,
        };
        let jitter = seconds(self.policy.jitter.saturating_add(Duration::from_nanos(999_999_999)));
        second.saturating_sub(late.saturating_add(jitter)).saturating_sub(1)
    }

    /// Whether a tick is older than what the job runs.
    pub(crate) fn is_too_old(&self, tick: i64, now: i64) -> bool {
        tick <= self.oldest(now.div_euclid(MICROS))
    }

    /// The ticks later than `base` that are older than what the job runs, and the second up to which they are.
    pub(crate) fn too_old(&self, base: i64, now: i64) -> Option<(Gap, i64)> {
        let oldest = self.oldest(now.div_euclid(MICROS));
        let gap = if base < oldest { self.between(base, oldest, Reason::TooOld) } else { None };
        gap.map(|gap| (gap, oldest))
    }

    /// The ticks later than `base`, up to `until`.
    pub(crate) fn between(&self, base: i64, until: i64, reason: Reason) -> Option<Gap> {
        let from = self.schedule.next_after(base).filter(|first| *first <= until)?;
        Some(Gap { from, count: self.count(base, until, COUNTED), reason })
    }

    /// When the run of a tick begins at the earliest. The same for all who ask, so that a hand-over does not begin it anew.
    pub(crate) fn due_at(&self, tick: i64) -> i64 {
        let spread = u64::try_from(self.policy.jitter.as_micros()).unwrap_or(u64::MAX);
        let late = if spread == 0 { 0 } else { mixed(self.seed ^ tick.cast_unsigned()) % spread };
        tick.saturating_mul(MICROS).saturating_add_unsigned(late)
    }

    fn is_due(&self, tick: i64, now: i64) -> bool {
        self.due_at(tick) <= now
    }

    fn first_due(&self, after: i64, now: i64) -> Option<i64> {
        self.schedule.next_after(after).filter(|tick| self.is_due(*tick, now))
    }

    /// The newest tick whose jitter has passed.
    fn newest(&self, after: i64, second: i64, now: i64) -> Option<i64> {
        let mut newest = self.schedule.last_until(after, second)?;
        while !self.is_due(newest, now) {
            newest = self.schedule.last_until(after, newest - 1)?;
        }
        Some(newest)
    }

    /// After which instant there are no more ticks than are caught up.
    fn cut_to_the_newest(&self, cut: i64, second: i64) -> i64 {
        let few = |after| self.count(after, second, CAUGHT_UP + 1) <= CAUGHT_UP;
        if few(cut) {
            return cut;
        }
        // Few up to the present, many from the cut on; the border lies between.
        let (mut many, mut least) = (cut, second);
        while least - many > 1 {
            let middle = many + (least - many) / 2;
            if few(middle) { least = middle } else { many = middle }
        }
        least
    }

    fn count(&self, after: i64, until: i64, most: u64) -> u64 {
        let ticks = std::iter::successors(self.schedule.next_after(after), |tick| self.schedule.next_after(*tick));
        let ticks = ticks.take_while(|tick| *tick <= until).take(usize::try_from(most).unwrap_or(usize::MAX));
        ticks.count() as u64
    }

    /// The ticks between the last claimed one and this one.
    fn gap(&self, base: i64, cut: i64, tick: i64) -> Option<Gap> {
        let from = self.schedule.next_after(base).filter(|first| *first < tick)?;
        let count = self.count(base, tick - 1, COUNTED);
        let reason = match self.policy.missed {
            Missed::Once if self.schedule.next_after(cut) != Some(tick) => Reason::Coalesced,
            Missed::All if cut == base || from > cut => Reason::TooMany,
            Missed::Once | Missed::All | Missed::Skip => Reason::TooOld,
        };
        Some(Gap { from, count, reason })
    }
}

fn seconds(span: Duration) -> i64 {
    i64::try_from(span.as_secs()).unwrap_or(i64::MAX)
}

/// Spreads neighbouring numbers over all numbers (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round hour.
    const START: i64 = 1_800_000_000;
    const EVERY_SECOND: &str = "* * * * * *";
    const EVERY_MINUTE: &str = "0 * * * * *";

    fn next(expression: &str, policy: Policy, base: i64, now: i64) -> Next {
        let schedule = Schedule::parse(expression, None).unwrap();
        Planner { schedule: &schedule, policy: &policy, seed: 7 }.next(START + base, (START + now) * MICROS)
    }

    fn policy(missed: Missed) -> Policy {
        Policy { missed, ..Policy::DEFAULT }
    }

    fn claim(tick: i64, missed: Option<(i64, u64, Reason)>) -> Next {
        let missed = missed.map(|(from, count, reason)| Gap { from: START + from, count, reason });
        Next::Claim(Due { tick: START + tick, missed })
    }

    fn at(second: i64) -> Next {
        Next::At((START + second) * MICROS)
    }

    #[test]
    fn a_tick_is_due_at_its_second_and_not_before() {
        for missed in [Missed::Once, Missed::Skip, Missed::All] {
            assert_eq!(next(EVERY_MINUTE, policy(missed), 0, 59), at(60), "{missed:?}");
            assert_eq!(next(EVERY_MINUTE, policy(missed), 0, 60), claim(60, None), "{missed:?}");
            assert_eq!(next(EVERY_MINUTE, policy(missed), 60, 60), at(120), "{missed:?}");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_finds_nothing_due() {
        assert_eq!(next(EVERY_MINUTE, policy(Missed::Once), 120, 61), at(180));
    }

    #[test]
    fn once_runs_the_newest_and_tells_of_the_others() {
        let expected = claim(300, Some((60, 4, Reason::Coalesced)));
        assert_eq!(next(EVERY_MINUTE, policy(Missed::Once), 0, 330), expected);
    }

    #[test]
    fn all_runs_one_after_another() {
        for (base, tick) in [(0, 60), (60, 120), (240, 300)] {
            assert_eq!(next(EVERY_MINUTE, policy(Missed::All), base, 330), claim(tick, None));
        }
        assert_eq!(next(EVERY_MINUTE, policy(Missed::All), 300, 330), at(360));
    }

    #[test]
    fn skip_runs_nothing_that_is_late() {
        assert_eq!(next(EVERY_MINUTE, policy(Missed::Skip), 0, 65), claim(60, None));
        assert_eq!(next(EVERY_MINUTE, policy(Missed::Skip), 0, 67), at(120));
        let expected = claim(300, Some((60, 4, Reason::TooOld)));
        assert_eq!(next(EVERY_MINUTE, policy(Missed::Skip), 0, 302), expected);
    }

    #[test]
    fn what_is_older_than_the_window_is_not_run() {
        let within = |missed| Policy { missed, within: Some(Duration::from_secs(120)), ..Policy::DEFAULT };
        let night = "0 0 3 * * *";
        // A tick of three minutes ago, with nothing newer.
        let schedule = Schedule::parse(night, None).unwrap();
        let tick = schedule.next_after(START).unwrap() - START;
        for missed in [Missed::Once, Missed::All] {
            assert_eq!(next(night, within(missed), 0, tick + 180), at(tick + 86_400), "{missed:?}");
            assert_eq!(next(night, within(missed), 0, tick + 120), claim(tick, None), "{missed:?}");
        }
        let expected = claim(600, Some((60, 9, Reason::TooOld)));
        assert_eq!(next(EVERY_MINUTE, within(Missed::All), 0, 720), expected);
    }

    #[test]
    fn once_tells_ticks_that_were_too_old_from_those_that_a_newer_one_replaces() {
        let (night, within) = ("0 0 3 * * *", Duration::from_secs(600));
        let schedule = Schedule::parse(night, None).unwrap();
        let first = schedule.next_after(START).unwrap() - START;
        let once = Policy { within: Some(within), ..policy(Missed::Once) };
        // Two nights in which nobody could run it, and the third.
        let expected = claim(first + 2 * 86_400, Some((first, 2, Reason::TooOld)));
        assert_eq!(next(night, once, 0, first + 2 * 86_400), expected);
        let planner = Planner { schedule: &schedule, policy: &once, seed: 7 };
        let gap = |noon: i64| planner.too_old(START, (START + noon) * MICROS).map(|(gap, _)| gap);
        assert_eq!(gap(first + 600), None, "it is still run");
        assert_eq!(gap(first + 602), Some(Gap { from: START + first, count: 1, reason: Reason::TooOld }));
    }

    #[test]
    fn a_day_away_is_caught_up_by_the_newest_thousand_at_most() {
        let anacron = Policy { within: Some(Duration::MAX), ..policy(Missed::All) };
        let (from, count) = (1, 10_000);
        let expected = claim(86_400 - 999, Some((from, count, Reason::TooMany)));
        assert_eq!(next(EVERY_SECOND, anacron, 0, 86_400), expected);
        let once = Policy { within: Some(Duration::MAX), ..policy(Missed::Once) };
        assert_eq!(next(EVERY_SECOND, once, 0, 86_400), claim(86_400, Some((1, 10_000, Reason::Coalesced))));
    }

    #[test]
    fn jitter_delays_a_tick_by_the_same_time_for_all_and_loses_none() {
        let schedule = Schedule::parse("*/10 * * * * *", None).unwrap();
        for missed in [Missed::Once, Missed::Skip, Missed::All] {
            let policy = Policy { jitter: Duration::from_secs(8), ..policy(missed) };
            let planner = Planner { schedule: &schedule, policy: &policy, seed: 7 };
            let (mut base, mut ran, mut late) = (START, Vec::new(), Vec::new());
            for now in (START * MICROS..(START + 1_000) * MICROS).step_by(100_000) {
                if let Next::Claim(due) = planner.next(base, now) {
                    assert_eq!(due.missed, None, "{missed:?} at {now}");
                    late.push(now - due.tick * MICROS);
                    ran.push(due.tick - START);
                    base = due.tick;
                }
            }
            assert_eq!(ran, (1..ran.len() as i64 + 1).map(|n| n * 10).collect::<Vec<_>>());
            assert!(ran.len() >= 98, "{ran:?}");
            assert!(
                late.iter().any(|late| *late < 2 * MICROS) && late.iter().any(|late| *late > 6 * MICROS),
                "{late:?}"
            );
            assert!(late.iter().all(|late| (0..=8 * MICROS + 100_000).contains(late)), "{late:?}");
        }
    }

    #[test]
    fn no_jitter_is_too_long_to_be_counted() {
        // A single tick has no distance that would forbid it.
        let jitter = Duration::MAX - Duration::from_nanos(1);
        assert!(matches!(next("0 0 0 1 1 * 2050", Policy { jitter, ..policy(Missed::Once) }, 0, 60), Next::At(_)));
    }

    #[test]
    fn a_schedule_that_has_ended_has_no_next() {
        assert_eq!(next("0 0 0 1 2 * 2020", policy(Missed::Once), 0, 60), Next::Never);
    }
}
