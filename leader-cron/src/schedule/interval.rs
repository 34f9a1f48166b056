//! An interval: the whole UTC seconds that are a multiple of its period, counted from 1970-01-01 00:00 UTC. Every instance and
//! every start of it has the same ones; a period that divides a day without a rest has the same ones on each day.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::ScheduleError;

/// The periods that are possible, in seconds: up to the longest year.
const PERIODS: RangeInclusive<i64> = 1..=366 * 86_400;

#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    /// Its period, in seconds.
    period: i64,
}

impl Interval {
    pub(super) fn new(period: Duration) -> Result<Self, ScheduleError> {
        let whole = i64::try_from(period.as_secs()).ok().filter(|_| period.subsec_nanos() == 0);
        let possible = whole.filter(|seconds| PERIODS.contains(seconds));
        possible.map(|period| Self { period }).ok_or(ScheduleError::Interval { period })
    }

    pub(super) fn next_after(self, after: i64) -> Option<i64> {
        after.div_euclid(self.period).checked_add(1)?.checked_mul(self.period)
    }

    pub(super) fn last_until(self, after: i64, until: i64) -> Option<i64> {
        let last = until.div_euclid(self.period).checked_mul(self.period)?;
        Some(last).filter(|last| *last > after)
    }
}

/// As people write it: `every 1h30m`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("every ")?;
        let mut left = self.period;
        for (unit, name) in [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")] {
            if left >= unit {
                write!(f, "{}{name}", left / unit)?;
                left %= unit;
            }
        }
        Ok(())
    }
}
