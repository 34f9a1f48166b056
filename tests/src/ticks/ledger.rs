//! The store of a simulated world: the model of the lease's rules, and the ledger's own rules, on records in memory.

use std::time::Duration;

use leader_core::store::{Command, HistoryEvent, TickAnswer, TickCommand, TickOp, TickReply};
use leader_core::testing::ledger::{Change, Record, Seen, decide};

use super::jobs::GROUPS;
use super::locked::{KEYS, Locked};
use super::settings::{Settings, Variant};
use crate::sim::cluster::Server;
use crate::sim::store::{Data, Executed, Store};

/// What survives a restart with data, and what a snapshot holds.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    locks: Vec<Locked>,
    leases: Vec<Data>,
    /// By job.
    records: Vec<Option<Record>>,
    /// By group: since which second which identity is known.
    lost: Vec<Option<(u32, i64)>>,
}

/// What one command has changed.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Lease(usize, Data, Option<(u32, i64)>),
    Job { group: usize, lost: Option<(u32, i64)>, job: usize, record: Option<Record> },
    Lock(usize, Locked),
}

/// What came of a command about a job.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) answer: TickAnswer,
    /// The ticks of which the ledger has noted that they may have been run, and are not run again.
    pub(super) forgotten: Vec<i64>,
}

impl From<TickAnswer> for Done {
    fn from(answer: TickAnswer) -> Self {
        Self { answer, forgotten: Vec::new() }
    }
}

#[derive(Debug)]
pub(super) struct Ledger {
    /// By key.
    pub(super) locks: Vec<Locked>,
    leases: Vec<Store>,
    records: Vec<Option<Record>>,
    lost: Vec<Option<(u32, i64)>>,
    variant: Option<Variant>,
}

impl Ledger {
    /// An empty server.
    pub(super) fn new(settings: &Settings, jobs: usize) -> Self {
        Self {
            locks: vec![Locked::default(); KEYS.len()],
            leases: GROUPS.iter().map(|_| Store::new(Duration::ZERO, None)).collect(),
            records: vec![None; jobs],
            lost: vec![None; GROUPS.len()],
            variant: settings.variant,
        }
    }

    /// Executes a command about a lease at `now`, microseconds of the server's clock.
    pub(super) fn lease(&mut self, now: u64, group: usize, command: &Command) -> Executed {
        let store = &mut self.leases[group];
        let before = store.noted_server();
        let done = store.execute(now, command);
        let after = store.noted_server();
        if before != after {
            self.lost[group] = after.map(|server| (server, (now / 1_000_000) as i64));
        }
        done
    }

    /// Executes a command about a job.
    pub(super) fn tick(&mut self, now: u64, group: usize, job: usize, command: &TickCommand) -> Done {
        if matches!(command.op, TickOp::GiveBack { .. }) && self.variant == Some(Variant::NoGiveBack) {
            return TickAnswer { now_us: now, reply: TickReply::NotOpen }.into();
        }
        if matches!(command.op, TickOp::KeepSlot { .. }) && self.variant == Some(Variant::SlotNotKept) {
            return TickAnswer { now_us: now, reply: TickReply::Kept }.into();
        }
        let store = &self.leases[group];
        let server = if self.variant == Some(Variant::NeverFloor) { 0 } else { store.server };
        let record = self.records[job].clone();
        let end = record.as_ref().and_then(|record| record.open.as_ref()).map_or(0, |run| run.slot_end_us);
        let decision = decide(
            Seen {
                record: Ok(record),
                left: Duration::from_micros(end.saturating_sub(now)),
                lease: store.leader(now / 1000),
                now_us: now,
                identity: &server.to_string(),
                lost: self.lost[group].filter(|(known, _)| *known == store.server).map(|(_, lost)| lost),
                other_last: Ok(None),
            },
            command,
        );
        let forgotten = forgotten(self.records[job].as_ref(), &command.op, &decision.change);
        if let Some(record) = decision.change.record {
            self.records[job] = Some(record);
        }
        if let Some(lost) = decision.change.lost {
            self.lost[group] = Some((store.server, lost));
        }
        Done { answer: TickAnswer { now_us: now, reply: decision.reply }, forgotten }
    }

    /// A job's record.
    pub(super) fn record(&self, job: usize) -> Option<&Record> {
        self.records[job].as_ref()
    }

    /// What a command about a lease has changed.
    pub(super) fn lease_write(&self, group: usize) -> Write {
        Write::Lease(group, self.leases[group].data.clone(), self.lost[group])
    }

    /// What a command about a job has changed.
    pub(super) fn tick_write(&self, group: usize, job: usize) -> Write {
        Write::Job { group, lost: self.lost[group], job, record: self.records[job].clone() }
    }

    /// What a command about a lock has changed.
    pub(super) fn lock_write(&self, key: usize) -> Write {
        Write::Lock(key, self.locks[key].clone())
    }

    /// An operator deletes a lease key.
    pub(super) fn delete_lease(&mut self, group: usize) {
        self.leases[group].delete_lease();
    }
}

impl Server for Ledger {
    type Memory = Memory;
    type Write = Write;

    fn memory(&self) -> Memory {
        Memory {
            locks: self.locks.clone(),
            leases: self.leases.iter().map(|store| store.data.clone()).collect(),
            records: self.records.clone(),
            lost: self.lost.clone(),
        }
    }

    fn load(&mut self, memory: Memory) {
        for (store, data) in self.leases.iter_mut().zip(memory.leases) {
            store.data = data;
        }
        (self.locks, self.records, self.lost) = (memory.locks, memory.records, memory.lost);
    }

    fn lose_all(&mut self) {
        for store in &mut self.leases {
            store.data = Data::default();
        }
        self.locks.fill(Locked::default());
        self.records.fill(None);
        self.lost.fill(None);
    }

    fn apply(&mut self, write: Write) {
        match write {
            Write::Lease(group, data, lost) => {
                self.leases[group].data = data;
                self.lost[group] = lost;
            }
            Write::Job { group, lost, job, record } => {
                self.records[job] = record;
                self.lost[group] = lost;
            }
            Write::Lock(key, locked) => self.locks[key] = locked,
        }
    }

    fn identify(&mut self, identity: u32) {
        for store in &mut self.leases {
            store.server = identity;
        }
    }
}

/// What a claim notes besides what it was told to.
fn forgotten(before: Option<&Record>, op: &TickOp, change: &Change) -> Vec<i64> {
    let TickOp::Claim(claim) = op else { return Vec::new() };
    let returned: Vec<i64> = before.into_iter().flat_map(|record| &record.returned).map(|back| back.tick).collect();
    let noted = change.notes.iter().filter_map(|note| match note {
        HistoryEvent::Missed(missed) if Some(missed) != claim.missed.as_ref() => Some(missed.from),
        _ => None,
    });
    // One note stands for all that were given back.
    noted.flat_map(|from| if returned.first() == Some(&from) { returned.clone() } else { vec![from] }).collect()
}
