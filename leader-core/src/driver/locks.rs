//! The locks of an elector: all attempts that handles, or the store, still have something to do with.
//!
//! They run beside the elections, on the same thread and in calls of their own: no lease waits for a lock. However many there
//! are, what is done at once is done for those that are due.

mod call;
mod ending;
mod entry;
pub(super) mod report;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};

use self::call::{BATCH, Done, Member};
use self::entry::Entry;
use super::report::Reporter;
use crate::clock::BootInstant;
use crate::error::StoreError;
use crate::lease::Term;
use crate::lock::machine::{Event, Failure, Machine, Notice, Span};
use crate::lock::mail::{Attempt, Mail, Reply};
use crate::lock::{Cell, LockError};
use crate::shared::Shared;
use crate::store::Announcement;

/// So many questions of handles are taken in at once.
const MAIL: usize = 1024;
/// So many calls of the store are under way at most; what comes due meanwhile shares the next ones. So a crowd of locks holds
/// up the store for no longer than these take, and none of them spends its time in the crowd.
const CALLS: usize = 4;

pub(super) struct Locks {
    shared: Arc<Shared>,
    reporter: Reporter,
    inbox: mpsc::UnboundedReceiver<Mail>,
    read: Vec<Mail>,
    entries: HashMap<u128, Entry>,
    /// By the instant at which something has to be done, and by the one from which it may be.
    latest: BTreeSet<(BootInstant, u128)>,
    earliest: BTreeSet<(BootInstant, u128)>,
    /// Those that are held, by their deadline.
    deadlines: BTreeSet<(BootInstant, u128)>,
    calls: JoinSet<Done>,
    in_flight: HashMap<Id, Vec<Member>>,
    /// The largest token that was seen, of any lock.
    floor: Term,
    /// How many are held or waited for by a handle, and how many are being given back.
    in_use: usize,
    leaving: usize,
    /// The elector ends: nothing is renewed or begun any more.
    closed: bool,
    /// What the log was told of the store, and the store has not answered since.
    told: Vec<StoreError>,
}

/// What there is to take in.
pub(super) enum Happened {
    Called(Box<Result<(Id, Done), JoinError>>),
    Asked,
}

impl Locks {
    /// # Panics
    /// If the elector has a driver already.
    pub(super) fn new(shared: Arc<Shared>, reporter: Reporter) -> Self {
        let inbox = shared.locks.take_inbox().expect("an elector has one driver");
        Self {
            shared,
            reporter,
            inbox,
            read: Vec::new(),
            entries: HashMap::new(),
            latest: BTreeSet::new(),
            earliest: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            calls: JoinSet::new(),
            in_flight: HashMap::new(),
            floor: Term::default(),
            in_use: 0,
            leaving: 0,
            closed: false,
            told: Vec::new(),
        }
    }

    /// Waits until there is something to [`take_in`](Self::take_in).
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub(super) async fn happened(&mut self) -> Happened {
        tokio::select! {
            biased;
            Some(done) = self.calls.join_next_with_id() => Happened::Called(Box::new(done)),
            // The elector itself holds a sender: it is never closed.
            _ = self.inbox.recv_many(&mut self.read, MAIL) => Happened::Asked,
        }
    }

    pub(super) fn take_in(&mut self, happened: Happened) {
        let now = self.now();
        match happened {
            Happened::Called(done) => self.finished(now, *done),
            Happened::Asked => {
                for mail in std::mem::take(&mut self.read) {
                    self.mail(now, mail);
                }
            }
        }
    }

    /// Takes in what handles have asked so far.
    fn read_on(&mut self) {
        let now = self.now();
        while let Ok(mail) = self.inbox.try_recv() {
            self.mail(now, mail);
        }
    }

    fn now(&self) -> BootInstant {
        self.shared.clock.now()
    }

    /// Does everything that is due. `away`: why the store cannot be asked yet.
    pub(super) fn advance(&mut self, now: BootInstant, away: Option<&StoreError>) {
        // First what needs no call: a lock ends at its deadline, however busy the store is.
        while let Some((at, nonce)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            let mut notices = Vec::new();
            if let Some(entry) = self.entries.get_mut(&nonce) {
                entry.machine.let_time_pass(now, &mut notices);
            }
            self.settle(nonce, now, notices, None);
            self.deadlines.remove(&(at, nonce));
        }
        let mut requests = Vec::new();
        for nonce in self.take_due(now, self.room()) {
            let Some(entry) = self.entries.get_mut(&nonce) else { continue };
            let mut notices = Vec::new();
            let request = entry.machine.poll(now, self.floor, &mut notices);
            match (request, away) {
                (Some(request), Some(away)) => {
                    let unsent = Event::Failed(request.no, Failure::Unsent);
                    entry.machine.handle(now, unsent, &mut notices);
                    entry.long_wait(now, Some(away)).into_iter().for_each(|report| self.reporter.send_lock(report));
                }
                (Some(request), None) => requests.push((nonce, request)),
                (None, _) => {}
            }
            self.settle(nonce, now, notices, away);
        }
        self.send(now, requests);
    }

    /// How many commands can be sent now.
    fn room(&self) -> usize {
        CALLS.saturating_sub(self.in_flight.len()) * BATCH
    }

    pub(super) fn next_wake(&self) -> Option<BootInstant> {
        // Without room, the end of a call is the next event.
        let first = if self.room() > 0 { self.latest.first() } else { self.deadlines.first() };
        first.map(|(at, _)| *at)
    }

    /// Those that have to be looked at now, and then those that may be, so that they share a call: `most` at most, and what
    /// gives back or keeps a lock before what asks for one.
    fn take_due(&mut self, now: BootInstant, most: usize) -> Vec<u128> {
        if most == 0 || self.latest.first().is_none_or(|(at, _)| now < *at) {
            return Vec::new();
        }
        let up_to_now = ..=(now, u128::MAX);
        let of =
            |set: &BTreeSet<(BootInstant, u128)>| set.range(up_to_now).map(|(_, nonce)| *nonce).collect::<Vec<_>>();
        // What has to be done now stands in both, unless its time was chosen before the earliest one.
        let mut due = of(&self.latest);
        due.extend(of(&self.earliest));
        let (asking, mut first): (Vec<u128>, Vec<u128>) =
            due.into_iter().partition(|nonce| self.entries.get(nonce).is_some_and(|entry| entry.machine.is_waiting()));
        first.extend(asking);
        let mut due = Vec::with_capacity(most.min(first.len()));
        for nonce in first {
            if due.len() == most {
                break;
            }
            if self.unschedule(nonce) {
                due.push(nonce);
            }
        }
        due
    }

    /// Whether it was scheduled.
    fn unschedule(&mut self, nonce: u128) -> bool {
        let Some(entry) = self.entries.get_mut(&nonce) else { return false };
        let Some(span) = entry.span.take() else { return false };
        self.latest.remove(&(entry.chosen, nonce));
        self.earliest.remove(&(span.earliest, nonce));
        true
    }

    /// The store has announced something.
    pub(super) fn announced(&mut self, announcement: &Announcement) {
        let now = self.now();
        match announcement {
            Announcement::Released(_) | Announcement::Examine => {}
            Announcement::LockFree { nonce } => self.handle(*nonce, now, Event::Announced),
            Announcement::Gap => {
                // Something may have been missed; and the store is there again for what it has failed at.
                let machines = self.entries.iter().map(|(nonce, entry)| (*nonce, &entry.machine));
                let concerned = machines.filter(|(_, machine)| machine.is_waiting() || machine.is_retrying());
                let concerned: Vec<u128> = concerned.map(|(nonce, _)| nonce).collect();
                concerned.into_iter().for_each(|nonce| self.handle(nonce, now, Event::Announced));
            }
        }
    }

    fn mail(&mut self, now: BootInstant, mail: Mail) {
        match mail {
            Mail::Acquire(attempt) => self.begin(now, attempt),
            Mail::Leave { cell, reply } => match self.entries.get_mut(&cell.owner.nonce) {
                Some(entry) => {
                    entry.has_handle = false;
                    entry.left = reply;
                    // Whoever waited for it has gone.
                    entry.acquired = None;
                    self.handle(cell.owner.nonce, now, Event::Leave);
                }
                None => answer(reply, Err(lost(&cell))),
            },
            Mail::Complete { cell, keep, reply } => match self.entries.get_mut(&cell.owner.nonce) {
                Some(entry) => {
                    entry.completed = Some(reply);
                    self.handle(cell.owner.nonce, now, Event::Complete(keep));
                }
                None => answer(Some(reply), Err(lost(&cell))),
            },
            Mail::Forget { key, reply } => self.forget(now, key, reply),
        }
    }

    fn begin(&mut self, now: BootInstant, attempt: Attempt) {
        let Attempt { cell, rules, inside_work, reply } = attempt;
        if self.closed {
            return answer(Some(reply), Err(stopped(&cell)));
        }
        let nonce = cell.owner.nonce;
        let entry = Entry {
            machine: Machine::new(cell.key.clone(), cell.owner.clone(), rules, now),
            cell,
            inside_work,
            has_handle: true,
            deadline: None,
            counted: (false, false),
            span: None,
            chosen: now,
            acquired: Some(reply),
            left: None,
            completed: None,
            trouble: None,
            taken: false,
            waiting_told: false,
        };
        self.entries.insert(nonce, entry);
        self.settle(nonce, now, Vec::new(), None);
    }

    fn handle(&mut self, nonce: u128, now: BootInstant, event: Event) {
        self.handle_with(nonce, now, event, None);
    }

    /// `error`: what the event is about, if it is a failure.
    fn handle_with(&mut self, nonce: u128, now: BootInstant, event: Event, error: Option<&StoreError>) {
        if let Some(entry) = self.entries.get_mut(&nonce) {
            let mut notices = Vec::new();
            let came_back = matches!(event, Event::Answered(..) | Event::Failed(..));
            entry.machine.handle(now, event, &mut notices);
            if came_back {
                entry.trouble = error.cloned();
                entry.long_wait(now, error).into_iter().for_each(|report| self.reporter.send_lock(report));
            }
            self.settle(nonce, now, notices, error);
        }
    }

    /// After each step of a machine: first the view, then the telling, then when to come back. `error`: what went wrong, if
    /// something did.
    fn settle(&mut self, nonce: u128, now: BootInstant, notices: Vec<Notice>, error: Option<&StoreError>) {
        self.unschedule(nonce);
        let Some(entry) = self.entries.get_mut(&nonce) else { return };
        let view = entry.machine.view(now);
        let deadline = view.map(|(_, deadline)| deadline);
        if let Some((token, deadline)) = view {
            entry.cell.hold(token, deadline);
        }
        if deadline != entry.deadline {
            self.deadlines.extend(deadline.map(|at| (at, nonce)));
            if let Some(before) = std::mem::replace(&mut entry.deadline, deadline) {
                self.deadlines.remove(&(before, nonce));
            }
        }
        for notice in notices {
            if let Some(report) = entry.tell(notice, error, &self.shared.address) {
                self.reporter.send_lock(report);
            }
        }
        let (was_in_use, was_leaving) = entry.counted;
        let gone = entry.machine.is_gone();
        entry.counted = if gone { (false, false) } else { (entry.is_in_use(), entry.machine.is_taking_leave()) };
        let (in_use, leaving) = entry.counted;
        self.in_use = self.in_use + usize::from(in_use) - usize::from(was_in_use);
        self.leaving = self.leaving + usize::from(leaving) - usize::from(was_leaving);
        if gone {
            self.entries.remove(&nonce);
        } else if let Some(span) = entry.machine.next() {
            entry.span = Some(span);
            entry.chosen = chosen(span);
            self.latest.insert((entry.chosen, nonce));
            self.earliest.insert((span.earliest, nonce));
        }
    }
}

fn answer<T>(reply: Option<Reply<T>>, outcome: Result<T, LockError>) {
    if let Some(reply) = reply {
        // The asker may have gone.
        let _ = reply.send(outcome);
    }
}

fn lost(cell: &Cell) -> LockError {
    LockError::Lost { key: cell.key.clone(), token: cell.token() }
}

fn stopped(cell: &Cell) -> LockError {
    LockError::Stopped { key: cell.key.clone() }
}

fn chosen(span: Span) -> BootInstant {
    let width = span.latest.saturating_since(span.earliest);
    let nanos = u64::try_from(width.as_nanos()).unwrap_or(u64::MAX);
    span.earliest.saturating_add(Duration::from_nanos(fastrand::u64(..=nanos)))
}
