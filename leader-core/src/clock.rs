//! The clock that decides: it goes on while the machine is suspended, and nobody can set it.
//!
//! Linux, Android, OpenBSD: `CLOCK_BOOTTIME`. macOS: `CLOCK_MONOTONIC`, which there counts suspended time. FreeBSD has no clock
//! that does, and of NetBSD we do not know: there it is `CLOCK_MONOTONIC` too, and a host must not be suspended while it leads.
//! Elsewhere: [`std::time::Instant`], which on Windows counts it. Wall clocks decide nothing.

use std::fmt;
use std::time::Duration;

/// An instant of the host's boot clock, in nanoseconds since an arbitrary start that all processes of one boot share.
///
/// Unlike [`std::time::Instant`] it counts the time that the machine was suspended: a lease must not look valid
/// after a laptop's lid or a virtual machine's pause.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(u64);

impl BootInstant {
    /// The present.
    #[inline]
    #[must_use]
    pub fn now() -> Self {
        read()
    }

    /// The instant `nanos` nanoseconds after the clock's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` until this instant; zero if `earlier` is later.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved into the future; stops at the clock's end.
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }

    /// This instant moved into the past; stops at the clock's start.
    #[must_use]
    pub fn saturating_sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(by)))
    }
}

fn nanos(by: Duration) -> u64 {
    u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for BootInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot+{:?}", Duration::from_nanos(self.0))
    }
}

/// Where an elector reads the time: the boot clock, or in tests one that is moved by hand.
#[derive(Debug, Clone, Default)]
pub(crate) enum Clock {
    #[default]
    Boot,
    #[cfg(feature = "testing")]
    Manual(crate::testing::ManualClock),
    /// What an elector must not read: whoever sets this clock makes a lease longer.
    #[cfg(feature = "testing")]
    Wall,
    /// Tokio's, since this instant: where time is paused, it goes on to the next timer once all tasks of the runtime wait.
    #[cfg(test)]
    Tokio(tokio::time::Instant),
}

impl Clock {
    #[inline]
    pub(crate) fn now(&self) -> BootInstant {
        match self {
            Self::Boot => BootInstant::now(),
            #[cfg(feature = "testing")]
            Self::Manual(clock) => clock.now(),
            #[cfg(feature = "testing")]
            Self::Wall => BootInstant(nanos(std::time::UNIX_EPOCH.elapsed().unwrap_or_default())),
            #[cfg(test)]
            Self::Tokio(start) => BootInstant(3_600_000_000_000).saturating_add(start.elapsed()),
        }
    }

    /// Returns at `at` or later. The boot clock is read again at least every [`LONGEST_SLEEP`]: timers of the runtime stand
    /// still while the machine is suspended, this clock does not.
    pub(crate) async fn sleep_until(&self, at: BootInstant) {
        match self {
            #[cfg(feature = "testing")]
            Self::Manual(clock) => clock.sleep_until(at).await,
            #[cfg(test)]
            Self::Tokio(_) => tokio::time::sleep(at.saturating_since(self.now())).await,
            _ => loop {
                let left = at.saturating_since(self.now());
                if left.is_zero() {
                    // A caller that waits for the past again and again must not starve the tasks beside it.
                    return tokio::task::yield_now().await;
                }
                tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
            },
        }
    }
}

const LONGEST_SLEEP: Duration = Duration::from_secs(1);

#[cfg(unix)]
#[inline]
fn read() -> BootInstant {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "openbsd"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd")))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let t = clock_gettime(CLOCK);
    // Both parts of a boot clock are never negative.
    BootInstant(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

#[cfg(not(unix))]
fn read() -> BootInstant {
    use std::sync::OnceLock;
    use std::time::Instant;
    // One second ahead of zero, so that no reading equals the default value.
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    BootInstant(1_000_000_000 + nanos(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back() {
        let mut last = BootInstant::now();
        for _ in 0..10_000 {
            let now = BootInstant::now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn arithmetic_saturates() {
        let t = BootInstant::from_nanos(5);
        assert_eq!(t.saturating_sub(Duration::from_secs(1)), BootInstant::from_nanos(0));
        assert_eq!(t.saturating_since(BootInstant::from_nanos(9)), Duration::ZERO);
        assert_eq!(t.saturating_add(Duration::MAX), BootInstant::from_nanos(u64::MAX));
    }
}
