//! Jobs that somebody else's scheduler wakes: how long a tick waits for its ring.
//!
//! A ring is never believed. It ends the wait of a tick that is due, and nothing else: so one that comes twice, or for nothing,
//! changes nothing. A job waits for rings once it was rung, and until a tick has waited in vain: so a scheduler that has died
//! delays one tick of each job, and one that rings again is heard again.

use crate::schedule::Schedule;

/// So many seconds does a tick wait for its ring at most. tokio-cron-scheduler looks every half second which of its jobs are
/// due: under light load half of its rings come within 0.3 s, and the last of a thousand after 0.8 s.
const BACKSTOP: i64 = 2;

/// So many seconds does this tick wait for its ring; and so many before it may the ring come, where two clocks differ. The
/// wait is over a second before the next tick comes, so that none is left out for it; with ticks a second apart there is none.
pub(crate) fn patience(schedule: &Schedule, tick: i64) -> i64 {
    let gap = schedule.next_after(tick).map_or(i64::MAX, |next| next - tick);
    BACKSTOP.min(gap - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_waits_for_its_ring_no_longer_than_leaves_a_second_to_the_next() {
        for (expression, seconds) in [("* * * * * *", 0), ("*/2 * * * * *", 1), ("*/3 * * * * *", 2), ("@daily", 2)] {
            let schedule = Schedule::parse(expression, None).unwrap();
            let tick = schedule.next_after(1_800_000_000).unwrap();
            assert_eq!(patience(&schedule, tick), seconds, "{expression}");
        }
    }
}
