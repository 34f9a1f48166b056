//! The contract for one job, without a clock and without storage: what a command changes, and how it is answered.
//!
//! A store finds out what is [`Seen`] of the job by whatever clocks and tables it has, asks [`decide`], and writes down the
//! [`Change`]. The Redis store's script is held to the same rules by a comparison.

#[cfg(test)]
mod any_order;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::record::{MOST, Record, Run, Unended, micros_of};
use super::{HistoryEvent, Missed, ReturnedTick, TickClaim, TickCommand, TickOp, TickReply, cut, second};
use crate::identity::Candidate;
use crate::lease::Term;

/// What a store sees at the moment of the decision.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    /// The job's record, if there is one; or which part of it is nobody's of ours.
    pub record: Result<Option<Record>, &'static str>,
    /// How long the slot of the open run lasts.
    pub left: Duration,
    /// Who holds the group's lease, and under which term.
    pub lease: Option<(&'a Candidate, Term)>,
    /// The store's clock, in microseconds since 1970.
    pub now_us: u64,
    /// What tells this store from another one that stood in its place, or from itself before it lost its memory.
    pub identity: &'a str,
    /// Since which second this identity is known: what was claimed before it may have been forgotten. None if that is not
    /// written down yet.
    pub lost: Option<i64>,
    /// The last tick of the job that this one was renamed from, as [`record`](Self::record).
    pub other_last: Result<Option<i64>, &'static str>,
}

/// The answer to a command, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub reply: TickReply,
    /// What to write.
    pub change: Change,
}

/// What happens to a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// What its record becomes, unless it stays as it is.
    pub record: Option<Record>,
    /// The slot of the open run lasts for so long from now.
    pub slot: Option<Duration>,
    /// What is added to its history.
    pub notes: Vec<HistoryEvent>,
    /// What the last tick of the job becomes that this one was renamed from.
    pub other_last: Option<i64>,
    /// What [`Seen::lost`] becomes.
    pub lost: Option<i64>,
}

impl Change {
    /// Nothing is to be written.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl From<TickReply> for Decision {
    fn from(reply: TickReply) -> Self {
        Self { reply, change: Change::default() }
    }
}

impl Decision {
    fn writing(reply: TickReply, record: Record) -> Self {
        Self { reply, change: Change { record: Some(record), ..Change::default() } }
    }
}

impl Seen<'_> {
    fn now(&self) -> i64 {
        second(i64::try_from(self.now_us / 1_000_000).unwrap_or(i64::MAX))
    }

    fn floor(&self, record: &Record) -> i64 {
        floor(record, self.identity, self.lost.unwrap_or(self.now()))
    }

    fn told(&self, record: &Record) -> super::JobRecord {
        record.told(self.floor(record), self.left)
    }
}

/// Up to which tick claims may have been forgotten that came after the one that the record tells of.
pub(in crate::store) fn floor(record: &Record, identity: &str, lost: i64) -> i64 {
    if record.server == identity { 0 } else { record.since.max(lost) }
}

/// Decides about one command. A history is for the store to tell.
#[must_use]
pub fn decide(seen: Seen<'_>, command: &TickCommand) -> Decision {
    if let TickOp::Claim(claim) = &command.op {
        return fenced(seen, &command.candidate, claim);
    }
    let record = match &seen.record {
        Ok(record) => record.clone(),
        Err(field) => match &command.op {
            // It needs no record.
            TickOp::Note(event) => return noted(event),
            _ => return TickReply::Corrupt { field }.into(),
        },
    };
    match (&command.op, record) {
        (TickOp::Register { .. }, Some(record)) => TickReply::Registered(seen.told(&record)).into(),
        (TickOp::Register { schedule, known }, None) => {
            let record = Record::begin(seen.now(), schedule, seen.identity, *known);
            let told = TickReply::Registered(record.told(seen.floor(&record), Duration::ZERO));
            Decision::writing(told, record)
        }
        (TickOp::Load, Some(record)) => TickReply::Loaded(seen.told(&record)).into(),
        (TickOp::Load | TickOp::Pause { .. } | TickOp::Resume, None) => TickReply::Unknown.into(),
        (TickOp::KeepSlot { nonce, slot }, Some(mut record)) => match &mut record.open {
            Some(run) if run.nonce == *nonce => {
                let slot = run.begin_slot(*slot, seen.now_us);
                let kept = Decision::writing(TickReply::Kept, record);
                Decision { change: Change { slot: Some(slot), ..kept.change }, ..kept }
            }
            _ => TickReply::Gone.into(),
        },
        (TickOp::KeepSlot { .. }, None) => TickReply::Gone.into(),
        (TickOp::End { nonce, .. }, Some(record)) if record.done == Some(*nonce) => TickReply::Ended.into(),
        (TickOp::End { nonce, end }, record) => {
            let ended = record.and_then(|mut record| {
                let run = record.close(*nonce)?;
                record.done = Some(*nonce);
                Some((record, run.tick))
            });
            let reply = if ended.is_some() { TickReply::Ended } else { TickReply::Other };
            let (record, tick) = ended.unzip();
            let notes = vec![HistoryEvent::Ended { tick, end: end.clone() }];
            Decision { reply, change: Change { record, notes, ..Change::default() } }
        }
        (TickOp::GiveBack { nonce, begun, keep }, Some(record)) => give_back(record, *nonce, *begun, *keep),
        (TickOp::GiveBack { .. }, None) => TickReply::NotOpen.into(),
        (TickOp::Pause { until, note }, Some(mut record)) => {
            record.paused = Some(super::Pause { until: second(*until), note: cut(note).to_owned() });
            Decision::writing(TickReply::Changed, record)
        }
        (TickOp::Resume, Some(mut record)) => match &mut record.paused {
            // It stays in the record, as one that has ended: whoever leads next is not to make up for its ticks either.
            Some(pause) if pause.is_on(seen.now_us) => {
                pause.until = seen.now();
                Decision::writing(TickReply::Changed, record)
            }
            _ => TickReply::Changed.into(),
        },
        (TickOp::Note(event), _) => noted(event),
        (TickOp::History { .. } | TickOp::Claim(_), _) => TickReply::History(Vec::new()).into(),
    }
}

fn noted(event: &HistoryEvent) -> Decision {
    let change = Change { notes: vec![event.clone()], ..Change::default() };
    Decision { reply: TickReply::Noted, change }
}

fn give_back(mut record: Record, nonce: u128, begun: bool, keep: bool) -> Decision {
    let Some(run) = record.close(nonce) else { return TickReply::NotOpen.into() };
    let attempts = if begun { run.attempt } else { run.attempt.saturating_sub(1) };
    // The list cannot overflow but by many cut runs of one job at a time; whoever gives back is told.
    if (record.last != run.tick && !keep) || record.returned.len() >= MOST {
        return Decision::writing(TickReply::Superseded { tick: run.tick }, record);
    }
    let place = record.returned.iter().position(|other| other.tick > run.tick).unwrap_or(record.returned.len());
    record.returned.insert(place, ReturnedTick { tick: run.tick, attempts });
    Decision::writing(TickReply::Returned, record)
}

/// What comes before any look at the record; and what the first claim on a store that may have forgotten writes down.
fn fenced(seen: Seen<'_>, candidate: &Candidate, claim: &TickClaim) -> Decision {
    if seen.now_us > claim.not_after_us {
        return TickReply::Late.into();
    }
    if seen.lease != Some((candidate, claim.term)) {
        return TickReply::Fenced.into();
    }
    let lost = if seen.lost.is_none() { Some(seen.now()) } else { None };
    let decision = match (&seen.record, &seen.other_last) {
        (Ok(None), _) => TickReply::Unknown.into(),
        (Err(field), _) | (_, Err(field)) => TickReply::Corrupt { field }.into(),
        (Ok(Some(record)), Ok(other)) => {
            Claiming { seen: &seen, claim, candidate, other: *other }.decide(record.clone())
        }
    };
    Decision { change: Change { lost, ..decision.change }, ..decision }
}

/// A claim of the leader.
struct Claiming<'a> {
    seen: &'a Seen<'a>,
    claim: &'a TickClaim,
    candidate: &'a Candidate,
    /// The last tick under the job's old name.
    other: Option<i64>,
}

impl Claiming<'_> {
    fn decide(&self, mut record: Record) -> Decision {
        let Self { claim, seen, .. } = *self;
        let tick = second(claim.tick);
        let exclusive = claim.forbid || claim.at_least_once;
        if let Some(run) = record.open.as_mut().filter(|run| run.nonce == claim.nonce) {
            // Asked again, because the answer was lost. Its body begins now: so does its slot.
            let reply = TickReply::Run { tick: run.tick, attempt: run.attempt };
            let slot = run.begin_slot(claim.slot, seen.now_us);
            let again = Decision::writing(reply, record);
            return Decision { change: Change { slot: Some(slot), ..again.change }, ..again };
        }
        if let Some(run) = record.others.iter().find(|run| run.nonce == claim.nonce && !exclusive) {
            return TickReply::Run { tick: run.tick, attempt: run.attempt }.into();
        }
        if record.done == Some(claim.nonce) {
            return TickReply::Done.into();
        }
        if let Some(pause) = record.paused.as_ref().filter(|pause| pause.is_on(seen.now_us)) {
            return TickReply::Paused(pause.clone()).into();
        }
        if let Some(run) = record.open.clone().filter(|_| exclusive) {
            if !seen.left.is_zero() {
                return self.busy(record, run);
            }
            if claim.at_least_once {
                return self.take_over(record, &run, tick);
            }
        }
        // What was given back before the store's memory was lost may have been run since.
        let known = record.server == seen.identity || claim.at_least_once;
        let returned = if known { record.returned.as_slice() } else { &[] };
        if let Some(place) = returned.iter().position(|back| back.tick == tick) {
            let spent = claim.at_least_once && returned[place].attempts >= claim.max_attempts;
            if let Some(early) = self.early(tick).filter(|_| !spent) {
                return early;
            }
            let back = record.returned.remove(place);
            if spent {
                return over(record, tick, back.attempts);
            }
            return self.run(record, tick, back.attempts.saturating_add(1), Vec::new());
        }
        if let Some(first) = returned.first() {
            return TickReply::Take { tick: first.tick, attempts: first.attempts }.into();
        }
        self.fresh(record, tick)
    }

    /// A tick that nobody has claimed, as far as the record tells.
    fn fresh(&self, mut record: Record, tick: i64) -> Decision {
        let Self { claim, seen, other, .. } = *self;
        let expect = second(claim.expect);
        if record.last > expect {
            return TickReply::Moved { last: record.last }.into();
        }
        let last = expect.max(other.unwrap_or(0));
        // Who vouches knows what was claimed, and at least once does not mind.
        let mut floor = if claim.vouch || claim.at_least_once { 0 } else { seen.floor(&record) };
        if record.schedule != cut(&claim.schedule) {
            floor = floor.max(second(claim.floor));
        }
        if tick <= last || tick <= floor {
            return TickReply::Already { last, floor }.into();
        }
        if let Some(early) = self.early(tick) {
            return early;
        }
        let mut notes = Vec::new();
        if let (Some(first), false) = (record.returned.first(), record.server == seen.identity) {
            // Only without delivery at least once are there any left.
            let count = record.returned.len() as u64;
            notes.push(HistoryEvent::Missed(Missed { from: first.tick, count, reason: FORGOTTEN.to_owned() }));
            record.returned.clear();
        }
        if record.server != seen.identity && !claim.at_least_once {
            // A run of before may have been given back since, and run again: its giver asks once more if it got no answer.
            let open = record.open.take().map(|run| run.tick);
            let unended = open.into_iter().chain(std::mem::take(&mut record.others).into_iter().map(|run| run.tick));
            // Where runs exclude each other, none of them is on any more; whether they ever were, nobody will tell.
            let forgotten = |from| HistoryEvent::Missed(Missed { from, count: 1, reason: FORGOTTEN.to_owned() });
            notes.extend(unended.filter(|_| claim.forbid).map(forgotten));
        }
        notes.extend(claim.missed.clone().map(HistoryEvent::Missed));
        record.last = tick;
        cut(&claim.schedule).clone_into(&mut record.schedule);
        seen.identity.clone_into(&mut record.server);
        let decision = self.run(record, tick, 1, notes);
        let other_last = other.filter(|other| *other < tick).map(|_| tick);
        Decision { change: Change { other_last, ..decision.change }, ..decision }
    }

    /// The tick is not due. Asked also of one that was claimed before: the store's clock may have been set back since.
    fn early(&self, tick: i64) -> Option<Decision> {
        let left = micros_of(tick).checked_sub(self.seen.now_us).filter(|left| *left > 0)?;
        Some(TickReply::Early { left: Duration::from_micros(left) }.into())
    }

    /// Another run holds the job.
    fn busy(&self, mut record: Record, run: Run) -> Decision {
        let Self { claim, seen, .. } = *self;
        let holder = run.holder.id.clone();
        // A slot that lasts longer than it can have been set to was set before the store's clock was set back: it is cut.
        let longest = micros(claim.slot).max(run.slot_us);
        if seen.left <= Duration::from_micros(longest) {
            return TickReply::Busy { left: seen.left, holder }.into();
        }
        let left = Duration::from_micros(longest);
        record.open = Some(Run { slot_end_us: seen.now_us.saturating_add(longest), ..run });
        let decision = Decision::writing(TickReply::Busy { left, holder }, record);
        Decision { change: Change { slot: Some(left), ..decision.change }, ..decision }
    }

    /// A run whose slot is over without an end, with delivery at least once.
    fn take_over(&self, mut record: Record, run: &Run, tick: i64) -> Decision {
        let Self { claim, seen, .. } = *self;
        let since = seen.now_us.saturating_sub(run.slot_end_us);
        if run.attempt >= claim.max_attempts || since > micros(claim.retry_within) {
            record.open = None;
            return over(record, run.tick, run.attempt);
        }
        if run.tick != tick {
            return TickReply::Take { tick: run.tick, attempts: run.attempt }.into();
        }
        if let Some(early) = self.early(tick) {
            return early;
        }
        record.open = None;
        self.run(record, tick, run.attempt.saturating_add(1), Vec::new())
    }

    fn run(&self, mut record: Record, tick: i64, attempt: u32, mut notes: Vec<HistoryEvent>) -> Decision {
        let Self { claim, seen, candidate, .. } = *self;
        record.set_aside();
        let mut run = Run {
            tick,
            nonce: claim.nonce,
            attempt,
            slot_us: 0,
            slot_end_us: 0,
            began_us: seen.now_us,
            term: claim.term,
            holder: candidate.clone(),
        };
        let slot = run.begin_slot(claim.slot, seen.now_us);
        record.open = Some(run);
        notes.push(HistoryEvent::Claimed { tick, attempt, instance: candidate.id.clone() });
        let change = Change { record: Some(record), slot: Some(slot), notes, ..Change::default() };
        Decision { reply: TickReply::Run { tick, attempt }, change }
    }
}

/// Why ticks that were given back are not run.
pub(in crate::store) const FORGOTTEN: &str = "the store has lost its memory, and may have forgotten that they were run";

fn over(record: Record, tick: i64, attempts: u32) -> Decision {
    let decision = Decision::writing(TickReply::Over { tick, attempts }, record);
    let notes = vec![HistoryEvent::GaveUp { tick, attempts }];
    Decision { change: Change { notes, ..decision.change }, ..decision }
}

/// The longest slot: a day.
pub(in crate::store) const LONGEST_SLOT_US: u64 = 86_400_000_000;

pub(in crate::store) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Run {
    fn begin_slot(&mut self, slot: Duration, now_us: u64) -> Duration {
        self.slot_us = micros(slot).min(LONGEST_SLOT_US);
        self.slot_end_us = now_us.saturating_add(self.slot_us);
        Duration::from_micros(self.slot_us)
    }
}

impl Record {
    /// Takes out the run with this nonce, if it has not ended.
    fn close(&mut self, nonce: u128) -> Option<Unended> {
        if let Some(run) = self.open.take_if(|run| run.nonce == nonce) {
            return Some(Unended { tick: run.tick, nonce, attempt: run.attempt });
        }
        let place = self.others.iter().position(|run| run.nonce == nonce)?;
        Some(self.others.remove(place))
    }

    /// Another run takes the place of the open one.
    fn set_aside(&mut self) {
        if let Some(Run { tick, nonce, attempt, .. }) = self.open.take() {
            self.others.push(Unended { tick, nonce, attempt });
            if self.others.len() > MOST {
                self.others.remove(0);
            }
        }
    }
}
