//! The server's wall clock beside this host's, and beside this host's boot clock.
//!
//! Ticks are due by the server's clock. No lease depends on how it stands, but each on how it goes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use super::super::connection::Reply;
use crate::clock::BootInstant;
use crate::doctor::{Finding, Severity};

/// From there on it is told that the clocks differ; a host that sets its clock by NTP is a hundred times nearer.
const APART: Duration = Duration::from_secs(2);
/// From there on ticks come at quite another time than the one that a body reads from its own clock.
const FAR_APART: Duration = Duration::from_secs(30);

/// A clock that goes wrong by so much was set, unless this much of the time between has passed since: NTP slews by half of it.
const JUMP: Duration = Duration::from_secs(1);
const SLEW: u32 = 1_000;
/// So long it is told.
const TOLD: Duration = Duration::from_secs(600);
/// So many servers are remembered: of those that are gone the clocks do not matter.
const MOST: usize = 64;

/// A reading of the server's clock between two readings of this host's, all in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// Since 1970.
    server: i64,
    /// Before and after, by the wall clock since 1970.
    wall: [i64; 2],
    /// The same by the boot clock.
    boot: [i64; 2],
}

/// This host's clocks, by which a reading begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    wall: i64,
    boot: BootInstant,
}

impl Start {
    pub(super) fn now() -> Self {
        Self { wall: wall(), boot: BootInstant::now() }
    }

    /// The reading, if this is what `TIME` answers.
    pub(super) fn end(self, reply: &Reply) -> Option<Reading> {
        let now = Self::now();
        let Reply::List(parts) = reply else { return None };
        let [Reply::Text(seconds), Reply::Text(micros)] = &parts[..] else { return None };
        let server = seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
        let boot = |instant: BootInstant| i64::try_from(instant.as_nanos() / 1_000).unwrap_or(i64::MAX);
        Some(Reading { server, wall: [self.wall, now.wall], boot: [boot(self.boot), boot(now.boot)] })
    }
}

fn wall() -> i64 {
    i64::try_from(UNIX_EPOCH.elapsed().unwrap_or_default().as_micros()).unwrap_or(i64::MAX)
}

/// By how much the first is ahead of the second at least, where that lies between these bounds; negative if it is behind.
fn ahead(first: i64, second: [i64; 2]) -> i64 {
    let (least, most) = (first.saturating_sub(second[1]), first.saturating_sub(second[0]));
    if least > 0 { least } else { most.min(0) }
}

impl Reading {
    /// The server's clock at the reading, since 1970.
    pub(super) fn server(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.server).unwrap_or_default())
    }

    /// `jobs`: somebody waits for ticks that are due by that clock.
    pub(super) fn judge(&self, jobs: bool) -> Option<Finding> {
        // This host's wall clock was set meanwhile: it tells nothing.
        let span = |bounds: [i64; 2]| bounds[1].saturating_sub(bounds[0]);
        if (span(self.wall) - span(self.boot)).unsigned_abs() > 500_000 {
            return None;
        }
        let ahead = ahead(self.server, self.wall);
        let apart = Duration::from_micros(ahead.unsigned_abs());
        if apart < APART {
            return None;
        }
        let severity = if jobs && apart >= FAR_APART { Severity::Error } else { Severity::Warning };
        let direction = if ahead > 0 { "behind" } else { "ahead of" };
        let finding = Finding::warning(
            format!("this host's wall clock is {:.1} s {direction} the server's", apart.as_secs_f64()),
            "ticks of jobs are due by the server's clock, so they begin by as much too early or too late for whoever reads \
             this host's; leases do not depend on it",
            "let both set their clocks by NTP (chronyd, systemd-timesyncd), and see which of the two is wrong",
        );
        Some(Finding { severity, ..finding }.coded("clock-apart").measured())
    }
}

/// What was last read of each server's clock, and what was wrong then.
#[derive(Debug, Default)]
pub(super) struct Clocks(Mutex<HashMap<String, Seen>>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    last: Reading,
    /// The last jump: how far, and when by the boot clock.
    jump: Option<(i64, i64)>,
}

impl Clocks {
    /// Takes in a reading of the clock of the server with this run id.
    pub(super) fn judge(&self, server: &str, reading: Reading) -> Option<Finding> {
        // Held for a look and an assignment only: a poisoned one is whole.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.get(server).copied();
        let found = before.and_then(|seen| jumped(&seen.last, &reading)).map(|by| (by, reading.boot[1]));
        let still = |(_, at): &(i64, i64)| reading.boot[1] - at < TOLD.as_micros() as i64;
        let jump = found.or_else(|| before.and_then(|seen| seen.jump).filter(still));
        if all.len() >= MOST && before.is_none() {
            all.clear();
        }
        all.insert(server.to_owned(), Seen { last: reading, jump });
        let (by, _) = jump?;
        let direction = if by > 0 { "ahead" } else { "back" };
        let by = Duration::from_micros(by.unsigned_abs()).as_secs_f64();
        Some(
            Finding::warning(
                format!("the server's clock was set {direction} by {by:.1} s"),
                "leases end by it: one that was set ahead ends them too early, and two may lead until the older one's next \
                 renew; ticks that are due by it come too early or too late",
                "let the server's host slew its clock (chronyd, systemd-timesyncd) instead of setting it; a virtual machine \
                 that was paused looks the same. This is told for ten minutes",
            )
            .coded("clock-jumped"),
        )
    }
}

/// By how much the server's clock has gone ahead of the boot clock between two readings, if that is too much.
fn jumped(before: &Reading, after: &Reading) -> Option<i64> {
    let passed = [after.boot[0] - before.boot[1], after.boot[1] - before.boot[0]];
    let by = ahead(after.server.saturating_sub(before.server), passed);
    let most = JUMP.as_micros() as i64 + passed[1].max(0) / i64::from(SLEW);
    (by.abs() > most).then_some(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;
    /// The wall clock when the boot clock began.
    const BOOT: i64 = 1_800_000_000 * S;

    /// At this time since the boot, in a round trip of 100 ms; the server's clock is ahead by so much.
    fn reading(at: i64, ahead: i64) -> Reading {
        let boot = [at, at + S / 10];
        Reading { server: BOOT + at + S / 20 + ahead, wall: boot.map(|instant| BOOT + instant), boot }
    }

    fn apart(by: i64, jobs: bool) -> Option<(Severity, String)> {
        reading(1000 * S, by).judge(jobs).map(|finding| (finding.severity, finding.what))
    }

    #[test]
    fn clocks_that_differ_by_more_than_the_round_trip_explains_are_told_with_the_direction() {
        for near in [0, S, -S, 2 * S, -2 * S] {
            assert_eq!(apart(near, true), None, "{near}");
        }
        let (severity, text) = apart(3 * S, true).unwrap();
        assert_eq!((severity, &*text), (Severity::Warning, "this host's wall clock is 3.0 s behind the server's"));
        let (severity, text) = apart(-40 * S, true).unwrap();
        assert_eq!((severity, &*text), (Severity::Error, "this host's wall clock is 40.0 s ahead of the server's"));
        assert_eq!(apart(-40 * S, false).unwrap().0, Severity::Warning, "nobody waits for a tick");
    }

    #[test]
    fn a_second_node_is_news_and_another_difference_is_not() {
        let of = |node: &str, ahead: i64| reading(1000 * S, ahead).judge(false).unwrap().at_node(node);
        assert!(of("a:1", 3 * S).is_same(&of("a:1", 4 * S)));
        assert!(!of("b:1", 3 * S).is_same(&of("a:1", 3 * S)));
        assert!(of("b:1", 3 * S).what.starts_with("node b:1: this host's"));
    }

    #[test]
    fn a_slow_answer_and_a_clock_that_was_set_meanwhile_accuse_nobody() {
        let slow = Reading { wall: [BOOT, BOOT + 60 * S], boot: [0, 60 * S], server: BOOT + 55 * S };
        assert_eq!(slow.judge(true), None);
        let set = Reading { wall: [BOOT - 90 * S, BOOT], boot: [0, S / 10], server: BOOT + 100 * S };
        assert_eq!(set.judge(true), None);
    }

    #[test]
    fn a_clock_that_was_set_between_two_looks_is_told_for_ten_minutes() {
        let clocks = Clocks::default();
        let judge = |at: i64, ahead: i64| clocks.judge("a", reading(at * S, ahead)).map(|finding| finding.what);
        assert_eq!(judge(0, 0), None);
        // By a tenth of what NTP may slew in that time, and within the round trip.
        assert_eq!(judge(10_000, S / 2), None);
        let ahead = Some("the server's clock was set ahead by 19.4 s".to_owned());
        assert_eq!(judge(10_010, 20 * S), ahead);
        assert_eq!(judge(10_300, 20 * S), ahead);
        assert_eq!(judge(10_700, 20 * S), None);
        assert!(judge(10_710, 0).unwrap().contains("back by 19.9 s"));
        // Another server's clock is its own.
        assert_eq!(clocks.judge("b", reading(10_720 * S, 500 * S)), None);
        for n in 0..2 * MOST {
            assert_eq!(clocks.judge(&n.to_string(), reading(10_720 * S, 0)), None);
        }
        assert!(clocks.0.lock().unwrap().len() <= MOST);
    }

    #[test]
    fn what_the_server_answers_is_read_with_this_hosts_clocks_around_it() {
        let start = Start::now();
        let server = wall();
        let text = |number: i64| Reply::Text(number.to_string());
        let reading = start.end(&Reply::List(vec![text(server / S), text(server % S)])).unwrap();
        assert_eq!((reading.server, reading.judge(true)), (server, None));
        for strange in [Reply::Nil, Reply::List(vec![text(1)]), Reply::List(vec![Reply::Nil, Reply::Nil])] {
            assert_eq!(start.end(&strange), None);
        }
    }
}
