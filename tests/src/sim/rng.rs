//! Random numbers whose sequence never changes: a seed that found something must go on meaning the same run, so no library's
//! generator is used.

use std::time::Duration;

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The generator of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // Neighbouring seeds start far apart.
        Self(seed.wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    /// Any number.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// At least 0, less than 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An index below `count`, which is at least 1.
    pub fn index(&mut self, count: usize) -> usize {
        (self.bits() % count as u64) as usize
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.bits() % (high - low + 1).unsigned_abs()) as i64
    }

    /// Nanoseconds, less than `most`.
    pub fn below(&mut self, most: Duration) -> u64 {
        (most.as_nanos() as f64 * self.unit()) as u64
    }

    /// Nanoseconds, exponentially distributed.
    pub fn around(&mut self, mean: Duration) -> u64 {
        (-(mean.as_nanos() as f64) * (1.0 - self.unit()).ln()) as u64
    }
}
