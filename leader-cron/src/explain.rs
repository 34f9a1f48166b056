//! What has become of a tick, by its job's record and history. Pure.

use std::fmt;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use leader_core::InstanceId;
use leader_core::store::{HistoryEntry, HistoryEvent, JobRecord, Missed, RunEnd};

use crate::plan::COUNTED;
use crate::schedule::Schedule;
use crate::tick::{instant, unix_seconds};

/// What has become of a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explanation {
    /// The schedule does not name this instant, and no run by hand began then.
    NotATick,
    /// The ledger does not know the job yet.
    NoRecord,
    /// It is still to come.
    NotDue {
        /// How long until then, by the store's clock.
        left: Duration,
    },
    /// It ran.
    Ran {
        /// Where.
        instance: InstanceId,
        /// Which attempt.
        attempt: u32,
        /// How it ended, and when it began; `None`: it has not ended, or its instance died.
        end: Option<RunEnd>,
        /// The attempts before this one, the first one first.
        earlier: Vec<Attempt>,
    },
    /// It is no tick: the job was run [by hand](crate::Running::trigger) then.
    Manual {
        /// Where.
        instance: InstanceId,
        /// How it ended, and when it began.
        end: RunEnd,
    },
    /// It was passed over, by itself or together with others.
    Missed {
        /// Why.
        reason: String,
    },
    /// Its runs died, and it is not run again.
    GaveUp {
        /// How often it was begun.
        attempts: u32,
    },
    /// It came before the job did, or before its schedule was changed to this one.
    BeforeTheJob,
    /// The job is paused, or was when the tick came.
    Paused {
        /// Until when.
        until: SystemTime,
        /// Why.
        note: String,
    },
    /// It is due, and nobody has claimed it yet, or it was given back: no instance leads the group, or the run before it is
    /// still on.
    Waiting,
    /// It is older than what the history keeps.
    Forgotten,
}

/// One run of a tick that has more than one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Where.
    pub instance: InstanceId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How it ended, and when it began; `None`: its instance died, or it was cut to be run again.
    pub end: Option<RunEnd>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, attempt, end } = self;
        match end {
            Some(end) => write!(f, "ran on {instance} (attempt {attempt}): {end}"),
            None => write!(
                f,
                "begun on {instance} (attempt {attempt}), without an end: it is still on, or died with its instance"
            ),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATick => f.write_str("the schedule does not name this instant"),
            Self::NoRecord => f.write_str("the ledger has no record of the job"),
            Self::NotDue { left } => write!(f, "due in {left:?}"),
            Self::Ran { instance, attempt, end, earlier } => {
                let last = Attempt { instance: instance.clone(), attempt: *attempt, end: end.clone() };
                earlier.iter().try_for_each(|attempt| write!(f, "{attempt}; then "))?;
                last.fmt(f)
            }
            Self::Manual { instance, end } => write!(f, "no tick: a run by hand on {instance} {end}"),
            Self::Missed { reason } => write!(f, "not run: {reason}"),
            Self::GaveUp { attempts } => write!(f, "given up: {attempts} runs of it have died"),
            Self::BeforeTheJob => f.write_str("it came before the job was registered with this schedule"),
            Self::Paused { until, note } => {
                let until = DateTime::from_timestamp(unix_seconds(*until), 0).unwrap_or_default();
                write!(f, "not run: the job is paused until {until} (\"{note}\"), or was; Running::resume ends a pause")
            }
            Self::Waiting => f.write_str("due, and not claimed by anybody yet"),
            Self::Forgotten => f.write_str("older than what the history keeps"),
        }
    }
}

impl Explanation {
    /// The run by hand that began in this second.
    pub(crate) fn by_hand(history: &[HistoryEntry], second: i64) -> Option<Self> {
        history.iter().rev().find_map(|entry| match &entry.event {
            HistoryEvent::Manual { instance, end } if i64::try_from(end.began_us / 1_000_000) == Ok(second) => {
                Some(Self::Manual { instance: instance.clone(), end: end.clone() })
            }
            _ => None,
        })
    }
}

/// What is known of a job.
pub(crate) struct Known<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) record: &'a JobRecord,
    /// The oldest entry first.
    pub(crate) history: &'a [HistoryEntry],
    /// The store's clock.
    pub(crate) now_us: u64,
}

impl Known<'_> {
    pub(crate) fn explain(&self, tick: i64) -> Explanation {
        let Self { record, history, .. } = *self;
        let due_us = u64::try_from(tick).unwrap_or(0).saturating_mul(1_000_000);
        if due_us > self.now_us {
            let left = Duration::from_micros(due_us - self.now_us);
            return self.paused(tick).unwrap_or(Explanation::NotDue { left });
        }
        if record.returned.iter().any(|back| back.tick == tick) {
            return Explanation::Waiting;
        }
        let (mut attempts, mut passed_over, mut gave_up) = (Vec::new(), None, None);
        for (place, entry) in history.iter().enumerate() {
            match &entry.event {
                HistoryEvent::Claimed { tick: of, attempt, instance } if *of == tick => {
                    // A claim that was given back before its body began was no attempt.
                    attempts.retain(|before: &Attempt| before.attempt < *attempt);
                    attempts.push(Attempt { instance: instance.clone(), attempt: *attempt, end: None });
                    passed_over = None;
                }
                HistoryEvent::Ended { tick: Some(of), end } if *of == tick => {
                    if let Some(attempt) = attempts.last_mut() {
                        attempt.end = Some(end.clone());
                    }
                }
                HistoryEvent::GaveUp { tick: of, attempts } if *of == tick => gave_up = Some(*attempts),
                // Of a tick that was claimed, only what names just that one tells: it was claimed, and not begun.
                HistoryEvent::Missed(missed)
                    if (attempts.is_empty() || missed.count == 1) && self.covers(missed, tick, &history[place..]) =>
                {
                    passed_over = Some(missed.reason.clone());
                }
                _ => {}
            }
        }
        if let Some(attempts) = gave_up {
            return Explanation::GaveUp { attempts };
        }
        if let Some(reason) = passed_over {
            return Explanation::Missed { reason };
        }
        if let Some(Attempt { instance, attempt, end }) = attempts.pop() {
            return Explanation::Ran { instance, attempt, end, earlier: attempts };
        }
        self.without_a_trace(tick)
    }

    /// The history tells nothing of it.
    fn without_a_trace(&self, tick: i64) -> Explanation {
        let record = self.record;
        if tick > record.last {
            // What came before the end of a pause is in the history as soon as somebody leads after it.
            return self.paused(tick).unwrap_or(Explanation::Waiting);
        }
        if tick <= record.since { Explanation::BeforeTheJob } else { Explanation::Forgotten }
    }

    fn paused(&self, tick: i64) -> Option<Explanation> {
        let pause = self.record.paused.as_ref().filter(|pause| tick < pause.until)?;
        Some(Explanation::Paused { until: instant(pause.until), note: pause.note.clone() })
    }

    /// Whether the tick is one of these, of which the first and the number are told.
    fn covers(&self, missed: &Missed, tick: i64, from_here: &[HistoryEntry]) -> bool {
        if missed.from > tick {
            return false;
        }
        let ticks = std::iter::successors(Some(missed.from), |tick| self.schedule.next_after(*tick));
        let counted = usize::try_from(missed.count.min(COUNTED)).unwrap_or(usize::MAX);
        if ticks.take(counted).take_while(|of| *of <= tick).last() == Some(tick) {
            return true;
        }
        // They were too many to be counted: they reach up to the claim that comes next.
        let next = from_here.iter().find_map(|later| match later.event {
            HistoryEvent::Claimed { tick, .. } => Some(tick),
            _ => None,
        });
        missed.count >= COUNTED && next.is_some_and(|next| tick < next)
    }
}

#[cfg(test)]
mod tests {
    use leader_core::store::{Pause, ReturnedTick, RunOutcome};

    use super::*;

    /// A round hour, and a tick each minute.
    const START: i64 = 1_800_000_000;

    fn record() -> JobRecord {
        JobRecord {
            since: START,
            last: START + 900,
            floor: 0,
            schedule: String::new(),
            open: None,
            unended: Vec::new(),
            returned: Vec::new(),
            paused: None,
        }
    }

    fn end(outcome: RunOutcome, message: &str, began: i64) -> RunEnd {
        let began_us = (START + began) as u64 * 1_000_000 + 250_000;
        RunEnd { outcome, message: message.to_owned(), began_us, took: Duration::from_secs(3) }
    }

    fn claimed(minute: i64, attempt: u32, instance: &str) -> HistoryEvent {
        HistoryEvent::Claimed { tick: START + minute * 60, attempt, instance: InstanceId::new(instance).unwrap() }
    }

    fn ended(minute: i64, outcome: RunOutcome, message: &str) -> HistoryEvent {
        HistoryEvent::Ended { tick: Some(START + minute * 60), end: end(outcome, message, minute * 60) }
    }

    fn missed(minute: i64, count: u64, reason: &str) -> HistoryEvent {
        HistoryEvent::Missed(Missed { from: START + minute * 60, count, reason: reason.to_owned() })
    }

    fn told(record: &JobRecord, history: Vec<HistoryEvent>, minute: i64) -> String {
        let schedule = Schedule::parse("* * * * *", None).unwrap();
        let entry = |(at, event)| HistoryEntry { at_us: at as u64, event };
        let history: Vec<_> = history.into_iter().enumerate().map(entry).collect();
        let now_us = (START + 1_200) as u64 * 1_000_000;
        Known { schedule: &schedule, record, history: &history, now_us }.explain(START + minute * 60).to_string()
    }

    #[test]
    fn each_tick_is_explained_by_what_is_known_of_it() {
        let history = || {
            vec![
                claimed(2, 1, "a"),
                ended(2, RunOutcome::Failed, "no paper"),
                missed(3, 2, "a newer one is run"),
                claimed(5, 1, "a"),
                HistoryEvent::GaveUp { tick: START + 360, attempts: 3 },
                claimed(15, 2, "b"),
            ]
        };
        for (minute, expected) in [
            (2, "ran on a (attempt 1): failed after 3s: no paper"),
            (3, "not run: a newer one"),
            (4, "not run: a newer one"),
            (5, "begun on a (attempt 1), without an end"),
            (6, "given up: 3 runs"),
            (0, "before the job was registered"),
            (7, "older than what the history keeps"),
            (15, "begun on b (attempt 2), without an end"),
            (16, "not claimed by anybody"),
            (21, "due in 60s"),
        ] {
            let text = told(&record(), history(), minute);
            assert!(text.contains(expected), "{minute}: {text}");
        }
    }

    #[test]
    fn a_tick_that_ran_twice_tells_of_both_runs() {
        let history =
            vec![claimed(2, 1, "a"), claimed(3, 1, "a"), claimed(2, 2, "b"), ended(2, RunOutcome::Succeeded, "")];
        let expected = "begun on a (attempt 1), without an end: it is still on, or died with its instance; then ran on b (attempt 2): succeeded after 3s";
        assert_eq!(told(&record(), history, 2), expected);
    }

    #[test]
    fn a_claim_that_was_given_back_before_it_began_is_no_run() {
        let history = || vec![claimed(2, 1, "a")];
        let returned = vec![ReturnedTick { tick: START + 120, attempts: 0 }];
        let waits = told(&JobRecord { returned, ..record() }, history(), 2);
        assert!(waits.contains("not claimed by anybody"), "{waits}");
        let again = [history(), vec![claimed(2, 1, "b"), ended(2, RunOutcome::Succeeded, "")]].concat();
        assert_eq!(told(&record(), again, 2), "ran on b (attempt 1): succeeded after 3s");
        let superseded = [history(), vec![missed(2, 1, "a newer one is run in their place")]].concat();
        assert_eq!(told(&record(), superseded, 2), "not run: a newer one is run in their place");
        let too_old = [history(), vec![ended(2, RunOutcome::Cancelled, "too old"), missed(2, 1, "older")]].concat();
        assert_eq!(told(&record(), too_old, 2), "not run: older");
    }

    #[test]
    fn what_a_pause_swallowed_is_told_by_the_history_and_before_it_is_there_by_the_record() {
        let pause = Pause { until: START + 1_100, note: "stocktaking".to_owned() };
        let paused = JobRecord { paused: Some(pause), ..record() };
        assert!(told(&paused, vec![], 17).contains("(\"stocktaking\"), or was"));
        assert!(told(&paused, vec![], 19).contains("not claimed"), "it came after the pause");
        assert!(told(&paused, vec![], 7).contains("older than what the history keeps"), "it came before the pause");
        // Somebody has led since, and claimed; a later pause has taken the place of the first.
        let history = vec![missed(3, 4, "the job was paused"), claimed(9, 1, "a")];
        for (minute, expected) in [(2, "older"), (3, "paused"), (6, "paused"), (7, "older"), (8, "older")] {
            let text = told(&paused, history.clone(), minute);
            assert!(text.contains(expected), "{minute}: {text}");
        }
    }

    #[test]
    fn ticks_that_were_too_many_to_count_reach_up_to_the_claim_that_came_next() {
        let many = JobRecord { since: 0, ..record() };
        let history = || vec![missed(-20_000, COUNTED, "the store was away"), claimed(9, 1, "a")];
        for (minute, expected) in [(-19_999, "away"), (-3, "away"), (8, "away"), (9, "begun on a"), (10, "older")] {
            let text = told(&many, history(), minute);
            assert!(text.contains(expected), "{minute}: {text}");
        }
    }

    #[test]
    fn a_run_by_hand_is_found_by_the_second_in_which_it_began() {
        let instance = InstanceId::new("a").unwrap();
        let event = HistoryEvent::Manual { instance, end: end(RunOutcome::Failed, "no paper", 77) };
        let history = [HistoryEntry { at_us: 0, event }];
        let found = Explanation::by_hand(&history, START + 77).unwrap().to_string();
        assert_eq!(found, "no tick: a run by hand on a failed after 3s: no paper");
        assert_eq!(Explanation::by_hand(&history, START + 78), None);
    }
}
