//! How long is waited.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything is waited for: far longer than it takes, so that a busy machine fails no test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at what does not tell when it changes.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// Waits until `look` finds something, in what does not tell when it changes.
///
/// # Panics
/// If it does not come about for very long.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(LOOK);
    }
}
