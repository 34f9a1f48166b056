//! The ledger of ticks in the file: a row for each job, and a row for each line of its history.
//!
//! A tick is due by the host's wall clock, which all instances of the file share. The slot of a run is counted by the boot
//! clock, as everything else here that somebody may rely on: a wall clock that is set forward would end a slot whose run
//! goes on. A slot of another clock (the host was started again, or the run is in another time namespace) is over once it
//! has stood unchanged for its whole length.

mod rows;

use std::time::Duration;

use rusqlite::Connection;

use self::rows::{File, Job};
pub(super) use self::rows::{create, identity, jobs_of, note_file};
use super::database::{Database, Durability};
use super::failure::Failure;
use super::host::Host;
use super::locks::LockWitness;
use super::row::Row;
use super::worker::Call;
use crate::clock::BootInstant;
use crate::error::StoreError;
use crate::identity::Candidate;
use crate::lease::Term;
use crate::store::ledger::rules::{Change, Decision, Seen, decide};
use crate::store::rules::wall_clock;
use crate::store::{HistoryEntry, TickAnswer, TickAnswers, TickBatch, TickCommand, TickOp, TickReply};

pub(super) fn execute(
    database: &mut Database,
    witness: &mut LockWitness,
    batch: &TickBatch,
    call: &Call<TickAnswers>,
) -> Result<TickAnswers, Failure> {
    let identity = database.identity().to_owned();
    // What changes nothing is answered without the writer's lock, so that those who only ask never hinder the others. In a
    // batch that changes something, later commands may be about what earlier ones have changed.
    if batch.commands.iter().all(|command| may_change_nothing(&command.op)) {
        let snapshot = database.look(call.deadline)?;
        let mut desk = Desk::open(&snapshot, witness, &identity)?;
        let answers = batch.commands.iter().map(|command| desk.execute(command, Write::Nothing));
        if let Some(answers) = answers.collect::<Result<Option<_>, _>>()? {
            return Ok(answers);
        }
    }
    let durability = if batch.commands.iter().all(|command| may_be_undone(&command.op)) {
        Durability::Process
    } else {
        Durability::Power
    };
    let transaction = database.write(durability, call.deadline)?;
    if call.is_over() {
        return Err(Failure::Passing("no time was left when the file was free to write".to_owned()));
    }
    let mut desk = Desk::open(&transaction, witness, &identity)?;
    let answers = batch.commands.iter().map(|command| desk.execute(command, Write::Everything));
    let answers: Vec<_> = answers.collect::<Result<Option<_>, _>>()?.unwrap_or_default();
    transaction.commit()?;
    Ok(answers)
}

fn may_change_nothing(op: &TickOp) -> bool {
    matches!(op, TickOp::Register { .. } | TickOp::Load | TickOp::Claim(_) | TickOp::History { .. })
}

/// A power failure may undo it. Not a claim: its body has begun by then, and would again. Nor what says that a tick is over,
/// or due again.
fn may_be_undone(op: &TickOp) -> bool {
    match op {
        TickOp::Register { .. } | TickOp::Load | TickOp::KeepSlot { .. } | TickOp::Note(_) | TickOp::History { .. } => {
            true
        }
        TickOp::Claim(_) | TickOp::End { .. } | TickOp::GiveBack { .. } | TickOp::Pause { .. } | TickOp::Resume => {
            false
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    Nothing,
    Everything,
}

/// One transaction, and the instant that it counts as.
struct Desk<'a> {
    file: &'a Connection,
    witness: &'a mut LockWitness,
    /// Which file it is, and since when that is known.
    identity: &'a str,
    lost: Option<i64>,
    now: BootInstant,
    now_us: u64,
}

impl<'a> Desk<'a> {
    fn open(file: &'a Connection, witness: &'a mut LockWitness, identity: &'a str) -> Result<Self, Failure> {
        let lost = File::read(file)?.filter(|file| file.identity == identity).map(|file| file.lost);
        // Read after the file: under the writer's lock nothing changes any more, and without it nothing is written.
        Ok(Self { file, witness, identity, lost, now: BootInstant::now(), now_us: wall_clock().get() })
    }

    /// The inner error is this command's alone. `None`: there is something to write, and it must not be.
    fn execute(
        &mut self,
        command: &TickCommand,
        write: Write,
    ) -> Result<Option<Result<TickAnswer, StoreError>>, Failure> {
        let done = self.try_execute(command, write);
        match done {
            Ok(reply) => Ok(reply.map(|reply| Ok(TickAnswer { now_us: self.now_us, reply }))),
            // A value that cannot be ours: no reason to fail the neighbours.
            Err(error) if error.sqlite_error_code().is_none() => {
                let TickCommand { group, job, op, .. } = command;
                let attempted = format!("{} of job `{job}` of group `{group}`", op.name());
                Ok(Some(Err(Failure::from(error).attempted(attempted))))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn try_execute(&mut self, command: &TickCommand, write: Write) -> rusqlite::Result<Option<TickReply>> {
        let (group, name) = (&command.group, &command.job);
        if let TickOp::History { limit } = command.op {
            return Ok(Some(TickReply::History(rows::history(self.file, group, name, limit)?)));
        }
        let job = Job::read(self.file, group, name)?;
        let (leader, old) = match &command.op {
            TickOp::Claim(claim) => (self.leader(command)?, claim.renamed_from.as_ref().filter(|old| *old != name)),
            _ => (None, None),
        };
        let other_last = old.map_or(Ok(Ok(None)), |old| rows::last(self.file, group, old))?;
        let seen = Seen {
            left: self.left(&job),
            record: job.record.clone(),
            lease: leader.as_ref().map(|(holder, term)| (holder, *term)),
            now_us: self.now_us,
            identity: self.identity,
            lost: self.lost,
            other_last,
        };
        let Decision { reply, change } = decide(seen, command);
        if change.is_nothing() {
            return Ok(Some(reply));
        }
        if write == Write::Nothing {
            return Ok(None);
        }
        let Change { record, slot, notes, other_last, lost } = change;
        if let Some(record) = record {
            let mut job = Job { record: Ok(Some(record)), ..job };
            if let Some(slot) = slot {
                job.slot_end = self.now.saturating_add(slot);
                Host::this().clock.clone_into(&mut job.clock);
            }
            job.write(self.file, group, name)?;
        }
        if let (Some(last), Some(old)) = (other_last, old) {
            rows::raise(self.file, group, old, last)?;
        }
        if let Some(lost) = lost {
            File { identity: self.identity.to_owned(), lost }.write(self.file)?;
            self.lost = Some(lost);
        }
        let lines = notes.into_iter().map(|event| HistoryEntry { at_us: self.now_us, event });
        rows::append(self.file, group, name, lines)?;
        Ok(Some(reply))
    }

    /// Who holds the group's lease, as far as that can be the asker: another clock's lease is none of its own.
    fn leader(&self, command: &TickCommand) -> rusqlite::Result<Option<(Candidate, Term)>> {
        let row = Row::read(self.file, &command.group)?;
        let stands = row.host.clock == Host::this().clock && self.now < row.until;
        let last = row.record.last.filter(|last| stands && !last.released);
        Ok(last.map(|last| (last.holder, last.term)))
    }

    fn left(&mut self, job: &Job) -> Duration {
        let Ok(Some(record)) = &job.record else { return Duration::ZERO };
        let Some(run) = &record.open else { return Duration::ZERO };
        if job.clock == Host::this().clock {
            return job.slot_end.saturating_since(self.now);
        }
        // Another clock's instants say nothing here. But who has not kept its slot for the whole of it believes in it no more.
        let seen = self.witness.seen_in("run", run.nonce, job.slot_end.as_nanos(), self.now);
        seen.saturating_add(Duration::from_micros(run.slot_us)).saturating_since(self.now)
    }
}
