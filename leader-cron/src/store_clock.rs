//! The store's clock, by which ticks are due: what was last heard of it, carried on by the boot clock.

use std::time::Duration;

use leader_core::BootInstant;

/// A reading that is older than this may be off by what clocks drift.
const EXACT: Duration = Duration::from_secs(5);
/// Of a reading's age, so much is allowed for drift: twice what a bad oscillator does.
const DRIFT: u32 = 1_000;
const MOST: Duration = Duration::from_secs(2);

/// What is known of the store's clock.
#[derive(Debug, Clone, Copy)]
pub struct StoreClock {
    at: BootInstant,
    micros: i64,
}

impl StoreClock {
    /// An answer that came at `at` said so. The store wrote it a little earlier, so this is never ahead of it.
    pub fn new(at: BootInstant, micros: u64) -> Self {
        Self { at, micros: i64::try_from(micros).unwrap_or(i64::MAX) }
    }

    /// What it says at `now`, in microseconds since 1970.
    pub fn micros(&self, now: BootInstant) -> i64 {
        self.micros.saturating_add(micros(now.saturating_since(self.at)))
    }

    /// By so much it may be ahead of that.
    pub fn slack(&self, now: BootInstant) -> Duration {
        let age = now.saturating_since(self.at);
        if age < EXACT { Duration::ZERO } else { (age / DRIFT).min(MOST) }
    }

    /// When it will say so.
    pub fn instant_of(&self, micros: i64) -> BootInstant {
        let ahead = u64::try_from(micros.saturating_sub(self.micros)).unwrap_or(0);
        self.at.saturating_add(Duration::from_micros(ahead))
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
