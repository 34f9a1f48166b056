//! The ledger of a store in memory.

use std::collections::{HashMap, VecDeque};

use crate::clock::BootInstant;
use crate::group::GroupName;
use crate::identity::Candidate;
use crate::lease::Term;
use crate::store::ledger::record::Record;
use crate::store::ledger::rules::{Change, Decision, Seen, decide};
use crate::store::{HistoryEntry, JobName, TickAnswer, TickCommand, TickOp, TickReply};

/// It never forgets: one identity is enough.
const IDENTITY: &str = "memory";

/// All jobs.
#[derive(Default)]
pub(crate) struct Ledger {
    jobs: HashMap<GroupName, HashMap<JobName, Job>>,
}

#[derive(Default)]
struct Job {
    record: Option<Record>,
    /// When the slot of the open run ends.
    slot_end: BootInstant,
    history: VecDeque<HistoryEntry>,
}

impl Ledger {
    /// Executes one command, where `lease` is who holds the group's.
    pub(crate) fn execute(
        &mut self,
        command: &TickCommand,
        lease: Option<(&Candidate, Term)>,
        now: BootInstant,
        now_us: u64,
    ) -> TickAnswer {
        let jobs = self.jobs.entry(command.group.clone()).or_default();
        if let TickOp::History { limit } = command.op {
            let history = jobs.get(&command.job).map(|job| &job.history);
            let entries = history.into_iter().flatten().rev().take(limit as usize);
            let mut entries: Vec<_> = entries.cloned().collect();
            entries.reverse();
            return TickAnswer { now_us, reply: TickReply::History(entries) };
        }
        let old_name = match &command.op {
            TickOp::Claim(claim) => claim.renamed_from.as_ref().filter(|old| **old != command.job),
            _ => None,
        };
        let other = old_name.and_then(|old| jobs.get(old)?.record.as_ref());
        let other_last = Ok(other.map(|record| record.last));
        let job = jobs.get(&command.job);
        let seen = Seen {
            record: Ok(job.and_then(|job| job.record.clone())),
            left: job.map_or(BootInstant::default(), |job| job.slot_end).saturating_since(now),
            lease,
            now_us,
            identity: IDENTITY,
            lost: Some(0),
            other_last,
        };
        let Decision { reply, change } = decide(seen, command);
        if change.is_nothing() {
            return TickAnswer { now_us, reply };
        }
        let Change { record, slot, notes, other_last, lost: _ } = change;
        if let (Some(last), Some(old)) = (other_last, old_name)
            && let Some(other) = jobs.get_mut(old).and_then(|job| job.record.as_mut())
        {
            other.last = last;
        }
        let job = jobs.entry(command.job.clone()).or_default();
        job.record = record.or(job.record.take());
        if let Some(slot) = slot {
            job.slot_end = now.saturating_add(slot);
        }
        job.history.extend(notes.into_iter().map(|event| HistoryEntry { at_us: now_us, event: event.as_kept() }));
        let more = job.history.len().saturating_sub(TickOp::HISTORY as usize);
        job.history.drain(..more);
        TickAnswer { now_us, reply }
    }
}
