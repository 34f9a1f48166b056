//! The Redis store's rules as a model: one group, its lease key and its record, and what each script does with them.
//!
//! A lease here ends one millisecond earlier than in Redis, which is the harder case.

use std::time::Duration;

use leader_core::store::{Answer, Command, Held, Op, SameId, Won};
use leader_core::{Candidate, InstanceId, Term};

/// What survives a restart with data, and what a snapshot holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Data {
    lease: Option<Lease>,
    record: Option<Record>,
}

/// The lease key: whose it is, and its expiry in milliseconds of the server's clock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lease {
    holder: InstanceId,
    end: u64,
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
    /// The life that the lease was last given.
    life: u64,
    /// The lease's expiry; 0 once released. A lease that is gone before is waited for.
    until: u64,
    /// Until when an older incarnation of the holder's id may believe in the lease that was taken over from it.
    older_until: u64,
}

/// Rules left out on purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flaws {
    /// Renew and release look at the instance id alone.
    pub by_value: bool,
    /// A server that may have lost its memory hands out leases at once.
    pub no_quarantine: bool,
    /// A quarantine that is on is not begun anew when the server's identity changes again.
    pub one_quarantine: bool,
    /// It is forgotten that an older incarnation may still believe in the lease that was taken over from it.
    pub forget_older: bool,
    /// A lease that is gone before its recorded end, without a release, is not waited for.
    pub no_until: bool,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Store {
    /// Its keys.
    pub data: Data,
    /// Its identity; another one after a restart or a promotion.
    pub server: u32,
    flaws: Flaws,
    /// No quarantine is shorter: the largest ttl in the fleet, where candidates differ.
    shortest_quarantine: u64,
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
    pub fn new(shortest_quarantine: Duration, flaws: Flaws) -> Self {
        Self { data: Data::default(), server: 1, flaws, shortest_quarantine: ms(shortest_quarantine) }
    }

    /// Gives the group a record, so that its first acquire meets no quarantine.
    pub fn settle(&mut self) {
        let holder = None;
        let (term, highest) = (Term::default(), Term::default());
        let server = self.server;
        self.data.record =
            Some(Record { holder, term, highest, server, quarantine_end: 0, life: 0, until: 0, older_until: 0 });
    }

    /// Deletes the lease key alone, as an operator might.
    pub fn delete_lease(&mut self) {
        self.data.lease = None;
    }

    /// For the exhaustive model: forgets what makes no difference any more at `now`, microseconds of the server's clock.
    pub fn forget_the_past(&mut self, now: u64) {
        let at = now / 1000;
        self.data.lease.take_if(|lease| lease.end <= at);
        if let Some(record) = &mut self.data.record {
            for instant in [&mut record.quarantine_end, &mut record.until, &mut record.older_until] {
                *instant = if *instant <= at { 0 } else { *instant };
            }
        }
    }

    /// Executes a command at `now`, microseconds of the server's clock.
    pub fn execute(&mut self, now: u64, command: &Command) -> Executed {
        let at = now / 1000;
        self.data.lease.take_if(|lease| lease.end <= at);
        match &command.op {
            Op::Acquire { floor, continues, same_id } => self.acquire(now, command, *floor, *continues, *same_id),
            Op::Renew { term } => self.renew(at, command, *term),
            Op::Release { term } => self.release(at, command, *term),
            Op::Inspect => Answer::Inspected(self.held(at, command)).into(),
        }
    }

    fn acquire(&mut self, now: u64, command: &Command, floor: Term, continues: bool, same_id: SameId) -> Executed {
        let (at, candidate, ttl) = (now / 1000, &command.candidate, ms(command.ttl));
        self.note_server(at, ttl);
        let key = self.key(candidate);
        let flaws = self.flaws;
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
        let gone = if key == Key::Absent && !flaws.no_until && record.holder.as_ref() != Some(candidate) {
            record.until.saturating_sub(at)
        } else {
            0
        };
        if wait > 0 && !continues || gone > 0 {
            wait = wait.max(gone);
            let remaining = Duration::from_millis(wait);
            return Answer::Quarantined { remaining, reason: "the server may have lost its memory" }.into();
        }
        if flaws.forget_older {
            record.older_until = 0;
        }
        let takes_over = key == Key::OtherIncarnation || key == Key::UnknownIncarnation && !continues;
        if let Some(lease) = lease.as_ref().filter(|_| takes_over) {
            record.older_until = record.older_until.max(lease.end);
        }
        let older = record.older_until.saturating_sub(at);
        let term = Term::new((record.highest.get().max(record.term.get()) + 1).max(floor.get() + 1).max(now));
        record.highest = term;
        record.term = term;
        record.holder = Some(candidate.clone());
        // A lease that was taken over is never shortened: its older incarnation may be alive.
        record.life = ttl.max(older);
        record.until = at + record.life;
        *lease = Some(Lease { holder: candidate.id.clone(), end: record.until });
        let older_lease = Duration::from_millis(older);
        let answer = Answer::Won(Won { term, in_quarantine: wait > 0, older_lease });
        Executed { answer, minted: Some(term), announced: false }
    }

    fn renew(&mut self, at: u64, command: &Command, term: Term) -> Executed {
        let (candidate, ttl) = (&command.candidate, ms(command.ttl));
        let key = self.key(candidate);
        if !self.is_acquisition(key, candidate, Some(term)) {
            return Answer::Lost { duplicate: key == Key::OtherIncarnation }.into();
        }
        self.note_server(at, ttl);
        if let Data { lease: Some(lease), record: Some(record) } = &mut self.data {
            record.life = ttl.max(record.older_until.saturating_sub(at));
            record.until = at + record.life;
            lease.end = record.until;
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
                lease.end = record.older_until;
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
        if self.flaws.by_value && matches!(&self.data.lease, Some(l) if l.holder == candidate.id) {
            return true;
        }
        key == Key::Own && term.is_none_or(|term| self.data.record.as_ref().is_some_and(|r| r.term == term))
    }

    fn held(&self, at: u64, command: &Command) -> Option<Held> {
        let lease = self.data.lease.as_ref()?;
        let key = self.key(&command.candidate);
        let record = self.data.record.as_ref().filter(|r| r.holder.as_ref().is_some_and(|h| h.id == lease.holder));
        Some(Held {
            holder: lease.holder.clone(),
            term: record.map(|r| r.term),
            remaining: Duration::from_millis(lease.end - at),
            same_id: key == Key::OtherIncarnation,
            foreign: record.is_none(),
        })
    }

    /// The first script that finds another server identity in the record, or no record, begins a quarantine. And whatever
    /// lasts longer than it could have been set to was set before the server's clock was set back: it is cut.
    fn note_server(&mut self, at: u64, ttl: u64) {
        let (server, flaws) = (self.server, self.flaws);
        if self.data.record.is_none() {
            self.settle();
            if let Some(record) = &mut self.data.record {
                // No server has this identity.
                record.server = 0;
            }
        }
        let Some(record) = &mut self.data.record else { return };
        let end = at + ttl.max(record.life).max(self.shortest_quarantine);
        if record.server != server {
            record.server = server;
            record.life = record.life.max(ttl);
            if !(flaws.no_quarantine || flaws.one_quarantine && record.quarantine_end > at) {
                record.quarantine_end = end;
            }
        }
        record.quarantine_end = record.quarantine_end.min(end);
        let longest = at + record.life.max(ttl);
        record.until = record.until.min(longest);
        record.older_until = record.older_until.min(longest);
        if let Some(lease) = &mut self.data.lease {
            lease.end = lease.end.min(longest);
        }
    }
}
