//! One batch: first a look without the writer's lock, then one transaction for all that has to be written.

use std::collections::HashMap;

use rusqlite::Connection;

use super::database::{Database, Durability};
use super::failure::Failure;
use super::host::Host;
use super::row::{Row, Suspicion};
use super::verdict::{Evidence, Verdict, judge};
use super::witness::Witness;
use super::worker::{Call, Member};
use crate::clock::BootInstant;
use crate::error::StoreError;
use crate::identity::Incarnation;
use crate::store::rules::wall_clock;
use crate::store::{Answer, Answers, Batch, Command, Op};

type Members = HashMap<Incarnation, Member>;

/// Answers what needs no writing, so that followers that wait for a lease never hinder its holder.
pub(super) fn look(
    database: &mut Database,
    witness: &mut Witness,
    members: &Members,
    batch: &Batch,
    deadline: BootInstant,
) -> Result<Vec<Option<Result<Answer, StoreError>>>, Failure> {
    let snapshot = database.look(deadline)?;
    let mut answers = Vec::with_capacity(batch.commands.len());
    for command in &batch.commands {
        answers.push(match command.op {
            // These write, or find that they are too late: under the lock, and once.
            Op::Renew { .. } | Op::Release { .. } => None,
            Op::Acquire { .. } | Op::Inspect => match consider(&snapshot, witness, members, command)? {
                Ok(considered) => (!considered.writes()).then_some(Ok(considered.verdict.answer)),
                Err(error) => Some(Err(error)),
            },
        });
    }
    Ok(answers)
}

/// Answers the rest, in one transaction, in which the clock and the rows are read anew.
pub(super) fn write(
    database: &mut Database,
    witness: &mut Witness,
    members: &mut Members,
    batch: &Batch,
    answers: &mut [Option<Result<Answer, StoreError>>],
    durability: Durability,
    call: &Call<Answers>,
) -> Result<Answers, Failure> {
    let transaction = database.write(durability, call.deadline)?;
    if call.is_over() {
        return Err(Failure::Passing("no time was left when the file was free to write".to_owned()));
    }
    let mut all = Vec::with_capacity(answers.len());
    for (command, answer) in batch.commands.iter().zip(answers) {
        all.push(match answer.take() {
            Some(answer) => answer,
            None => match consider(&transaction, witness, members, command)? {
                Ok(considered) => {
                    considered.write(&transaction, command)?;
                    note(members, command, &considered.verdict);
                    Ok(considered.verdict.answer)
                }
                Err(error) => Err(error),
            },
        });
    }
    transaction.commit()?;
    Ok(all)
}

/// Keeps until when the member may believe in which lease. Before the commit: if its outcome stays unknown, it may.
fn note(members: &mut Members, command: &Command, verdict: &Verdict) {
    let Some(member) = members.get_mut(&command.candidate.incarnation) else { return };
    match verdict.answer {
        Answer::Won(_) | Answer::Renewed => {
            member.leases.insert(command.group.clone(), verdict.row.until);
        }
        Answer::Released => {
            member.leases.remove(&command.group);
        }
        _ => {}
    }
}

/// What was read, and what is to become of it.
struct Considered {
    row: Row,
    suspicion: Option<Suspicion>,
    verdict: Verdict,
}

impl Considered {
    fn writes(&self) -> bool {
        self.row != self.verdict.row || self.suspicion != self.verdict.note
    }

    fn write(&self, to: &Connection, command: &Command) -> rusqlite::Result<()> {
        if self.row != self.verdict.row {
            self.verdict.row.write(to, &command.group)?;
        }
        if self.suspicion != self.verdict.note {
            Suspicion::write(self.verdict.note.as_ref(), to)?;
        }
        Ok(())
    }
}

/// The inner error is this command's alone.
fn consider(
    from: &Connection,
    witness: &mut Witness,
    members: &Members,
    command: &Command,
) -> Result<Result<Considered, StoreError>, Failure> {
    let refused =
        |failure: Failure| Ok(Err(failure.attempted(format!("{} of group `{}`", command.op.name(), command.group))));
    let asker = command.candidate.incarnation;
    let life = match (&command.op, members.get(&asker)) {
        (_, Some(member)) => member.life_id,
        (Op::Acquire { .. }, None) => {
            return refused(Failure::permanent("this elector is not connected", "connect it first"));
        }
        (_, None) => Default::default(),
    };
    let row = match Row::read(from, &command.group) {
        Ok(row) => row,
        // A value that cannot be ours: no reason to fail the neighbours.
        Err(error) if error.sqlite_error_code().is_none() => return refused(error.into()),
        Err(error) => return Err(error.into()),
    };
    let suspicion = Suspicion::read(from)?;
    // Read after the row: under the writer's lock nothing changes any more, and without it nothing is decided by it.
    let now = BootInstant::now();
    let evidence = Evidence {
        now,
        wall: wall_clock(),
        here: Host::this(),
        life,
        dead: witness.is_dead(&row, asker, now),
        row_seen: witness.row_seen(&command.group, &row, now),
        note_seen: witness.note_seen(suspicion.as_ref(), now),
    };
    let verdict = judge(&row, suspicion.as_ref(), command, evidence);
    Ok(Ok(Considered { row, suspicion, verdict }))
}
