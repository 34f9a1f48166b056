//! The rhythm of an election, and the rules that keep it safe.

use std::time::Duration;

use crate::election::MAX_TTL;
use crate::error::ConfigError;

/// The shortest lease, and the shortest lock.
pub(crate) const MIN_TTL: Duration = Duration::from_millis(100);
const DEFAULT_TTL: Duration = Duration::from_secs(10);
const MOST_RETRY: Duration = Duration::from_secs(1);
const DEFAULT_GRACE: Duration = Duration::from_secs(10);
const MOST_OPERATION_TIMEOUT: Duration = Duration::from_secs(1);
const MOST_START_TIMEOUT: Duration = Duration::from_secs(15);
const LEAST_GUARD: Duration = Duration::from_millis(2);
const DEFAULT_DRIFT_PPM: u32 = 500;

/// What was asked for; the rest follows from the ttl.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) ttl: Option<Duration>,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) retry: Option<Duration>,
    pub(crate) operation_timeout: Option<Duration>,
    pub(crate) drift_ppm: Option<u32>,
    pub(crate) start_timeout: Option<Duration>,
    pub(crate) grace: Option<Duration>,
    pub(crate) spread: Option<Duration>,
}

/// A rhythm that keeps the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) ttl: Duration,
    pub(crate) guard: Duration,
    drift_ppm: u32,
    pub(crate) heartbeat: Duration,
    pub(crate) retry: Duration,
    pub(crate) operation_timeout: Duration,
    pub(crate) start_timeout: Duration,
    /// How long a start may take where the store gives no lease to anybody yet, and says until when.
    pub(crate) quarantined_start: Duration,
    pub(crate) grace: Duration,
    /// The longest delay by which an instance that holds leases is slower to take another.
    pub(crate) spread: Duration,
}

impl Wishes {
    pub(crate) fn resolve(&self) -> Result<Timing, ConfigError> {
        let ttl = self.ttl.unwrap_or(DEFAULT_TTL);
        let drift_ppm = self.drift_ppm.unwrap_or(DEFAULT_DRIFT_PPM);
        let guard = guard(ttl, drift_ppm);
        // A short lease that a single slow call has cost must not stay free for longer than it lasts.
        let retry = self.retry.unwrap_or(MOST_RETRY.min(ttl / 3));
        let operation_timeout = self.operation_timeout.unwrap_or(MOST_OPERATION_TIMEOUT.min(ttl / 5));
        let patient = MOST_START_TIMEOUT.saturating_add(operation_timeout).saturating_add(retry);
        let timing = Timing {
            ttl,
            guard,
            drift_ppm,
            heartbeat: self.heartbeat.unwrap_or(ttl / 3),
            retry,
            operation_timeout,
            start_timeout: self.start_timeout.unwrap_or(MOST_START_TIMEOUT.min(ttl)),
            quarantined_start: self.start_timeout.unwrap_or(patient),
            grace: self.grace.unwrap_or(DEFAULT_GRACE),
            spread: self.spread.unwrap_or(ttl / 10),
        };
        timing.check()?;
        Ok(timing)
    }
}

/// The part of a ttl that its holder does not use: its clock may be slow by the drift and the store's fast by as much.
fn guard(ttl: Duration, drift_ppm: u32) -> Duration {
    LEAST_GUARD.max(ttl.saturating_mul(drift_ppm).saturating_mul(2) / 1_000_000)
}

impl Timing {
    /// The guard of another ttl than the elector's.
    pub(crate) fn guard_of(&self, ttl: Duration) -> Duration {
        guard(ttl, self.drift_ppm)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse =
            |rule: &'static str, values: String, instead: String| Err(ConfigError::Timing { rule, values, instead });
        if !(MIN_TTL..=MAX_TTL).contains(&self.ttl) {
            let instead = format!("ttl {:?}", self.ttl.clamp(MIN_TTL, MAX_TTL));
            return refuse("100ms <= ttl <= 1h", format!("ttl {:?}", self.ttl), instead);
        }
        let zero = [
            ("heartbeat > 0", self.heartbeat, self.ttl / 3),
            ("retry > 0", self.retry, MOST_RETRY.min(self.ttl / 3)),
            ("operation timeout > 0", self.operation_timeout, MOST_OPERATION_TIMEOUT.min(self.ttl / 5)),
            ("start timeout > 0", self.start_timeout, MOST_START_TIMEOUT.min(self.ttl)),
        ];
        for (rule, value, instead) in zero {
            if value.is_zero() {
                return refuse(rule, "0s".to_owned(), format!("{instead:?}"));
            }
        }
        let usable = self.ttl.saturating_sub(self.guard);
        if self.heartbeat.saturating_add(self.operation_timeout) >= usable {
            let values = format!(
                "heartbeat {:?} + operation timeout {:?} against ttl {:?} - guard {:?}",
                self.heartbeat, self.operation_timeout, self.ttl, self.guard
            );
            let instead = format!("heartbeat {:?} and operation timeout {:?}", usable / 3, usable / 5);
            return refuse("heartbeat + operation timeout < ttl - guard", values, instead);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn with(change: impl FnOnce(&mut Wishes)) -> Result<Timing, ConfigError> {
        let mut wishes = Wishes::default();
        change(&mut wishes);
        wishes.resolve()
    }

    #[test]
    fn the_defaults_follow_from_the_ttl() {
        let timing = Wishes::default().resolve().unwrap();
        assert_eq!(timing.ttl, Duration::from_secs(10));
        assert_eq!(timing.guard, 10 * MS);
        assert_eq!(timing.heartbeat, timing.ttl / 3);
        assert_eq!((timing.retry, timing.operation_timeout), (1000 * MS, 1000 * MS));
        assert_eq!(timing.start_timeout, timing.ttl);
        let quick = with(|w| w.ttl = Some(100 * MS)).unwrap();
        assert_eq!((quick.guard, quick.operation_timeout), (2 * MS, 20 * MS));
        assert_eq!(quick.retry, quick.ttl / 3);
        assert_eq!(with(|w| w.ttl = Some(MAX_TTL)).unwrap().start_timeout, MOST_START_TIMEOUT);
    }

    #[test]
    fn a_broken_rule_is_refused_with_values_that_keep_it() {
        let refused = [
            with(|w| w.ttl = Some(99 * MS)),
            with(|w| w.ttl = Some(MAX_TTL + MS)),
            with(|w| w.heartbeat = Some(Duration::from_secs(10))),
            with(|w| w.heartbeat = Some(Duration::from_secs(9))),
            with(|w| w.operation_timeout = Some(Duration::from_secs(7))),
            with(|w| w.drift_ppm = Some(500_000)),
            with(|w| w.retry = Some(Duration::ZERO)),
            with(|w| w.heartbeat = Some(Duration::ZERO)),
            with(|w| w.operation_timeout = Some(Duration::ZERO)),
        ];
        for timing in refused {
            let text = timing.unwrap_err().to_string();
            assert!(text.contains("rule") && text.contains("instead"), "{text}");
        }
    }
}
