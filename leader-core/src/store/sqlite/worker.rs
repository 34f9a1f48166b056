//! The thread that owns the connection, and does one thing after the other.
//!
//! It calls no code of others, and writes no log: a blocked output must not cost the lease.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{io, thread};

use tokio::sync::oneshot;

use super::card::Card;
use super::database::{Database, Durability};
use super::doorbell::Doorbell;
use super::failure::Failure;
use super::files::FileId;
use super::life::Life;
use super::locks::{self, Executed, Eyes, LockWitness};
use super::look::{Rows, Surroundings};
use super::row::{groups_of, released};
use super::witness::Witness;
use super::{ticks, transaction};
use crate::clock::BootInstant;
use crate::config::FreshStore;
use crate::error::StoreError;
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation};
use crate::store::{
    Announcer, Answer, Answers, Batch, Command, LockAnswers, LockBatch, Op, Session, TickAnswers, TickBatch,
};

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Job {
    /// See [`LeaseStore::connect`](crate::store::LeaseStore::connect).
    Connect(Session, Call<()>),
    /// See [`LeaseStore::execute`](crate::store::LeaseStore::execute).
    Execute(Batch, Call<Answers>),
    /// See [`LeaseStore::execute_locks`](crate::store::LeaseStore::execute_locks).
    ExecuteLocks(LockBatch, Call<LockAnswers>),
    /// See [`LeaseStore::execute_ticks`](crate::store::LeaseStore::execute_ticks).
    ExecuteTicks(TickBatch, Call<TickAnswers>),
    /// See [`LeaseStore::disconnect`](crate::store::LeaseStore::disconnect).
    Disconnect(Incarnation, Call<()>),
    /// See [`LeaseStore::describe`](crate::store::LeaseStore::describe).
    Describe(Incarnation, BTreeMap<GroupName, Vec<String>>, Call<()>),
    /// The doctor wants to know what there is beside the rows.
    LookAround(Call<Surroundings>),
    /// And what the file holds of these groups.
    ReadRows(Vec<GroupName>, Call<BTreeMap<GroupName, Rows>>),
    /// Something was seen that the doctor should look at.
    Strange,
    /// Another incarnation has ended.
    Ended(Incarnation),
    /// Another process has released something.
    Rung,
    /// The last handle was dropped.
    Stop,
}

/// Who waits for an answer, and how long.
#[derive(Debug)]
pub(super) struct Call<T> {
    pub(super) deadline: BootInstant,
    pub(super) reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T> Call<T> {
    /// Nobody waits any more: what has not begun must not begin.
    pub(super) fn is_over(&self) -> bool {
        self.reply.is_closed() || self.deadline <= BootInstant::now()
    }
}

/// Starts the thread for the database at `path`, which messages call `address`.
pub(super) fn start(path: PathBuf, address: String, fresh: FreshStore) -> io::Result<Sender<Job>> {
    let (sender, jobs) = channel();
    let to_self = sender.clone();
    thread::Builder::new().name("leader-sqlite".to_owned()).spawn(move || {
        let mut worker = Worker {
            path,
            address,
            fresh,
            to_self,
            open: None,
            lost: None,
            members: HashMap::new(),
            lingering: Vec::new(),
        };
        if catch_unwind(AssertUnwindSafe(|| worker.run(&jobs))).is_err() {
            // A leader may go on to believe until its deadline: its life lock must not end before the process does.
            std::mem::forget(worker);
        }
    })?;
    Ok(sender)
}

struct Worker {
    path: PathBuf,
    address: String,
    fresh: FreshStore,
    to_self: Sender<Job>,
    open: Option<Open>,
    /// The path names another file than the one that is open: nothing more is done with it.
    lost: Option<Failure>,
    members: HashMap<Incarnation, Member>,
    /// Life locks of members that have gone but may still be believed to lead.
    lingering: Vec<(BootInstant, Life)>,
}

struct Open {
    database: Database,
    witness: Witness,
    lock_witness: LockWitness,
    doorbell: Doorbell,
    /// A ring was heard that nobody has looked after yet.
    rung: Arc<AtomicBool>,
}

/// A connected elector.
pub(super) struct Member {
    announcer: Announcer,
    candidate: Candidate,
    program: String,
    groups: HashSet<GroupName>,
    /// None once the file is lost, and what it may believe in is over.
    life: Option<Life>,
    pub(super) life_id: FileId,
    /// Until when it may hold which leases.
    pub(super) leases: HashMap<GroupName, BootInstant>,
    /// And which locks, by the nonces of their owners.
    locks: HashMap<u128, BootInstant>,
}

impl Member {
    /// Gives up the life lock; or, if it may still believe in a lease or a lock, returns it, and until when to keep it: work that
    /// outlived its grace goes on so long.
    fn end_life(&mut self) -> Option<(BootInstant, Life)> {
        let life = self.life.take()?;
        let until = self.leases.values().chain(self.locks.values()).copied().max()?;
        (BootInstant::now() < until).then_some((until, life))
    }

    /// Its elector may believe until then that it holds this lock.
    pub(super) fn may_hold(&mut self, lock: u128, until: BootInstant, now: BootInstant) {
        self.locks.insert(lock, until);
        // Those that were never given back: looked for each time that there are twice as many.
        if self.locks.len() >= 1024 && self.locks.len().is_power_of_two() {
            self.locks.retain(|_, until| now < *until);
        }
    }

    pub(super) fn holds_no_more(&mut self, lock: u128) {
        self.locks.remove(&lock);
    }
}

impl Worker {
    fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            match self.next(jobs) {
                None => {}
                Some(Job::Connect(session, call)) if !call.is_over() => {
                    let attempted = format!("connect to {}", self.address);
                    let done = self.connect(session, call.deadline).map_err(|failure| failure.attempted(attempted));
                    // If nobody waits for it any more, the caller will connect again, or disconnect.
                    let _ = call.reply.send(done);
                }
                Some(Job::Execute(batch, call)) if !call.is_over() => {
                    let answers =
                        self.execute(&batch, &call).map_err(|failure| failure.attempted(self.attempted(&batch)));
                    let _ = call.reply.send(answers);
                }
                Some(Job::ExecuteLocks(batch, call)) if !call.is_over() => {
                    let answers = self.execute_locks(&batch, &call);
                    let attempted = format!("lock commands on {}", self.address);
                    let answers = answers.map_err(|failure| failure.attempted(attempted));
                    let _ = call.reply.send(answers);
                }
                Some(Job::ExecuteTicks(batch, call)) if !call.is_over() => {
                    let answers = self.execute_ticks(&batch, &call);
                    let attempted = format!("commands to the ledger on {}", self.address);
                    let _ = call.reply.send(answers.map_err(|failure| failure.attempted(attempted)));
                }
                Some(Job::LookAround(call)) if !call.is_over() => {
                    let seen = self.examined().and_then(|(database, witness)| Surroundings::see(database, witness));
                    let _ =
                        call.reply.send(seen.map_err(|failure| failure.attempted(format!("examine {}", self.address))));
                }
                Some(Job::ReadRows(groups, call)) if !call.is_over() => {
                    let rows = self.examined().and_then(|(database, _)| Rows::read(database, groups, call.deadline));
                    let _ =
                        call.reply.send(rows.map_err(|failure| failure.attempted(format!("examine {}", self.address))));
                }
                // Too late: the caller has given up, or is about to.
                Some(
                    Job::Connect(..)
                    | Job::Execute(..)
                    | Job::ExecuteLocks(..)
                    | Job::ExecuteTicks(..)
                    | Job::LookAround(..)
                    | Job::ReadRows(..),
                ) => {}
                Some(Job::Describe(incarnation, groups, call)) => {
                    self.describe(incarnation, &groups);
                    let _ = call.reply.send(Ok(()));
                }
                Some(Job::Strange) => self.members.values().for_each(|member| member.announcer.examine()),
                Some(Job::Disconnect(incarnation, call)) => {
                    self.disconnect(incarnation);
                    let _ = call.reply.send(Ok(()));
                }
                Some(Job::Ended(incarnation)) => self.ended(incarnation),
                Some(Job::Rung) => self.rung(),
                Some(Job::Stop) => break,
            }
        }
        let members: Vec<_> = self.members.keys().copied().collect();
        members.into_iter().for_each(|incarnation| self.disconnect(incarnation));
        // The program may go on without this store, and with work that was begun under its leases.
        while let Some(wait) = self.linger() {
            thread::sleep(wait);
        }
    }

    fn next(&mut self, jobs: &Receiver<Job>) -> Option<Job> {
        match self.linger() {
            // The worker holds a sender itself: the channel does not end, but by `Stop`.
            None => Some(jobs.recv().unwrap_or(Job::Stop)),
            Some(wait) => match jobs.recv_timeout(wait) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Job::Stop),
            },
        }
    }

    /// Gives up the life locks that nobody needs any more, and returns when to look again.
    fn linger(&mut self) -> Option<Duration> {
        let now = BootInstant::now();
        self.lingering.retain(|(until, _)| now < *until);
        self.lingering.iter().map(|(until, _)| until.saturating_since(now)).min()
    }

    fn connect(&mut self, session: Session, deadline: BootInstant) -> Result<(), Failure> {
        self.verify()?;
        let incarnation = session.candidate.incarnation;
        let card = Card::new(&session.candidate, &session.program, &session.groups);
        let groups = session.groups.into_keys().collect();
        if let Some(member) = self.members.get_mut(&incarnation) {
            (member.announcer, member.groups) = (session.announcer, groups);
            if let Some(life) = &mut member.life {
                // The connect before this one was given up, and the jobs may have been started since. Else as below.
                let _ = life.tell(&card);
            }
            return Ok(());
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let mut database = Database::open(&self.path, self.fresh, deadline)?;
                let locks = database.locks().to_owned();
                let (to_self, rung) = (self.to_self.clone(), Arc::new(AtomicBool::new(false)));
                let heard = Arc::clone(&rung);
                let doorbell = Doorbell::hang(&locks, move || {
                    if !heard.swap(true, Ordering::SeqCst) {
                        to_self.send(Job::Rung).unwrap_or_default();
                    }
                });
                let witness = Witness::new(locks, self.to_self.clone());
                let lock_witness = LockWitness::new(database.take_strangers(), BootInstant::now());
                self.open.insert(Open { database, witness, lock_witness, doorbell, rung })
            }
        };
        let locks = open.database.locks();
        let mut life = Life::begin(locks, incarnation, open.database.id())
            .map_err(|error| Failure::of_file(&format!("a lock file in {}", locks.display()), &error))?;
        // Without it others know less of this one, and no more.
        let _ = life.tell(&card);
        self.members.insert(
            incarnation,
            Member {
                announcer: session.announcer,
                candidate: session.candidate,
                program: session.program,
                groups,
                life_id: life.id(),
                life: Some(life),
                leases: HashMap::new(),
                locks: HashMap::new(),
            },
        );
        Ok(())
    }

    fn disconnect(&mut self, incarnation: Incarnation) {
        if let Some(mut member) = self.members.remove(&incarnation) {
            self.lingering.extend(member.end_life());
        }
        if self.members.is_empty() {
            self.open = None;
            self.lost = None;
        }
    }

    fn execute(&mut self, batch: &Batch, call: &Call<Answers>) -> Result<Answers, Failure> {
        self.verify()?;
        let Some(Open { database, witness, doorbell, .. }) = &mut self.open else {
            return Err(Failure::permanent("no elector is connected", "connect one first"));
        };
        let mut answers = transaction::look(database, witness, &self.members, batch, call.deadline)?;
        if answers.iter().all(Option::is_some) {
            self.verify()?;
            return Ok(answers.into_iter().flatten().collect());
        }
        let acquires =
            |(command, answer): (&Command, &Option<_>)| answer.is_none() && matches!(command.op, Op::Acquire { .. });
        let durability =
            if batch.commands.iter().zip(&answers).any(acquires) { Durability::Power } else { Durability::Process };
        let answers = transaction::write(database, witness, &mut self.members, batch, &mut answers, durability, call)
            .map_err(|failure| database.explain(failure))?;
        let released: Vec<_> = batch
            .commands
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| matches!(answer, Ok(Answer::Released)))
            .map(|(command, _)| command)
            .collect();
        if !released.is_empty() {
            // Those who do not hear it look when the lease that they were told of would end.
            let _ = doorbell.ring();
        }
        for release in released {
            announce(&self.members, &release.group, release.candidate.incarnation);
        }
        bury(database, witness);
        self.verify()?;
        Ok(answers)
    }

    fn execute_locks(&mut self, batch: &LockBatch, call: &Call<LockAnswers>) -> Result<LockAnswers, Failure> {
        self.verify()?;
        let Some(Open { database, witness, lock_witness, doorbell, .. }) = &mut self.open else {
            return Err(Failure::permanent("no elector is connected", "connect one first"));
        };
        let own = self.members.keys().copied().collect();
        let mut eyes = Eyes { witness, locks: lock_witness, own };
        let Executed { answers, told } = locks::execute(database, &mut eyes, &mut self.members, batch, call)
            .map_err(|failure| database.explain(failure))?;
        if told.iter().any(|(elector, _)| !self.members.contains_key(elector)) {
            // Those who do not hear it ask by themselves.
            let _ = doorbell.ring();
        }
        tell_free(&self.members, &told);
        bury(database, witness);
        self.verify()?;
        Ok(answers)
    }

    fn execute_ticks(&mut self, batch: &TickBatch, call: &Call<TickAnswers>) -> Result<TickAnswers, Failure> {
        self.verify()?;
        let Some(Open { database, lock_witness, .. }) = &mut self.open else {
            return Err(Failure::permanent("no elector is connected", "connect one first"));
        };
        let answers =
            ticks::execute(database, lock_witness, batch, call).map_err(|failure| database.explain(failure))?;
        self.verify()?;
        Ok(answers)
    }

    /// Tells the others what a member does.
    fn describe(&mut self, incarnation: Incarnation, groups: &BTreeMap<GroupName, Vec<String>>) {
        let Some(member) = self.members.get_mut(&incarnation) else { return };
        if let Some(life) = &mut member.life {
            // As above.
            let _ = life.tell(&Card::new(&member.candidate, &member.program, groups));
        }
    }

    /// The database, for a look at it, and what was seen before.
    fn examined(&mut self) -> Result<(&mut Database, &Witness), Failure> {
        self.verify()?;
        match &mut self.open {
            Some(Open { database, witness, .. }) => Ok((database, witness)),
            None => Err(Failure::permanent("no elector is connected", "connect one first")),
        }
    }

    /// Whether the path still names the files that are open. Once it does not, it never does again: what other instances
    /// did meanwhile with another file is not known.
    fn verify(&mut self) -> Result<(), Failure> {
        if let (None, Some(open)) = (&self.lost, &self.open) {
            self.lost = open.database.verify().err();
            if self.lost.is_some() {
                // Who can lead no more is no reason for the users of the new file to wait.
                self.lingering.extend(self.members.values_mut().filter_map(Member::end_life));
            }
        }
        self.lost.clone().map_or(Ok(()), Err)
    }

    /// Tells the followers of an incarnation that has ended.
    fn ended(&mut self, incarnation: Incarnation) {
        if self.verify().is_err() {
            return;
        }
        let Some(Open { database, witness, lock_witness, .. }) = &mut self.open else { return };
        witness.ended(incarnation);
        let own = self.members.keys().copied().collect();
        let mut eyes = Eyes { witness, locks: lock_witness, own };
        tell_free(&self.members, &locks::heirs(database.reader(), &mut eyes, incarnation).unwrap_or_default());
        // If they cannot be read, followers find out when they ask.
        for group in groups_of(database.reader(), incarnation).unwrap_or_default() {
            announce(&self.members, &group, incarnation);
        }
        bury(database, witness);
    }

    /// Finds out what was released, and tells the followers.
    fn rung(&mut self) {
        let Some(Open { database, rung, .. }) = &self.open else { return };
        // Before the look: a ring that comes after it leads to another one.
        rung.store(false, Ordering::SeqCst);
        for (group, holder) in released(database.reader()).unwrap_or_default() {
            announce(&self.members, &group, holder);
        }
        for (elector, member) in &self.members {
            for nonce in locks::told(database.reader(), *elector).unwrap_or_default() {
                member.announcer.lock_free(nonce);
            }
        }
    }

    fn attempted(&self, batch: &Batch) -> String {
        let mut names: Vec<_> = batch.commands.iter().map(|command| command.op.name()).collect();
        names.sort_unstable();
        names.dedup();
        format!("{} on {}", names.join(", "), self.address)
    }
}

/// Tells all members that follow the group, but the one that held it.
fn announce(members: &HashMap<Incarnation, Member>, group: &GroupName, holder: Incarnation) {
    for (incarnation, member) in members {
        if *incarnation != holder && member.groups.contains(group) {
            member.announcer.released(group.clone());
        }
    }
}

/// Tells those of the members that it is worth asking again for a lock.
fn tell_free(members: &HashMap<Incarnation, Member>, told: &[(Incarnation, u128)]) {
    for (elector, nonce) in told {
        if let Some(member) = members.get(elector) {
            member.announcer.lock_free(*nonce);
        }
    }
}

/// Removes the lock files of ended incarnations that no row names any more.
fn bury(database: &Database, witness: &mut Witness) {
    for incarnation in witness.dead() {
        let leads = groups_of(database.reader(), incarnation).map_or(true, |groups| !groups.is_empty());
        let locks = locks::name(database.reader(), incarnation).unwrap_or(true);
        if !leads && !locks {
            witness.bury(incarnation);
        }
    }
}
