//! What the ledger knows of the jobs, and what can be told to it: pauses, histories, why a tick did not run.

use std::sync::Arc;
use std::time::SystemTime;

use leader_core::GroupName;
use leader_core::store::{HistoryEntry, HistoryEvent, JobName, TickAnswer, TickCommand, TickOp, TickReply};

use crate::error::LedgerError;
use crate::explain::{Explanation, Known};
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
    /// on go on. `note` says why, for people; it is cut to 200 bytes. `until` is cut to whole seconds, and a tick of that very
    /// second is run; a tick that was due and had not begun is not. Without an end: a time that is far away.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`], [`LedgerError::NotInLedger`], [`LedgerError::Store`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it may be paused all the same.
    pub async fn pause(&self, job: &str, until: SystemTime, note: &str) -> Result<(), LedgerError> {
        let op = TickOp::Pause { until: unix_seconds(until), note: note.to_owned() };
        self.change(job, op).await?;
        tracing::info!(target: "leader", job, "job {job} was paused by this instance: {note}");
        Ok(())
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    ///
    /// # Cancel safety
    /// As for [`pause`](Self::pause).
    pub async fn resume(&self, job: &str) -> Result<(), LedgerError> {
        self.change(job, TickOp::Resume).await?;
        tracing::info!(target: "leader", job, "a pause of job {job}, if there was one, was ended by this instance");
        Ok(())
    }

    /// The last entries of a job's history, the oldest first: 120 at most, of the whole fleet. Each is shown as a line of text, by
    /// its `Display`.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn history(&self, job: &str) -> Result<Vec<HistoryEntry>, LedgerError> {
        let job = self.job(job)?;
        match self.ask(&job, TickOp::History { limit: TickOp::HISTORY }).await?.reply {
            TickReply::History(mut entries) => {
                entries.dedup_by(|second, first| is_written_twice(first, second));
                Ok(entries)
            }
            reply => Err(unexpected(&job, &reply)),
        }
    }

    /// What has become of one tick of a job: where it ran and for how long, or why it did not. An instant that is no tick is
    /// looked for among the [runs by hand](Self::trigger), by the second in which they began.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn explain(&self, job: &str, tick: SystemTime) -> Result<Explanation, LedgerError> {
        let job = self.job(job)?;
        let tick = unix_seconds(tick);
        if job.schedule.next_after(tick.saturating_sub(1)) != Some(tick) {
            let by_hand = |history: Vec<_>| Explanation::by_hand(&history, tick).unwrap_or(Explanation::NotATick);
            // Of a job that has no history it is known all the same that this is no tick.
            return if job.group.is_none() {
                Ok(Explanation::NotATick)
            } else {
                self.history(&job.name).await.map(by_hand)
            };
        }
        let answer = self.ask(&job, TickOp::Load).await?;
        let record = match answer.reply {
            TickReply::Loaded(record) => record,
            TickReply::Unknown => return Ok(Explanation::NoRecord),
            reply => return Err(unexpected(&job, &reply)),
        };
        let history = self.history(&job.name).await?;
        Ok(Known { schedule: &job.schedule, record: &record, history: &history, now_us: answer.now_us }.explain(tick))
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

/// A note whose answer was lost is written again.
fn is_written_twice(first: &HistoryEntry, second: &HistoryEntry) -> bool {
    matches!(first.event, HistoryEvent::Manual { .. } | HistoryEvent::Missed(_)) && first.event == second.event
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
