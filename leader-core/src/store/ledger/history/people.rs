//! Entries as people read them: one line each.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use super::{HistoryEntry, HistoryEvent, RunEnd, RunOutcome};
use crate::store::ledger::{Missed, second};

/// `2026-01-31T06:00:00Z: the tick of 2026-01-31T06:00:00Z was claimed by pod-1`, in UTC.
impl fmt::Display for HistoryEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = i64::try_from(self.at_us / 1_000_000).unwrap_or(i64::MAX);
        write!(f, "{}: {}", time(at), self.event)
    }
}

/// One line, with instants in UTC.
impl fmt::Display for HistoryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claimed { tick, attempt: 1, instance } => {
                write!(f, "the tick of {} was claimed by {instance}", time(*tick))
            }
            Self::Claimed { tick, attempt, instance } => {
                write!(f, "the tick of {} was claimed by {instance} (attempt {attempt})", time(*tick))
            }
            Self::Ended { tick: Some(tick), end } => write!(f, "the run of {} {end}", time(*tick)),
            Self::Ended { tick: None, end } => write!(f, "a run of which no more is known {end}"),
            Self::Missed(Missed { from, count: 1, reason }) => {
                write!(f, "the tick of {} is not run: {}", time(*from), OneLine(reason))
            }
            Self::Missed(Missed { from, count, reason }) => {
                write!(f, "{count} ticks from {} on are not run: {}", time(*from), OneLine(reason))
            }
            Self::Manual { instance, end } => write!(f, "a run by hand on {instance} {end}"),
            Self::GaveUp { tick, attempts } => {
                write!(f, "the tick of {} was given up: {attempts} runs of it have died", time(*tick))
            }
        }
    }
}

/// As in `failed after 3s: no paper`.
impl fmt::Display for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.took {
            // It is kept in whole milliseconds.
            Duration::ZERO => write!(f, "{} in less than 1ms", self.outcome)?,
            took => write!(f, "{} after {took:?}", self.outcome)?,
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", OneLine(&self.message)) }
    }
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed out",
            Self::Cancelled => "was cut",
        })
    }
}

fn time(seconds: i64) -> humantime::Rfc3339Timestamp {
    let since = Duration::from_secs(second(seconds).unsigned_abs());
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since)
}

/// A text whose line ends and other control characters are blanks.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| fmt::Write::write_char(f, if c.is_control() { ' ' } else { c }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::InstanceId;
    use crate::store::TickOp;

    #[test]
    fn an_entry_is_one_line_that_a_person_can_read() {
        let instance = InstanceId::new("pod-1").unwrap();
        let end = |outcome, message: &str| RunEnd {
            outcome,
            message: message.to_owned(),
            began_us: 0,
            took: Duration::from_millis(3_250),
        };
        let told = |event| HistoryEntry { at_us: 1_800_000_003_900_000, event }.to_string();
        let tick = 1_800_000_000;
        for (event, expected) in [
            (
                HistoryEvent::Claimed { tick, attempt: 1, instance: instance.clone() },
                "the tick of 2027-01-15T08:00:00Z was claimed by pod-1",
            ),
            (
                HistoryEvent::Claimed { tick, attempt: 2, instance: instance.clone() },
                "the tick of 2027-01-15T08:00:00Z was claimed by pod-1 (attempt 2)",
            ),
            (
                HistoryEvent::Ended { tick: Some(tick), end: end(RunOutcome::Succeeded, "") },
                "the run of 2027-01-15T08:00:00Z succeeded after 3.25s",
            ),
            (
                HistoryEvent::Ended { tick: None, end: end(RunOutcome::TimedOut, "") },
                "a run of which no more is known timed out after 3.25s",
            ),
            (
                HistoryEvent::Missed(Missed { from: tick, count: 1, reason: "the job was paused".to_owned() }),
                "the tick of 2027-01-15T08:00:00Z is not run: the job was paused",
            ),
            (
                HistoryEvent::Missed(Missed { from: tick, count: 4, reason: "the job was paused".to_owned() }),
                "4 ticks from 2027-01-15T08:00:00Z on are not run: the job was paused",
            ),
            (
                HistoryEvent::Manual { instance, end: end(RunOutcome::Failed, "no paper\nin tray 2") },
                "a run by hand on pod-1 failed after 3.25s: no paper in tray 2",
            ),
            (
                HistoryEvent::GaveUp { tick: TickOp::LATEST + 1, attempts: 3 },
                "the tick of 9999-12-31T23:59:59Z was given up: 3 runs of it have died",
            ),
        ] {
            assert_eq!(told(event), format!("2027-01-15T08:00:03Z: {expected}"));
        }
    }
}
