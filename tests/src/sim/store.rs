//! The Redis store's rules as a model: one group, its lease key and its record, and what each script does with them.
//!
//! A lease here ends one millisecond earlier than in Redis, which is the harder case.

use std::time::Duration;

use leader_core::store::{Answer, Command, Held, Op, SameId, Won};
use leader_core::testing::redis_script::{Flaw, reason};
use leader_core::{Candidate, Incarnation, InstanceId, Term};

/// What survives a restart with data, and what a snapshot holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Data {
    lease: Option<Lease>,
    record: Option<Record>,
}

/// The lease key: whose it is, and its expiry in milliseconds of the server's clock, which only somebody else's may lack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lease {
    holder: InstanceId,
    end: Option<u64>,
}

impl Data {
    /// For the exhaustive model: lets everybody who stands in it be renamed.
    pub fn rename(&mut self, rename: &mut impl FnMut(&mut InstanceId, Option<&mut Incarnation>)) {
        if let Some(lease) = &mut self.lease {
            rename(&mut lease.holder, None);
        }
        if let Some(holder) = self.record.as_mut().and_then(|record| record.holder.as_mut()) {
            rename(&mut holder.id, Some(&mut holder.incarnation));
        }
    }

    /// For the exhaustive model: what a candidate is to it: in the lease, in the record.
    #[must_use]
    pub fn place_of(&self, candidate: &Candidate) -> [bool; 2] {
        let in_lease = self.lease.as_ref().is_some_and(|lease| lease.holder == candidate.id);
        [in_lease, self.record.as_ref().is_some_and(|record| record.holder.as_ref() == Some(candidate))]
    }
}

impl Lease {
    fn has_ended(&self, at: u64) -> bool {
        self.end.is_some_and(|end| end <= at)
    }
}

/// The record beside the lease key; it has no expiry. All times are milliseconds, those of instants on the server's clock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Record {
    /// The last acquisition; nobody's in a record that a quarantine began.
    holder: Option<Candidate>,
    term: Term,
    /// No term up to this one may be handed out: the largest that any candidate has seen.
    highest: Term,
    /// Run id and replication id of the server that wrote last.
    server: u32,
    quarantine_end: u64,
    /// Why there is a quarantine.
    reason: &'static str,
    /// The life that the lease was last given.
    life: u64,
    /// The lease's expiry; 0 once released. A lease that is gone before is waited for.
    until: u64,
    /// Until when an older incarnation of the holder's id may believe in the lease that was taken over from it.
    older_until: u64,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Store {
    /// Its keys.
    pub data: Data,
    /// Its identity; another one after a restart or a promotion.
    pub server: u32,
    flaw: Option<Flaw>,
    /// No quarantine is shorter: the largest ttl in the fleet, where candidates differ.
    shortest_quarantine: u64,
    /// A group without a record is new.
    trusts_fresh: bool,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The answer to its sender.
    pub answer: Answer,
    /// The term that was handed out.
    pub minted: Option<Term>,
    /// A release was announced.
    pub announced: bool,
}

impl From<Answer> for Executed {
    fn from(answer: Answer) -> Self {
        Self { answer, minted: None, announced: false }
    }
}

/// What the lease key means to a candidate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Absent,
    Own,
    /// Of another incarnation of the candidate's id.
    OtherIncarnation,
    /// Of the candidate's id, but no record says which incarnation.
    UnknownIncarnation,
    Other,
}

fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

impl Store {
    /// An empty server that is in use since long.
    #[must_use]
    pub fn new(shortest_quarantine: Duration, flaw: Option<Flaw>) -> Self {
        let shortest_quarantine = ms(shortest_quarantine);
        Self { data: Data::default(), server: 1, flaw, shortest_quarantine, trusts_fresh: false }
    }

    /// This server, on which a group without a record is taken for new.
    #[must_use]
    pub fn trusting_fresh(self) -> Self {
        Self { trusts_fresh: true, ..self }
    }

    /// Gives the group a record, so that its first acquire meets no quarantine.
    pub fn settle(&mut self) {
        self.data.record = Some(Record {
            holder: None,
            term: Term::default(),
            highest: Term::default(),
            server: self.server,
            quarantine_end: 0,
            reason: "",
            life: 0,
            until: 0,
            older_until: 0,
        });
    }

    /// Deletes the lease key alone, as an operator might.
    pub fn delete_lease(&mut self) {
        self.data.lease = None;
    }

    /// Deletes the record alone.
    pub fn delete_record(&mut self) {
        self.data.record = None;
    }

    /// Sets the lease key as somebody does who keeps no record.
    pub fn set_lease(&mut self, holder: InstanceId, end: Option<u64>) {
        self.data.lease = Some(Lease { holder, end });
    }

    /// Whether there is a lease, at `at` milliseconds of the server's clock.
    #[must_use]
    pub fn has_lease(&self, at: u64) -> bool {
        self.data.lease.as_ref().is_some_and(|lease| !lease.has_ended(at))
    }

    /// Who holds the lease at `at` milliseconds of the server's clock, and under which term.
    #[must_use]
    pub fn leader(&self, at: u64) -> Option<(&Candidate, Term)> {
        let lease = self.data.lease.as_ref().filter(|lease| !lease.has_ended(at))?;
        let record = self.data.record.as_ref()?;
        let holder = record.holder.as_ref().filter(|holder| holder.id == lease.holder)?;
        Some((holder, record.term))
    }

    /// The first instant after `at` at which something ends, in milliseconds of the server's clock.
    #[must_use]
    pub fn next_end(&self, at: u64) -> Option<u64> {
        let Data { lease, record } = &self.data;
        let recorded = record.iter().flat_map(|r| [r.quarantine_end, r.until, r.older_until]);
        let lease = lease.as_ref().and_then(|lease| lease.end);
        recorded.chain(lease).filter(|end| *end > at).min()
    }

    /// The server that wrote the record last.
    #[must_use]
    pub fn noted_server(&self) -> Option<u32> {
        self.data.record.as_ref().map(|record| record.server)
    }

    /// For the exhaustive model: forgets what makes no difference any more at `now`, microseconds of the server's clock.
    pub fn forget_the_past(&mut self, now: u64) {
        let at = now / 1000;
        self.data.lease.take_if(|lease| lease.has_ended(at));
        if let Some(record) = &mut self.data.record {
            for instant in [&mut record.quarantine_end, &mut record.until, &mut record.older_until] {
                *instant = if *instant <= at { 0 } else { *instant };
            }
            if record.quarantine_end == 0 {
                record.reason = "";
            }
        }
    }

    /// Executes a command at `now`, microseconds of the server's clock.
    pub fn execute(&mut self, now: u64, command: &Command) -> Executed {
        let at = now / 1000;
        self.data.lease.take_if(|lease| lease.has_ended(at));
        match &command.op {
            Op::Acquire { floor, continues, same_id } => self.acquire(now, command, *floor, *continues, *same_id),
            Op::Renew { term } => self.renew(at, command, *term),
            Op::Release { term } => self.release(at, command, *term),
            Op::Inspect => Answer::Inspected(self.held(at, command)).into(),
        }
    }

    fn acquire(&mut self, now: u64, command: &Command, floor: Term, continues: bool, same_id: SameId) -> Executed {
        let (at, candidate, ttl) = (now / 1000, &command.candidate, ms(command.ttl));
        let longest = self.note_server(at, ttl);
        let key = self.key(candidate);
        let flaw = self.flaw;
        let Data { lease, record: Some(record) } = &mut self.data else { unreachable!("the server was noted") };
        record.highest = record.highest.max(floor);
        let takes = match key {
            Key::Absent | Key::Own => true,
            Key::OtherIncarnation => same_id == SameId::Take,
            Key::UnknownIncarnation => same_id == SameId::Take || continues,
            Key::Other => false,
        };
        if !takes {
            return self.held(at, command).map_or(Answer::NotHeld, Answer::Held).into();
        }
        let mut wait = record.quarantine_end.saturating_sub(at);
        // A lease that is gone before its end is waited for, except by the incarnation that it was given to; also by a leader
        // that continues, because its request may be a late one, sent before that lease was given to the other.
        let gone = if key == Key::Absent && flaw != Some(Flaw::NoUntil) && record.holder.as_ref() != Some(candidate) {
            record.until.saturating_sub(at)
        } else {
            0
        };
        if wait > 0 && !continues || gone > 0 {
            let reason = if gone > wait { reason("lease") } else { record.reason };
            wait = wait.max(gone);
            return Answer::Quarantined { remaining: Duration::from_millis(wait), reason }.into();
        }
        if flaw == Some(Flaw::ForgetOlder) {
            record.older_until = 0;
        }
        let takes_over = key == Key::OtherIncarnation || key == Key::UnknownIncarnation && !continues;
        if let Some(lease) = lease.as_ref().filter(|_| takes_over) {
            record.older_until = record.older_until.max(lease.end.map_or(longest, |end| end.min(longest)));
        }
        let older = record.older_until.saturating_sub(at);
        let term = Term::new((record.highest.get().max(record.term.get()) + 1).max(floor.get() + 1).max(now));
        record.highest = term;
        record.term = term;
        record.holder = Some(candidate.clone());
        // A lease that was taken over is never shortened: its older incarnation may be alive.
        record.life = ttl.max(older);
        record.until = at + record.life;
        *lease = Some(Lease { holder: candidate.id.clone(), end: Some(record.until) });
        let older_lease = Duration::from_millis(older);
        let answer = Answer::Won(Won { term, in_quarantine: wait > 0, older_lease });
        Executed { answer, minted: Some(term), announced: false }
    }

    fn renew(&mut self, at: u64, command: &Command, term: Term) -> Executed {
        let (candidate, ttl) = (&command.candidate, ms(command.ttl));
        let key = self.key(candidate);
        if !self.is_acquisition(key, candidate, Some(term)) {
            // Also if that other incarnation's lease has ended since: it lives, or lived, at the same time as the asker. Not
            // if its term is older: then the record is.
            let later = self.data.record.as_ref().filter(|record| record.term >= term);
            let last = later.and_then(|record| record.holder.as_ref());
            let duplicate = last.is_some_and(|last| last.id == candidate.id && last != candidate);
            return Answer::Lost { duplicate }.into();
        }
        self.note_server(at, ttl);
        if let Data { lease: Some(lease), record: Some(record) } = &mut self.data {
            record.life = ttl.max(record.older_until.saturating_sub(at));
            record.until = at + record.life;
            lease.end = Some(record.until);
        }
        Answer::Renewed.into()
    }

    fn release(&mut self, at: u64, command: &Command, term: Option<Term>) -> Executed {
        let key = self.key(&command.candidate);
        if !self.is_acquisition(key, &command.candidate, term) {
            return Answer::NotHeld.into();
        }
        self.note_server(at, ms(command.ttl));
        let mut announced = false;
        if let Data { lease: Some(lease), record: Some(record) } = &mut self.data {
            if record.older_until > at {
                // An older incarnation may still believe in it: it goes when that one's belief has ended.
                record.until = record.older_until;
                lease.end = Some(record.older_until);
            } else {
                record.until = 0;
                self.data.lease = None;
                announced = true;
            }
        }
        Executed { answer: Answer::Released, minted: None, announced }
    }

    fn key(&self, candidate: &Candidate) -> Key {
        let Some(lease) = &self.data.lease else { return Key::Absent };
        if lease.holder != candidate.id {
            return Key::Other;
        }
        match self.data.record.as_ref().and_then(|r| r.holder.as_ref()) {
            Some(holder) if holder == candidate => Key::Own,
            Some(holder) if holder.id == candidate.id => Key::OtherIncarnation,
            _ => Key::UnknownIncarnation,
        }
    }

    /// The lease is the one of this acquisition; of whichever this incarnation holds, if no term is given.
    fn is_acquisition(&self, key: Key, candidate: &Candidate, term: Option<Term>) -> bool {
        if self.flaw == Some(Flaw::ByValue) && matches!(&self.data.lease, Some(l) if l.holder == candidate.id) {
            return true;
        }
        key == Key::Own && term.is_none_or(|term| self.data.record.as_ref().is_some_and(|r| r.term == term))
    }

    fn held(&self, at: u64, command: &Command) -> Option<Held> {
        let lease = self.data.lease.as_ref()?;
        let key = self.key(&command.candidate);
        let seen = match command.op {
            Op::Acquire { floor, .. } => floor,
            _ => Term::default(),
        };
        let record = self.data.record.as_ref().filter(|r| r.holder.as_ref().is_some_and(|h| h.id == lease.holder));
        Some(Held {
            holder: lease.holder.clone(),
            term: record.map(|r| r.term),
            // Of a lease without end: look again after a ttl.
            remaining: lease.end.map_or(command.ttl, |end| Duration::from_millis(end - at)),
            same_id: key == Key::OtherIncarnation && record.is_some_and(|record| record.term >= seen),
            foreign: record.is_none(),
        })
    }

    /// The first script that finds another server identity in the record, or no record, begins a quarantine. And whatever
    /// lasts longer than it could have been set to was set before the server's clock was set back: it is cut. The lease
    /// too, unless it is of somebody who keeps no record, and may have set it to any time. Returns that longest time.
    fn note_server(&mut self, at: u64, ttl: u64) -> u64 {
        let (server, flaw) = (self.server, self.flaw);
        let is_new = self.data.record.is_none();
        if is_new {
            self.settle();
        }
        let Data { lease, record: Some(record) } = &mut self.data else { unreachable!("it is settled") };
        let end = at + ttl.max(record.life).max(self.shortest_quarantine);
        if is_new || record.server != server {
            record.server = server;
            record.life = record.life.max(ttl);
            let goes_on = flaw == Some(Flaw::OneQuarantine) && record.quarantine_end > at;
            if !(flaw == Some(Flaw::NoQuarantine) || goes_on || is_new && self.trusts_fresh) {
                record.quarantine_end = end;
                record.reason = reason(if is_new { "record" } else { "server" });
            }
        }
        record.quarantine_end = record.quarantine_end.min(end);
        let longest = at + record.life.max(ttl);
        record.until = record.until.min(longest);
        record.older_until = record.older_until.min(longest);
        let recorded = |lease: &&mut Lease| record.holder.as_ref().is_some_and(|holder| holder.id == lease.holder);
        if let Some(lease) = lease.as_mut().filter(recorded) {
            lease.end = Some(lease.end.map_or(longest, |end| end.min(longest)));
        }
        longest
    }
}
