//! What the judge writes down: what bodies did, what was told, and what excuses a tick.

use std::collections::{HashMap, HashSet};

use leader_core::store::{TickAnswer, TickOp, TickReply};
use leader_core::testing::ledger::Record;
use leader_cron::testing::{Claimed, Reason};

use super::host::Asker;
use crate::sim::cluster::Loss;

/// A job's tick.
pub(super) type Tick = (usize, i64);

/// A body that began.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    pub(super) tick: Tick,
    pub(super) attempt: u32,
    /// Which process: its host, and which start of it.
    pub(super) process: (usize, u32),
    /// True time.
    pub(super) began: u64,
    pub(super) ended: Option<u64>,
    pub(super) completed: bool,
    /// What the store's clock showed then, in microseconds; and had shown at most.
    pub(super) store_us: u64,
}

/// A claim that the ledger permitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Permitted {
    pub(super) at: u64,
    /// Which server did.
    pub(super) node: usize,
    pub(super) process: (usize, u32),
    pub(super) tick: i64,
    /// From which tick on the ledger noted that they are not run.
    pub(super) missed: Option<i64>,
    /// When its process had registered the job, by the store's clock.
    pub(super) registered: i64,
}

#[derive(Debug, Default)]
pub(super) struct Checker {
    pub(super) bodies: Vec<Ran>,
    /// By job, in order of time.
    pub(super) claims: Vec<Vec<Permitted>>,
    /// What was told about a tick: why it is not run, if it is not that another one has taken its place; and what the
    /// store's clock showed; and the true time.
    pub(super) told: HashMap<Tick, Vec<(Option<Reason>, u64, u64)>>,
    pub(super) given_up: HashSet<Tick>,
    pub(super) given_back: HashSet<Tick>,
    /// By job: until which second it was paused.
    pub(super) pauses: Vec<Vec<i64>>,
    /// Processes that died.
    pub(super) deaths: HashSet<(usize, u32)>,
    /// What was written in which true time was lost.
    pub(super) losses: Vec<Loss>,
    /// When the store's clock was set, and by how much.
    pub(super) steps: Vec<(u64, i64)>,
    /// True times at which the store may have lost its memory: it became another one, or forgot.
    pub(super) doubts: Vec<u64>,
    /// By job: when its record began, each time.
    pub(super) since: Vec<Vec<i64>>,
}

impl Checker {
    pub(super) fn new(jobs: usize) -> Self {
        let (claims, pauses) = (vec![Vec::new(); jobs], vec![Vec::new(); jobs]);
        Self { claims, pauses, since: vec![Vec::new(); jobs], ..Self::default() }
    }

    pub(super) fn died(&mut self, host: usize, start: u32) {
        self.deaths.insert((host, start));
    }

    /// All bodies of a process end with it.
    pub(super) fn all_end(&mut self, host: usize, start: u32, at: u64) {
        for body in self.bodies.iter_mut().rev().take(1_000) {
            if body.process == (host, start) && body.ended.is_none() {
                body.ended = Some(at);
            }
        }
    }

    /// The ledger executed a command.
    pub(super) fn executed(
        &mut self,
        (at, node): (u64, usize),
        from: &Asker,
        job: usize,
        op: &TickOp,
        answer: &TickAnswer,
        record: Option<&Record>,
    ) {
        match (op, &answer.reply) {
            (TickOp::Register { .. }, TickReply::Registered(record)) if !self.since[job].contains(&record.since) => {
                self.since[job].push(record.since);
            }
            (TickOp::Claim(claim), TickReply::Run { tick, .. }) => {
                let missed = claim.missed.as_ref().map(|missed| missed.from);
                let (process, registered) = ((from.host, from.start), claim.floor);
                self.claims[job].push(Permitted { at, node, process, tick: *tick, missed, registered });
            }
            (TickOp::Claim(_), TickReply::Over { tick, .. }) => {
                self.given_up.insert((job, *tick));
            }
            (TickOp::GiveBack { .. }, TickReply::Superseded { tick }) => {
                self.reported(job, *tick, None, answer.now_us, at);
            }
            (TickOp::GiveBack { .. }, TickReply::Returned) => {
                let returned = record.into_iter().flat_map(|record| &record.returned);
                self.given_back.extend(returned.map(|back| (job, back.tick)));
            }
            _ => {}
        }
    }

    pub(super) fn reported(&mut self, job: usize, tick: i64, reason: Option<Reason>, store_us: u64, at: u64) {
        self.told.entry((job, tick)).or_default().push((reason, store_us, at));
    }

    pub(super) fn gave_up(&mut self, job: usize, tick: i64) {
        self.given_up.insert((job, tick));
    }

    pub(super) fn paused(&mut self, job: usize, until: i64) {
        self.pauses[job].push(until);
    }

    pub(super) fn memory_was_lost(&mut self, loss: Loss) {
        self.losses.push(loss);
    }

    pub(super) fn clock_was_set(&mut self, at: u64, by: i64) {
        self.steps.push((at, by));
    }

    /// A body begins; its number.
    pub(super) fn began(
        &mut self,
        job: usize,
        claimed: &Claimed,
        process: (usize, u32),
        began: u64,
        store_us: u64,
    ) -> usize {
        let (tick, attempt) = ((job, claimed.tick), claimed.attempt);
        self.bodies.push(Ran { tick, attempt, process, began, ended: None, completed: false, store_us });
        self.bodies.len() - 1
    }

    pub(super) fn ended(&mut self, body: usize, at: u64, completed: bool) {
        let body = &mut self.bodies[body];
        body.ended = Some(at.max(body.began));
        body.completed = completed;
    }
}
