//! Clocks that run a little wrong.

use leader_core::BootInstant;

/// The clocks of one host. True time is in nanoseconds since the run began, at most an hour.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    offset: u64,
    /// Ticks in a million true nanoseconds.
    rate: u64,
    /// What the wall clock is ahead of the boot clock.
    wall: Option<i64>,
}

impl Clock {
    /// A boot clock that stood at `offset` when the run began, and runs `ppm` too fast.
    #[must_use]
    pub fn new(offset: u64, ppm: i64) -> Self {
        Self { offset, rate: 1_000_000_u64.saturating_add_signed(ppm), wall: None }
    }

    /// Its host's wall clock in its place: it can be set.
    #[must_use]
    pub fn wall(self) -> Self {
        Self { wall: Some(0), ..self }
    }

    /// Somebody sets the wall clock; a boot clock does not care.
    pub fn set(&mut self, by: i64) {
        self.wall = self.wall.map(|wall| wall + by);
    }

    /// Nanoseconds on this clock at a true instant.
    #[must_use]
    pub fn nanos(&self, at: u64) -> u64 {
        let boot = self.offset + (at as u128 * self.rate as u128 / 1_000_000) as u64;
        boot.saturating_add_signed(self.wall.unwrap_or(0))
    }

    /// What this clock shows at a true instant.
    #[must_use]
    pub fn read(&self, at: u64) -> BootInstant {
        BootInstant::from_nanos(self.nanos(at))
    }

    /// The first true instant at which this clock shows `instant` or more.
    #[must_use]
    pub fn when(&self, instant: BootInstant) -> u64 {
        let boot = instant.as_nanos().saturating_add_signed(-self.wall.unwrap_or(0));
        let since = boot.saturating_sub(self.offset);
        (since as u128 * 1_000_000).div_ceil(self.rate as u128).min(u128::from(u64::MAX)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_found_where_the_clock_shows_it() {
        for ppm in [-50_000, -500, 0, 499, 50_000] {
            let clock = Clock::new(1_000_000_007, ppm);
            for at in [0, 1, 999, 123_456_789_012] {
                let shown = clock.read(at);
                let found = clock.when(shown);
                assert!(found <= at && clock.read(found) == shown, "{ppm} ppm at {at}: {found}");
            }
        }
    }
}
