//! What the ledger knows of the jobs, and what can be told to it: pauses, histories, why a tick did not run.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use leader_core::store::{
    HistoryEntry, HistoryEvent, JobName, JobRecord, RunEnd, TickAnswer, TickCommand, TickOp, TickReply,
};
use leader_core::{GroupName, InstanceId};

use crate::error::LedgerError;
use crate::live_job::LiveJob;
use crate::orders::Order;
use crate::running::Running;
use crate::tick::{instant, unix_seconds};

impl Running {
    /// The next `count` ticks of a job, by this host's clock. No I/O.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`].
    pub fn next_ticks(&self, job: &str, count: usize) -> Result<Vec<SystemTime>, LedgerError> {
        let job = self.job(job)?;
        let first = job.schedule.next_after(unix_seconds(SystemTime::now()));
        let ticks = std::iter::successors(first, |tick| job.schedule.next_after(*tick));
        Ok(ticks.take(count).map(instant).collect())
    }

    /// Lets no tick of a job be run until then, in the whole fleet; those that come meanwhile are not made up for. Runs that are
    /// on go on. `note` says why, for people, up to 200 bytes.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`], [`LedgerError::NotInLedger`], [`LedgerError::Store`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may be paused all the same.
    pub async fn pause(&self, job: &str, until: SystemTime, note: &str) -> Result<(), LedgerError> {
        let op = TickOp::Pause { until: unix_seconds(until), note: note.to_owned() };
        self.change(job, op).await
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    ///
    /// # Cancel safety
    /// As for [`pause`](Self::pause).
    pub async fn resume(&self, job: &str) -> Result<(), LedgerError> {
        self.change(job, TickOp::Resume).await
    }

    /// The last entries of a job's history, the oldest first: 120 at most, of the whole fleet.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn history(&self, job: &str) -> Result<Vec<HistoryEntry>, LedgerError> {
        let job = self.job(job)?;
        match self.ask(&job, TickOp::History { limit: TickOp::HISTORY }).await?.reply {
            TickReply::History(entries) => Ok(entries),
            reply => Err(unexpected(&job, &reply)),
        }
    }

    /// What has become of one tick of a job: where it ran and for how long, or why it did not.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn explain(&self, job: &str, tick: SystemTime) -> Result<Explanation, LedgerError> {
        let job = self.job(job)?;
        let tick = unix_seconds(tick);
        if job.schedule.next_after(tick - 1) != Some(tick) {
            return Ok(Explanation::NotATick);
        }
        let answer = self.ask(&job, TickOp::Load).await?;
        let record = match answer.reply {
            TickReply::Loaded(record) => record,
            TickReply::Unknown => return Ok(Explanation::NoRecord),
            reply => return Err(unexpected(&job, &reply)),
        };
        let history = self.history(&job.name).await?;
        Ok(explain(&record, &history, tick, answer.now_us))
    }

    async fn change(&self, job: &str, op: TickOp) -> Result<(), LedgerError> {
        let job = self.job(job)?;
        match self.ask(&job, op).await?.reply {
            TickReply::Changed => {
                self.engine.order(Order::Look);
                Ok(())
            }
            reply => Err(unexpected(&job, &reply)),
        }
    }

    pub(crate) fn job(&self, name: &str) -> Result<Arc<LiveJob>, LedgerError> {
        let jobs = self.engine.jobs();
        let unknown = || LedgerError::Unknown {
            job: name.to_owned(),
            known: jobs.iter().map(|job| job.name.to_string()).collect(),
        };
        jobs.iter().find(|job| &*job.name == name).cloned().ok_or_else(unknown)
    }

    async fn ask(&self, job: &LiveJob, op: TickOp) -> Result<TickAnswer, LedgerError> {
        let Some((group, name)) = in_ledger(job) else {
            return Err(LedgerError::NotInLedger { job: job.name.to_string() });
        };
        let elector = &self.engine.elector;
        let command = TickCommand { group, job: name, candidate: elector.__candidate().clone(), op };
        let store = |error| LedgerError::Store { job: job.name.to_string(), error };
        let mut answers = elector.__ask_ledger(vec![command]).await.map_err(store)?;
        // As many as commands: the driver sees to that.
        answers.pop().ok_or_else(|| LedgerError::NotInLedger { job: job.name.to_string() })?.map_err(store)
    }
}

fn in_ledger(job: &LiveJob) -> Option<(GroupName, JobName)> {
    Some((job.group.clone()?, JobName::new(&*job.name).ok()?))
}

fn unexpected(job: &LiveJob, reply: &TickReply) -> LedgerError {
    match reply {
        TickReply::Corrupt { field } => LedgerError::Corrupt { job: job.name.to_string(), field },
        _ => LedgerError::NoRecord { job: job.name.to_string() },
    }
}

/// What has become of a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explanation {
    /// The schedule does not name this instant.
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
    },
    /// It was passed over together with others.
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
    /// It is due, and nobody has claimed it yet: no instance leads the group, or the run before it is still on.
    Waiting,
    /// It is older than what the history keeps.
    Forgotten,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATick => f.write_str("the schedule does not name this instant"),
            Self::NoRecord => f.write_str("the ledger has no record of the job"),
            Self::NotDue { left } => write!(f, "due in {left:?}"),
            Self::Ran { instance, attempt, end: Some(end) } => {
                write!(f, "ran on {instance} (attempt {attempt}) for {:?}: {:?} {}", end.took, end.outcome, end.message)
            }
            Self::Ran { instance, attempt, end: None } => {
                write!(f, "begun on {instance} (attempt {attempt}), without an end so far")
            }
            Self::Missed { reason } => write!(f, "not run: {reason}"),
            Self::GaveUp { attempts } => write!(f, "given up: {attempts} runs of it have died"),
            Self::BeforeTheJob => f.write_str("it came before the job was registered with this schedule"),
            Self::Paused { note, .. } => write!(f, "the job is paused, or was: {note}"),
            Self::Waiting => f.write_str("due, and not claimed by anybody yet"),
            Self::Forgotten => f.write_str("older than what the history keeps"),
        }
    }
}

/// Pure.
fn explain(record: &JobRecord, history: &[HistoryEntry], tick: i64, now_us: u64) -> Explanation {
    let due_us = u64::try_from(tick).unwrap_or(0).saturating_mul(1_000_000);
    if due_us > now_us {
        return Explanation::NotDue { left: Duration::from_micros(due_us - now_us) };
    }
    let mut found = None;
    for entry in history {
        match &entry.event {
            HistoryEvent::Claimed { tick: of, attempt, instance } if *of == tick => {
                found = Some(Explanation::Ran { instance: instance.clone(), attempt: *attempt, end: None });
            }
            HistoryEvent::Ended { tick: Some(of), end: how } if *of == tick => {
                if let Some(Explanation::Ran { end, .. }) = &mut found {
                    *end = Some(how.clone());
                }
            }
            HistoryEvent::GaveUp { tick: of, attempts } if *of == tick => {
                found = Some(Explanation::GaveUp { attempts: *attempts });
            }
            HistoryEvent::Missed(missed) if found.is_none() && missed.from <= tick => {
                // Those that a claim passed over lie between the first of them and the claim, which comes next.
                let next =
                    history.iter().filter(|later| later.at_us >= entry.at_us).find_map(|later| match later.event {
                        HistoryEvent::Claimed { tick, .. } => Some(tick),
                        _ => None,
                    });
                if next.is_none_or(|next| tick < next) {
                    found = Some(Explanation::Missed { reason: missed.reason.clone() });
                }
            }
            _ => {}
        }
    }
    if let Some(found) = found {
        return found;
    }
    if tick <= record.since {
        return Explanation::BeforeTheJob;
    }
    if let Some(pause) = record.paused.as_ref().filter(|pause| tick < pause.until) {
        return Explanation::Paused { until: instant(pause.until), note: pause.note.clone() };
    }
    if tick > record.last { Explanation::Waiting } else { Explanation::Forgotten }
}

#[cfg(test)]
mod tests {
    use leader_core::store::{Missed, Pause, RunOutcome};

    use super::*;

    fn record() -> JobRecord {
        JobRecord {
            since: 100,
            last: 500,
            floor: 0,
            schedule: String::new(),
            open: None,
            unended: Vec::new(),
            returned: Vec::new(),
            paused: None,
        }
    }

    fn history() -> Vec<HistoryEntry> {
        let instance = InstanceId::new("a").unwrap();
        let end = RunEnd {
            outcome: RunOutcome::Failed,
            message: "no paper".to_owned(),
            began_us: 0,
            took: Duration::from_secs(3),
        };
        let events = [
            HistoryEvent::Claimed { tick: 200, attempt: 1, instance: instance.clone() },
            HistoryEvent::Ended { tick: Some(200), end },
            HistoryEvent::Missed(Missed { from: 300, count: 2, reason: "a newer one".to_owned() }),
            HistoryEvent::Claimed { tick: 500, attempt: 2, instance },
            HistoryEvent::GaveUp { tick: 150, attempts: 3 },
        ];
        let entry = |(at, event)| HistoryEntry { at_us: at as u64, event };
        events.into_iter().enumerate().map(entry).collect()
    }

    fn told(record: &JobRecord, tick: i64) -> String {
        explain(record, &history(), tick, 700_000_000).to_string()
    }

    #[test]
    fn each_tick_is_explained_by_what_is_known_of_it() {
        for (tick, expected) in [
            (200, "ran on a (attempt 1) for 3s: Failed no paper"),
            (500, "begun on a (attempt 2), without an end"),
            (300, "not run: a newer one"),
            (400, "not run: a newer one"),
            (150, "given up: 3 runs"),
            (50, "before the job was registered"),
            (250, "older than what the history keeps"),
            (600, "not claimed by anybody"),
            (760, "due in 60s"),
        ] {
            let text = told(&record(), tick);
            assert!(text.contains(expected), "{tick}: {text}");
        }
        let paused = JobRecord { paused: Some(Pause { until: 650, note: "stocktaking".to_owned() }), ..record() };
        assert!(told(&paused, 600).contains("paused, or was: stocktaking"));
    }
}
