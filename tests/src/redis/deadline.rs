//! What a leader believes, beside what the server holds for it: it sees a deadline that is too late before anybody else has
//! won.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leader_core::BootInstant;

use super::server::RedisServer;
use crate::process::{Command, Fleet, Held};

/// By how much, at least, the deadline that the node has for its lease of `group` is later than the end of the lease in the
/// server; zero is what it has to be. Both are of this host's clocks, the boot clock and the wall clock, which are laid over
/// each other here: nobody may step the wall clock meanwhile. Waits for the node to lead.
///
/// # Panics
/// If that takes very long.
pub fn deadline_past_lease(fleet: &mut Fleet, redis: &RedisServer, label: &str, group: &str) -> Duration {
    let mut client = redis.client().expect("the server runs");
    let key = format!("leader:{group}");
    let mut expiry_ms = move || client.command::<i64>(&["PEXPIRETIME", &key]).expect("the server runs");
    let command = Command::Lease { group: group.to_owned() };
    fleet.until(&format!("{label} leads {group}, without a renew while one looks"), |fleet| {
        let before = expiry_ms();
        let lease = fleet.ask(label, &command).expect("a lease can always be told");
        let Held { deadline_ns, .. } = serde_json::from_value(lease).ok()?;
        // With a renew in between, the two times would be of different requests. Without a lease, this is negative.
        let expiry_ms = Some(expiry_ms()).filter(|after| *after == before)?;
        let expiry = Duration::from_millis(u64::try_from(expiry_ms).ok()?);
        Some(Clocks::read().earliest_wall(deadline_ns).saturating_sub(expiry))
    })
}

/// The node believes in its lease of `group` no longer than the server holds it.
///
/// # Panics
/// If it does, for certain: see [`deadline_past_lease`].
pub fn assert_deadline_within_lease(fleet: &mut Fleet, redis: &RedisServer, label: &str, group: &str) {
    let late = deadline_past_lease(fleet, redis, label, group);
    assert!(late.is_zero(), "{label} believes in its lease of {group} for {late:?} longer than the server holds it");
}

/// The wall clock, read before the boot clock.
struct Clocks {
    wall: Duration,
    boot_ns: u64,
}

impl Clocks {
    fn read() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).expect("this machine's clock is set");
        Self { wall, boot_ns: BootInstant::now().as_nanos() }
    }

    /// The time of the wall clock that an instant of the boot clock is, or earlier, by the time that lay between the readings.
    fn earliest_wall(&self, boot_ns: u64) -> Duration {
        self.wall + Duration::from_nanos(boot_ns) - Duration::from_nanos(self.boot_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_of_the_boot_clock_is_never_taken_for_a_later_time_than_it_was() {
        let boot_ns = BootInstant::now().as_nanos();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        for _ in 0..1000 {
            assert!(Clocks::read().earliest_wall(boot_ns) <= wall);
        }
        let clocks = Clocks { wall: Duration::from_nanos(1_000_000), boot_ns: 130 };
        assert_eq!(clocks.earliest_wall(600), Duration::from_nanos(1_000_470));
    }
}
