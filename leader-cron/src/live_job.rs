//! A job that was started, with what is written down of it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leader_core::store::JobName;
use leader_core::{GroupName, StoreError};

use crate::course::Notice;
use crate::job::{Body, Membership, Place};
use crate::policy::Policy;
use crate::schedule::Schedule;
use crate::status::Record;

/// A job that was started.
pub(crate) struct LiveJob {
    /// Tells it from others of this scheduler, also from one of the same name before it.
    pub(crate) id: usize,
    pub(crate) name: Arc<str>,
    pub(crate) place: Place,
    pub(crate) schedule: Schedule,
    pub(crate) policy: Policy,
    pub(crate) membership: Membership,
    pub(crate) group: Option<GroupName>,
    pub(crate) renamed_from: Option<JobName>,
    pub(crate) cancel_on_loss: bool,
    pub(crate) body: Body,
    pub(crate) record: Mutex<Record>,
}

impl LiveJob {
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn group_name(&self) -> Option<&str> {
        self.group.as_ref().map(GroupName::as_str)
    }

    /// What people look for in a log when a job does not run.
    pub(crate) fn announce(&self, now: i64) {
        let (name, group) = (&*self.name, self.group_name());
        let place = group.map_or_else(|| "on every instance".to_owned(), |group| format!("on the leader of {group}"));
        let next = self.schedule.next_after(now);
        let next = next.map_or_else(|| "never".to_owned(), |next| self.schedule.local_time(next));
        let expression = self.schedule.expression();
        tracing::info!(target: "leader", job = name, group, "job {name}: `{expression}` {place}, next at {next}");
    }

    /// The tick belongs to another instance.
    pub(crate) fn skip(&self, tick: i64) {
        let mut record = self.record();
        record.skipped += 1;
        drop(record);
        let (job, group) = (&*self.name, self.group_name());
        tracing::debug!(target: "leader", job, tick, group, "job {job} was skipped: this instance does not lead its group");
    }
}

impl LiveJob {
    /// A line of the history is lost.
    pub(crate) fn report_unwritten(&self, error: &StoreError) {
        let (job, group) = (&*self.name, self.group_name());
        tracing::warn!(
            target: "leader", job, group,
            "a line of the history of job {job} was not written, such as the end of a run by hand; ticks are not touched: {error}"
        );
    }

    /// What the log is told of a job's course.
    pub(crate) fn report(&self, notice: &Notice) {
        let (job, group) = (&*self.name, self.group_name());
        match notice {
            // Told by those who do it.
            Notice::Run(_) | Notice::Cut(_) | Notice::Free(_) | Notice::Taken { .. } => {}
            Notice::Missed(gap) => {
                self.record().missed += gap.count;
                let (count, from) = (gap.count, self.schedule.local_time(gap.from));
                tracing::warn!(
                    target: "leader", job, group, tick = gap.from, missed = count,
                    "{count} ticks of job {job}, from {from} on, are not run: {}", gap.reason
                );
            }
            Notice::TooOld(gap) => {
                let (count, from) = (gap.count, self.schedule.local_time(gap.from));
                tracing::warn!(
                    target: "leader", job, group,
                    "{count} ticks of job {job}, from {from} on, are not run: {}; the next one is waited for", gap.reason
                );
            }
            Notice::Paused(until) => {
                let until = self.schedule.local_time(*until);
                tracing::warn!(
                    target: "leader", job, group,
                    "job {job} is paused until {until}: no tick of it is run before; Running::resume ends that"
                );
            }
            Notice::Superseded(tick) => {
                let tick = *tick;
                tracing::warn!(
                    target: "leader", job, group, tick,
                    "a tick of job {job} was claimed and not begun before the lease ended; a newer one has taken its place"
                );
            }
            Notice::GaveUp { tick, attempts } => {
                let (tick, attempts) = (*tick, *attempts);
                tracing::error!(
                    target: "leader", job, group, tick, attempts,
                    "a tick of job {job} is not run again: {attempts} runs of it have died, or the last one too long ago"
                );
            }
            Notice::Ahead { last, by } => {
                let last = self.schedule.local_time(*last);
                tracing::warn!(
                    target: "leader", job, group,
                    "the last tick of job {job} that was run, {last}, lies {by:?} ahead of the store's clock, so no tick runs until \
                     the clock has caught up: it was set back, or an instance wrote that tick by a clock that was ahead; set the \
                     clock right (of the store's host; for a SQLite file, this one's), or, if the clock is right, remove the job's \
                     record, and the job begins anew"
                );
            }
            Notice::Corrupt(field) => {
                let old = self
                    .renamed_from
                    .as_ref()
                    .map(|old| format!(", or that of its old name {old},"))
                    .unwrap_or_default();
                tracing::error!(
                    target: "leader", job, group, field,
                    "the record of job {job}{old} cannot be read (`{field}`), so the job does not run: remove the record, and the \
                     job begins anew; others are not touched"
                );
            }
            Notice::Ended => {
                tracing::warn!(target: "leader", job, group, "job {job} has no tick any more: its schedule ends");
            }
        }
    }
}

impl fmt::Debug for LiveJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name, f)
    }
}
