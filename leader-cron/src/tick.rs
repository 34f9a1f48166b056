//! What a run knows of itself.

use std::time::{Duration, SystemTime};

use leader_core::Lease;

/// One scheduled instant of a job. A job that wants to know it takes a `Tick` (or `&Tick`) among its arguments.
///
/// It is the *intended* time, in whole seconds: the one that the schedule names, however late the run begins. Use it, not
/// the clock, to say which hour a report is about, and as a key that is the same on every instance.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use leader_cron::Tick;
///
/// async fn report(tick: Tick) -> String {
///     format!("report-{}", tick.unix_seconds())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // In a test, a job is a function like any other.
/// let tick = Tick::at(SystemTime::UNIX_EPOCH + Duration::from_millis(3_600_250));
/// assert_eq!(report(tick).await, "report-3600");
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Tick {
    unix_seconds: i64,
    attempt: u32,
    missed: u64,
    manual: bool,
    lease: Option<Lease>,
}

impl Tick {
    /// The tick of this instant, without its fraction of a second: the first attempt, with none missed before it.
    #[must_use]
    pub fn at(intended: SystemTime) -> Self {
        Self::of(unix_seconds(intended))
    }

    pub(crate) fn of(unix_seconds: i64) -> Self {
        Self { unix_seconds, attempt: 1, missed: 0, manual: false, lease: None }
    }

    /// The same tick, run for the `attempt`th time.
    #[must_use]
    pub fn with_attempt(self, attempt: u32) -> Self {
        Self { attempt, ..self }
    }

    /// The same tick, run also for this many earlier ones that were not run.
    #[must_use]
    pub fn with_missed(self, missed: u64) -> Self {
        Self { missed, ..self }
    }

    /// The same tick, run under this lease.
    #[must_use]
    pub fn with_lease(self, lease: Lease) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// The same, of a run by hand.
    #[must_use]
    pub fn by_hand(self) -> Self {
        Self { manual: true, ..self }
    }

    /// The intended time in seconds since 1970-01-01 00:00 UTC.
    #[must_use]
    pub fn unix_seconds(&self) -> i64 {
        self.unix_seconds
    }

    /// The intended time.
    #[must_use]
    pub fn intended(&self) -> SystemTime {
        instant(self.unix_seconds)
    }

    /// Which attempt at this tick the run is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How many ticks before this one were not run: this instance was asleep or late, or the run before took too long. No
    /// more than 10,000 are counted at a time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Whether the run is one [by hand](crate::Running::trigger): the time is then the second in which it began, which the
    /// schedule need not name, and no tick is consumed.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.manual
    }

    /// The lease that the run is under; `None` for a job of no group. Its [term](Lease::term) is the fencing token.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }
}

/// The whole second that `instant` lies in.
pub(crate) fn unix_seconds(instant: SystemTime) -> i64 {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    match instant.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => seconds(after),
        Err(before) if before.duration().subsec_nanos() == 0 => -seconds(before.duration()),
        Err(before) => -seconds(before.duration()) - 1,
    }
}

/// The begin of a second.
pub(crate) fn instant(unix_seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(unix_seconds.unsigned_abs());
    if unix_seconds < 0 { SystemTime::UNIX_EPOCH - distance } else { SystemTime::UNIX_EPOCH + distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_a_whole_second_and_never_a_later_one() {
        let epoch = SystemTime::UNIX_EPOCH;
        for (instant, expected) in [
            (epoch + Duration::from_millis(1_999), 1),
            (epoch, 0),
            (epoch - Duration::from_millis(1), -1),
            (epoch - Duration::from_secs(2), -2),
        ] {
            let tick = Tick::at(instant);
            assert_eq!(tick.unix_seconds(), expected);
            assert!(tick.intended() <= instant && instant < tick.intended() + Duration::from_secs(1));
        }
    }
}
