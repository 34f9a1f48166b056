//! Locks in the file: one batch is a look without the writer's lock, then one transaction for what has to be written.
//!
//! As with leases, clock and rows are read under that lock; instants count only for the clock that they were read from; and
//! a holder whose end is proved holds nothing any more.

mod queue;
mod rows;
mod sight;
mod witness;

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::Connection;

pub(super) use self::queue::told;
use self::queue::{Place, Walk};
pub(super) use self::rows::create;
use self::rows::{Note, Seat, locks_of};
use self::sight::see;
pub(super) use self::witness::LockWitness;
use super::database::{Database, Durability};
use super::failure::Failure;
use super::files::FileId;
use super::host::Host;
use super::witness::Witness;
use super::worker::{Call, Member};
use crate::clock::BootInstant;
use crate::error::StoreError;
use crate::identity::Incarnation;
use crate::lease::Term;
use crate::store::lock::rules::{Change, Decision, Tell, decide};
use crate::store::rules::wall_clock;
use crate::store::{LockAnswer, LockAnswers, LockBatch, LockCommand, LockOp};

type Members = HashMap<Incarnation, Member>;

/// What a look has answered already.
type Known = Vec<Option<Result<LockAnswer, StoreError>>>;

/// Time from one removal of what nobody asks for again to the next.
const SWEEP: Duration = Duration::from_secs(10);

/// What the worker knows, beside the file.
pub(super) struct Eyes<'a> {
    pub(super) witness: &'a mut Witness,
    pub(super) locks: &'a mut LockWitness,
    /// Who lives in this process: nobody has to wait for a proof of their end.
    pub(super) own: Vec<Incarnation>,
}

/// What came of a batch.
pub(super) struct Executed {
    pub(super) answers: LockAnswers,
    /// Those who are to ask again: their electors and nonces.
    pub(super) told: Vec<(Incarnation, u128)>,
}

pub(super) fn execute(
    database: &mut Database,
    eyes: &mut Eyes<'_>,
    members: &mut Members,
    batch: &LockBatch,
    call: &Call<LockAnswers>,
) -> Result<Executed, Failure> {
    let (answers, mut durability) = look(database, eyes, members, batch, call.deadline)?;
    if answers.iter().all(Option::is_some) {
        return Ok(Executed { answers: answers.into_iter().flatten().collect(), told: Vec::new() });
    }
    loop {
        let written = write(database, eyes, members, batch, &answers, durability, call)?;
        match written {
            Some(executed) => return Ok(executed),
            // What the look has not foreseen, and what has to be synced: nothing was written.
            None => durability = Durability::Power,
        }
    }
}

/// Answers what needs no writing, so that those who wait for a lock never hinder its holder; and how much the rest has to
/// survive.
fn look(
    database: &mut Database,
    eyes: &mut Eyes<'_>,
    members: &Members,
    batch: &LockBatch,
    deadline: BootInstant,
) -> Result<(Known, Durability), Failure> {
    let snapshot = database.look(deadline)?;
    let mut durability = Durability::Process;
    let mut answers = Vec::with_capacity(batch.commands.len());
    for command in &batch.commands {
        answers.push(match command.op {
            // These write, or find that they are too late: under the lock, and once.
            LockOp::Renew { .. } | LockOp::Release { .. } => None,
            LockOp::Complete { .. } => {
                durability = Durability::Power;
                None
            }
            LockOp::Acquire { .. } | LockOp::Forget => {
                match consider(&snapshot, eyes, members, command, Phase::Look)? {
                    Ok(Considered { decision, .. }) if decision.change == Change::Nothing => Some(Ok(decision.answer)),
                    Ok(considered) => {
                        durability = considered.durability(durability);
                        None
                    }
                    Err(error) => Some(Err(error)),
                }
            }
        });
    }
    Ok((answers, durability))
}

/// Answers the rest, in one transaction, in which clock and rows are read anew. `None`: it has to survive more than was
/// thought.
fn write(
    database: &mut Database,
    eyes: &mut Eyes<'_>,
    members: &mut Members,
    batch: &LockBatch,
    known: &[Option<Result<LockAnswer, StoreError>>],
    durability: Durability,
    call: &Call<LockAnswers>,
) -> Result<Option<Executed>, Failure> {
    let transaction = database.write(durability, call.deadline)?;
    if call.is_over() {
        return Err(Failure::Passing("no time was left when the file was free to write".to_owned()));
    }
    let mut answers = Vec::with_capacity(known.len());
    let mut told = Vec::new();
    for (command, known) in batch.commands.iter().zip(known) {
        answers.push(match known {
            Some(answer) => answer.clone(),
            None => match consider(&transaction, eyes, members, command, Phase::Write)? {
                Ok(considered) if considered.durability(durability) != durability => return Ok(None),
                Ok(considered) => {
                    considered.write(&transaction, eyes, &mut told)?;
                    note(members, command, &considered);
                    Ok(considered.decision.answer)
                }
                Err(error) => Err(error),
            },
        });
    }
    let now = BootInstant::now();
    if eyes.locks.is_to_sweep(now, SWEEP) {
        rows::sweep(&transaction, eyes.locks, now, wall_clock())?;
    }
    transaction.commit()?;
    Ok(Some(Executed { answers, told }))
}

/// Keeps until when the member may hold which lock. Before the commit: if its outcome stays unknown, it may.
fn note(members: &mut Members, command: &LockCommand, considered: &Considered<'_>) {
    let Some(member) = members.get_mut(&command.owner.candidate.incarnation) else { return };
    match considered.decision.answer {
        LockAnswer::Won { .. } | LockAnswer::Renewed => {
            member.may_hold(command.owner.nonce, considered.now.saturating_add(command.ttl), considered.now);
        }
        LockAnswer::Released | LockAnswer::NotHeld | LockAnswer::Lost | LockAnswer::Completed => {
            member.holds_no_more(command.owner.nonce);
        }
        LockAnswer::Busy(_) | LockAnswer::Done | LockAnswer::Forgotten(_) => {}
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// What has to be written is found out, and nothing more.
    Look,
    Write,
}

/// What was read, and what is to become of it.
struct Considered<'a> {
    command: &'a LockCommand,
    now: BootInstant,
    seat: Option<Seat>,
    /// The asker has a place.
    queued: bool,
    /// The asker's life lock.
    life: FileId,
    decision: Decision,
}

/// The inner error is this command's alone.
fn consider<'a>(
    from: &Connection,
    eyes: &mut Eyes<'_>,
    members: &Members,
    command: &'a LockCommand,
    phase: Phase,
) -> Result<Result<Considered<'a>, StoreError>, Failure> {
    let asker = command.owner.candidate.incarnation;
    let life = match (&command.op, members.get(&asker)) {
        (_, Some(member)) => member.life_id,
        (LockOp::Acquire { .. }, None) => {
            let failure = Failure::permanent("this elector is not connected", "connect it first");
            return Ok(Err(failure.attempted(attempted(command))));
        }
        (_, None) => FileId::default(),
    };
    match see(from, eyes, command, asker, phase) {
        Ok((now, seat, seen)) => {
            let decision = decide(&seen, command);
            Ok(Ok(Considered { command, now, seat, queued: seen.queued, life, decision }))
        }
        // A value that cannot be ours: no reason to fail the neighbours.
        Err(error) if error.sqlite_error_code().is_none() => {
            Ok(Err(Failure::from(error).attempted(attempted(command))))
        }
        Err(error) => Err(error.into()),
    }
}

impl Considered<'_> {
    /// A token may be known to other systems, and a note says that work was done: neither may be undone by a power failure.
    fn durability(&self, least: Durability) -> Durability {
        match self.decision.change {
            Change::Take(token) if self.seat.as_ref().is_none_or(|seat| seat.token != token) => Durability::Power,
            Change::Complete(_) | Change::Forget => Durability::Power,
            _ => least,
        }
    }

    fn write(&self, to: &Connection, eyes: &mut Eyes<'_>, told: &mut Vec<(Incarnation, u128)>) -> Result<(), Failure> {
        let (command, now) = (self.command, self.now);
        let (key, owner) = (&command.key, &command.owner);
        let leave = || queue::leave(to, key, owner.nonce);
        let until = now.saturating_add(command.ttl);
        match self.decision.change {
            Change::Nothing => {}
            Change::Take(token) => {
                Seat {
                    token,
                    nonce: owner.nonce,
                    instance: owner.candidate.id.clone(),
                    incarnation: owner.candidate.incarnation,
                    until,
                    ttl: command.ttl,
                    host: Host::this().clone(),
                    life: self.life,
                    version: self.seat.as_ref().map_or(0, |seat| seat.version) + 1,
                }
                .write(to, key)?;
                rows::raise(to, token)?;
                leave()?;
            }
            Change::Extend => {
                if let Some(seat) = &self.seat {
                    Seat { until, ttl: command.ttl, version: seat.version + 1, ..seat.clone() }.write(to, key)?;
                }
            }
            Change::Queue(life) => {
                let place = Place {
                    nonce: owner.nonce,
                    incarnation: owner.candidate.incarnation,
                    until: now.saturating_add(life),
                    life,
                    host: Host::this().clone(),
                    life_lock: self.life,
                };
                if self.queued { place.keep(to, key)? } else { place.append(to, key)? }
            }
            Change::Leave => leave()?,
            Change::Free => {
                rows::free(to, key)?;
                leave()?;
            }
            Change::Complete(keep) => {
                let token = self.seat.as_ref().map_or(Term::default(), |seat| seat.token);
                let until = keep.map(|keep| Term::new(wall_clock().get().saturating_add(micros(keep))));
                Note { nonce: owner.nonce, token, until }.write(to, key)?;
                rows::free(to, key)?;
                leave()?;
            }
            Change::Forget => rows::forget(to, key)?,
        }
        if self.decision.tell == Tell::Nobody {
            return Ok(());
        }
        let mut those = Vec::new();
        Place::walk(to, key, |place| {
            if place.left(eyes, now).is_zero() {
                return Ok(Walk::On);
            }
            those.push((place.incarnation, place.nonce));
            Ok(if self.decision.tell == Tell::First { Walk::Enough } else { Walk::On })
        })?;
        for (_, nonce) in &those {
            queue::tell(to, key, *nonce)?;
        }
        told.extend(those);
        Ok(())
    }
}

/// Whether a lock or a place is somebody's of this elector, or was.
pub(super) fn name(from: &Connection, elector: Incarnation) -> rusqlite::Result<bool> {
    Ok(!locks_of(from, elector)?.is_empty() || !queue::awaited_by(from, elector)?.is_empty())
}

/// Those who wait first for a lock that `ended` held or waited for.
pub(super) fn heirs(
    from: &Connection,
    eyes: &mut Eyes<'_>,
    ended: Incarnation,
) -> rusqlite::Result<Vec<(Incarnation, u128)>> {
    let now = BootInstant::now();
    let mut heirs = Vec::new();
    for key in locks_of(from, ended)?.into_iter().chain(queue::awaited_by(from, ended)?) {
        Place::walk(from, &key, |place| {
            if place.left(eyes, now).is_zero() {
                return Ok(Walk::On);
            }
            heirs.push((place.incarnation, place.nonce));
            Ok(Walk::Enough)
        })?;
    }
    Ok(heirs)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn attempted(command: &LockCommand) -> String {
    format!("{} of `{}`", command.op.name(), command.key)
}
