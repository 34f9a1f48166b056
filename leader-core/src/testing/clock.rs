//! A clock that a test moves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::BootInstant;

/// A boot clock that stands still until [`advance`](Self::advance)d. Clones share the time.
///
/// ```
/// use leader_core::testing::ManualClock;
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(10));
/// assert_eq!(clock.now().saturating_since(before), Duration::from_secs(10));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<watch::Sender<BootInstant>>);

impl ManualClock {
    /// A clock that shows an hour after the boot.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(BootInstant::from_nanos(3_600_000_000_000))))
    }

    /// What it shows.
    #[must_use]
    pub fn now(&self) -> BootInstant {
        *self.0.borrow()
    }

    /// Moves it on, and wakes whoever waits for a time that has come.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now = now.saturating_add(by));
    }

    pub(crate) async fn sleep_until(&self, at: BootInstant) {
        // The sender lives as long as this future borrows it.
        let _ = self.0.subscribe().wait_for(|now| *now >= at).await;
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}
