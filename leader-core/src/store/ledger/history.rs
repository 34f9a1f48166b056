//! What has become of a job's ticks, as the ledger keeps it: the last of its entries, each a line of text.

mod people;

use std::time::Duration;

use super::{Missed, cut, second};
use crate::identity::InstanceId;

/// One entry of a job's history.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HistoryEntry {
    /// When it was written, by the store's clock in microseconds since 1970.
    pub at_us: u64,
    /// What happened.
    pub event: HistoryEvent,
}

/// What happened to a job. Ticks are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum HistoryEvent {
    /// A tick was claimed.
    Claimed {
        /// The tick.
        tick: i64,
        /// How often it was begun, with this one.
        attempt: u32,
        /// By whom.
        instance: InstanceId,
    },
    /// A run ended.
    Ended {
        /// Its tick; none if the ledger knew nothing of the run any more.
        tick: Option<i64>,
        /// How.
        end: RunEnd,
    },
    /// Ticks were not run, and will not be.
    Missed(Missed),
    /// A run outside of the ticks, by hand.
    Manual {
        /// Who ran it.
        instance: InstanceId,
        /// How it ended.
        end: RunEnd,
    },
    /// A tick was begun too often, or too long ago, without an end.
    GaveUp {
        /// The tick.
        tick: i64,
        /// How often it was begun.
        attempts: u32,
    },
}

impl HistoryEvent {
    /// As it is when it was written and read again.
    pub(in crate::store) fn as_kept(&self) -> Self {
        let written = line(&HistoryEntry { at_us: 0, event: self.clone() });
        entry(&written).map_or_else(|| self.clone(), |entry| entry.event)
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RunEnd {
    /// How.
    pub outcome: RunOutcome,
    /// What there is to say, such as the error. Cut to [`TickOp::LONGEST`](super::TickOp::LONGEST) bytes.
    pub message: String,
    /// When its body began, in microseconds since 1970.
    pub began_us: u64,
    /// How long it took; kept in milliseconds.
    pub took: Duration,
}

/// The ways in which a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RunOutcome {
    /// The body returned, and no error.
    Succeeded,
    /// It returned an error.
    Failed,
    /// It panicked.
    Panicked,
    /// It took longer than it may, and was cut.
    TimedOut,
    /// It was cut, because the lease or the run's slot was lost, or in a shutdown.
    Cancelled,
}

impl RunOutcome {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Succeeded, "succeeded"),
        (Self::Failed, "failed"),
        (Self::Panicked, "panicked"),
        (Self::TimedOut, "timed-out"),
        (Self::Cancelled, "cancelled"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(outcome, _)| *outcome == self).map_or("", |(_, word)| word)
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(outcome, _)| *outcome)
    }
}

impl RunEnd {
    /// `outcome began took`.
    pub(in crate::store) fn figures(&self) -> String {
        format!("{} {} {}", self.outcome.word(), self.began_us, self.took.as_millis().min(u128::from(u64::MAX)))
    }
}

/// An event as two texts, between which the instant stands that the entry is written at. The second is separated by blanks;
/// only what is last in it may contain some.
pub(in crate::store) fn texts(event: &HistoryEvent) -> (&'static str, String) {
    match event {
        HistoryEvent::Claimed { tick, attempt, instance } => ("c", format!("{} {attempt} {instance}", second(*tick))),
        HistoryEvent::Ended { tick, end } => {
            let tick = tick.map_or_else(|| "-".to_owned(), |tick| second(tick).to_string());
            ("e", format!("{tick} {} {}", end.figures(), cut(&end.message)))
        }
        HistoryEvent::Missed(missed) => ("m", self::missed(missed)),
        HistoryEvent::Manual { instance, end } => ("r", format!("{} {instance} {}", end.figures(), cut(&end.message))),
        HistoryEvent::GaveUp { tick, attempts } => ("x", format!("{} {attempts}", second(*tick))),
    }
}

/// The second text of ticks that were missed.
pub(in crate::store) fn missed(Missed { from, count, reason }: &Missed) -> String {
    format!("{} {count} {}", second(*from), cut(reason))
}

/// The line of an entry.
#[must_use]
pub fn line(entry: &HistoryEntry) -> String {
    let (kind, rest) = texts(&entry.event);
    format!("{kind} {} {rest}", entry.at_us)
}

/// The entry of a line; none, if it is somebody else's.
#[must_use]
pub fn entry(line: &str) -> Option<HistoryEntry> {
    let mut parts = line.splitn(3, ' ');
    let (kind, at_us, rest) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    let end = |outcome: &str, began: &str, took: &str, message: &str| {
        Some(RunEnd {
            outcome: RunOutcome::of_word(outcome)?,
            message: message.to_owned(),
            began_us: began.parse().ok()?,
            took: Duration::from_millis(took.parse().ok()?),
        })
    };
    let event = match (kind, rest.splitn(fields(kind)?, ' ').collect::<Vec<_>>().as_slice()) {
        ("c", [tick, attempt, instance]) => HistoryEvent::Claimed {
            tick: tick.parse().ok()?,
            attempt: attempt.parse().ok()?,
            instance: InstanceId::new(instance).ok()?,
        },
        ("e", [tick, outcome, began, took, message]) => HistoryEvent::Ended {
            tick: if *tick == "-" { None } else { Some(tick.parse().ok()?) },
            end: end(outcome, began, took, message)?,
        },
        ("m", [from, count, reason]) => HistoryEvent::Missed(Missed {
            from: from.parse().ok()?,
            count: count.parse().ok()?,
            reason: (*reason).to_owned(),
        }),
        ("r", [outcome, began, took, instance, message]) => {
            HistoryEvent::Manual { instance: InstanceId::new(instance).ok()?, end: end(outcome, began, took, message)? }
        }
        ("x", [tick, attempts]) => HistoryEvent::GaveUp { tick: tick.parse().ok()?, attempts: attempts.parse().ok()? },
        _ => return None,
    };
    Some(HistoryEntry { at_us, event })
}

fn fields(kind: &str) -> Option<usize> {
    Some(match kind {
        "c" | "m" => 3,
        "e" | "r" => 5,
        "x" => 2,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were_written() {
        let instance = InstanceId::new("pod|1").unwrap();
        let end = |outcome| RunEnd {
            outcome,
            message: "two words\nand | a line".to_owned(),
            began_us: 1_700_000_000_123_456,
            took: Duration::from_millis(77),
        };
        let mut events = vec![
            HistoryEvent::Claimed { tick: 60, attempt: 2, instance: instance.clone() },
            HistoryEvent::Ended { tick: None, end: RunEnd { message: String::new(), ..end(RunOutcome::Failed) } },
            HistoryEvent::Missed(Missed { from: 60, count: 9, reason: "older than within".to_owned() }),
            HistoryEvent::GaveUp { tick: 60, attempts: 3 },
        ];
        for (outcome, _) in RunOutcome::ALL {
            events.push(HistoryEvent::Ended { tick: Some(60), end: end(outcome) });
            events.push(HistoryEvent::Manual { instance: instance.clone(), end: end(outcome) });
        }
        for event in events {
            let written = HistoryEntry { at_us: 5, event };
            assert_eq!(entry(&line(&written)), Some(written.clone()), "{}", line(&written));
        }
    }

    #[test]
    fn somebody_elses_lines_are_none_of_ours() {
        for strange in
            ["", "c", "c 1", "c 1 2", "c x 2 3 a", "c 1 2 3 a b", "e 1 2 melted 1 1 ", "z 1 2", "x 1 2 -", "x 1 2 3 4"]
        {
            assert_eq!(entry(strange), None, "{strange:?}");
        }
    }
}
