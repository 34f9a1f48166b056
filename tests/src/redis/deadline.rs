//! What a leader believes, beside what the server holds for it: it sees a deadline that is too late before anybody else has
//! won.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leader_core::BootInstant;

use super::server::RedisServer;
use crate::process::{Command, Fleet, Held};

/// The node believes in its lease of `group` no longer than the server holds it. Both times are of this host's clocks, the
/// boot clock and the wall clock, which are laid over each other here: nobody may step the wall clock meanwhile. Waits for
/// the node to lead, and returns by how much its deadline is earlier, at least.
///
/// # Panics
/// If it is later, for certain.
pub fn assert_deadline_within_lease(fleet: &mut Fleet, redis: &RedisServer, label: &str, group: &str) -> Duration {
    let key = format!("leader:{group}");
    let expiry_ms = || redis.command::<i64>(&["PEXPIRETIME", &key]);
    let command = Command::Lease { group: group.to_owned() };
    fleet.until(&format!("{label} leads {group}, without a renew while one looks"), |fleet| {
        let before = expiry_ms();
        let lease = fleet.ask(label, &command).expect("a lease can always be told");
        let Held { deadline_ns, .. } = serde_json::from_value(lease).ok()?;
        // With a renew in between, the two times would be of different requests.
        let after = expiry_ms();
        let expiry_ms = u64::try_from(after).ok().filter(|_| after == before)?;
        let clocks = Clocks::read();
        let (earliest, latest) = clocks.wall_ns(deadline_ns);
        let expiry_ns = expiry_ms * 1_000_000;
        let late = Duration::from_nanos(earliest.saturating_sub(expiry_ns));
        assert!(
            late.is_zero(),
            "{label} believes in its lease of {group} for {late:?} longer than the server holds it"
        );
        Some(Duration::from_nanos(expiry_ns.saturating_sub(latest)))
    })
}

/// The wall clock, read between two readings of the boot clock.
struct Clocks {
    before_ns: u64,
    wall_ns: u64,
    after_ns: u64,
}

impl Clocks {
    fn read() -> Self {
        let before_ns = BootInstant::now().as_nanos();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).expect("this machine's clock is set");
        let wall_ns = u64::try_from(wall.as_nanos()).expect("it is not that late");
        Self { before_ns, wall_ns, after_ns: BootInstant::now().as_nanos() }
    }

    /// The earliest and the latest time of the wall clock that an instant of the boot clock may be.
    fn wall_ns(&self, boot_ns: u64) -> (u64, u64) {
        // All of these are of this boot, and no wall clock that is set is younger than that.
        let at = |boot_now_ns: u64| (self.wall_ns + boot_ns).saturating_sub(boot_now_ns);
        (at(self.after_ns), at(self.before_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_time_is_a_span_of_wall_time_as_long_as_the_reading_took() {
        let clocks = Clocks { before_ns: 100, wall_ns: 1_000_000, after_ns: 130 };
        assert_eq!(clocks.wall_ns(130), (1_000_000, 1_000_030));
        assert_eq!(clocks.wall_ns(600), (1_000_470, 1_000_500));
        let now = Clocks::read();
        let (earliest, latest) = now.wall_ns(now.before_ns);
        assert!(earliest <= now.wall_ns && now.wall_ns <= latest);
    }
}
