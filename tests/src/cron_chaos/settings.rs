//! What a chaos of jobs is to be like.

use std::path::PathBuf;
use std::time::Duration;

use crate::chaos::Place;

/// One chaos.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the ledger is.
    pub place: Place,
    /// About so many ticks come due while faults happen.
    pub ticks: u64,
    /// So many of them each second.
    pub rate: usize,
    /// Chooses the faults, and what clocks show.
    pub seed: u64,
    /// How many processes.
    pub processes: usize,
    /// How long a lease lasts.
    pub ttl: Duration,
    /// Nobody keeps a ledger: each process wakes by its own clock, and the body asks who leads. To see that it takes one.
    pub without_ledger: bool,
    /// Where the logs are kept; they go with the chaos otherwise.
    pub logs: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            place: Place::OwnRedis,
            ticks: 20_000,
            rate: 500,
            seed: 1,
            processes: 4,
            ttl: Duration::from_secs(1),
            without_ledger: false,
            logs: None,
        }
    }
}

impl Settings {
    /// How long faults happen.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.ticks as f64 / self.rate as f64)
    }

    /// How long one call of the store may take.
    #[must_use]
    pub fn operation_timeout(&self) -> Duration {
        self.ttl * 3 / 10
    }

    /// Time from a failure to the next attempt.
    #[must_use]
    pub fn retry(&self) -> Duration {
        self.ttl / 5
    }
}
