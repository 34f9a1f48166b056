//! The thread that runs all elections of one elector against its store, and beside them its locks.
//!
//! It has its own single-threaded runtime, so that user work which blocks every worker costs no lease, and it calls no
//! foreign code but the store's: what there is to log goes to the reporter, and what a store logs by `tracing` goes nowhere.
//! It keeps at most one request a group in flight, and sends none twice. If it dies, every view runs out by itself.

mod call;
mod control;
mod doctor;
mod drain;
mod locks;
pub(crate) mod report;
mod schedule;
mod ticks;

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tracing::Dispatch;

use crate::cell::{Cell, Sighting};
use crate::clock::BootInstant;
use crate::election::{Election, Event, Failure, Notice, RequestNo, Rules};
use crate::error::StoreError;
use crate::lease::Term;
use crate::shared::{Phase, Shared};
use crate::store::{Announcement, Announcer};

use call::{Call, Done};
pub(crate) use control::Control;
use doctor::Examining;
use drain::Drain;
use locks::Locks;
use report::{Report, Reporter};
use schedule::Schedule;
use ticks::Ticks;

pub(crate) struct Driver {
    shared: Arc<Shared>,
    groups: Vec<Group>,
    schedule: Schedule,
    locks: Locks,
    ticks: Ticks,
    control: mpsc::UnboundedReceiver<Control>,
    announcements: mpsc::UnboundedReceiver<Announcement>,
    announcer: Announcer,
    reporter: Reporter,
    idle: Arc<Notify>,
    calls: JoinSet<Done>,
    /// What each call in flight is about, for the case that it panics.
    in_flight: HashMap<tokio::task::Id, Call>,
    connection: Connection,
    failed_connects: u32,
    examining: Examining,
    /// Up to which change of the jobs the store was told.
    described: u64,
    start_deadline: Option<BootInstant>,
    /// The end of a start that has to wait for the store's quarantine.
    patient_start_deadline: BootInstant,
    drain: Option<Drain>,
    waiting_drains: VecDeque<Drain>,
    held: usize,
    shutting_down: bool,
    ending: bool,
}

struct Group {
    cell: Arc<Cell>,
    election: Election,
    published: Option<(Term, BootInstant)>,
    settled: bool,
    failing: bool,
    /// The lasting error that was logged and has not gone since.
    refused: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Connection {
    Wanted { at: BootInstant },
    Connecting,
    Connected,
}

/// What a driver starts with.
pub(crate) struct Setup {
    pub(crate) shared: Arc<Shared>,
    pub(crate) rules: Rules,
    /// Of each group, whether it is only observed.
    pub(crate) observed: Vec<bool>,
    pub(crate) control: mpsc::UnboundedReceiver<Control>,
    /// Rung when work has ended.
    pub(crate) idle: Arc<Notify>,
    pub(crate) reporter: Reporter,
}

/// Runs the driver on the current thread until its elector ends.
pub(crate) fn run(setup: Setup) {
    let (shared, reporter) = (Arc::clone(&setup.shared), setup.reporter.clone());
    // A subscriber may write to a pipe that nobody reads, and whoever logs stands still then.
    let _no_logs = tracing::dispatcher::set_default(&Dispatch::none());
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = built.map_err(|error| error.to_string()).and_then(|runtime| {
        let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(live(setup))));
        // Without waiting for what stores have on other threads: to look up a name can take minutes.
        runtime.shutdown_background();
        outcome.map_err(|panic| describe_panic(panic.as_ref()))
    });
    if let Err(panic) = outcome {
        for cell in shared.cells.values() {
            cell.follow();
            cell.stop();
        }
        reporter.send(Report::DriverDied { panic });
        shared.set_phase(Phase::Dead);
    }
}

/// Runs the driver on the current runtime until its elector ends.
async fn live(setup: Setup) {
    // It is the only one to set it.
    let _ = setup.shared.runtime.set(tokio::runtime::Handle::current());
    Driver::new(setup).live().await;
}

fn describe_panic(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

impl Driver {
    fn new(setup: Setup) -> Self {
        let Setup { shared, rules, observed, control, idle, reporter } = setup;
        let now = shared.clock.now();
        let group = |(cell, observe): (&Arc<Cell>, &bool)| {
            let rules = Rules { observe: *observe, ..rules.clone() };
            let election = Election::new(cell.group.clone(), shared.candidate.clone(), rules, now);
            let (published, settled, failing, refused) = (None, false, false, None);
            Group { cell: Arc::clone(cell), election, published, settled, failing, refused }
        };
        let groups: Vec<Group> = shared.cells.values().zip(&observed).map(group).collect();
        let (announcer, announcements) = Announcer::new();
        Self {
            schedule: Schedule::new(groups.len()),
            locks: Locks::new(Arc::clone(&shared), reporter.clone()),
            ticks: Ticks::new(Arc::clone(&shared)),
            groups,
            control,
            announcements,
            announcer,
            reporter,
            idle,
            calls: JoinSet::new(),
            in_flight: HashMap::new(),
            connection: Connection::Wanted { at: now },
            failed_connects: 0,
            examining: Examining::default(),
            described: 0,
            start_deadline: Some(now.saturating_add(shared.timing.start_timeout)),
            patient_start_deadline: now.saturating_add(shared.timing.quarantined_start),
            drain: None,
            waiting_drains: VecDeque::new(),
            held: 0,
            shutting_down: false,
            ending: false,
            shared,
        }
    }

    async fn live(mut self) {
        self.look_around();
        let idle = Arc::clone(&self.idle);
        let clock = self.shared.clock.clone();
        loop {
            let now = self.shared.clock.now();
            self.advance(now);
            if self.ending {
                break;
            }
            let wake = self.next_wake(now);
            tokio::select! {
                biased;
                Some(done) = self.calls.join_next_with_id() => self.finished(done),
                control = self.control.recv(), if !self.shutting_down => match control {
                    Some(control) => self.control(control),
                    // The last handle is gone.
                    None => self.begin_shutdown(std::time::Duration::ZERO),
                },
                Some(announcement) = self.announcements.recv() => self.announced(&announcement),
                happened = self.locks.happened() => self.locks.take_in(happened),
                () = self.ticks.happened() => {}
                () = self.shared.jobs.changed() => {}
                () = idle.notified() => {}
                () = clock.sleep_until(wake) => {}
            }
        }
        self.end().await;
    }

    /// Does everything that is due.
    fn advance(&mut self, now: BootInstant) {
        if matches!(self.connection, Connection::Wanted { at } if at <= now) {
            self.connect();
        }
        self.continue_drain(now);
        self.check_start(now);
        if self.connection != Connection::Connected {
            let away = self.not_reached("a lock");
            self.locks.advance(now, Some(&away));
            self.ticks.advance(Some(&away));
            return;
        }
        let mut requests = Vec::new();
        for index in self.schedule.take_due(now, self.shared.timing.heartbeat) {
            let mut notices = Vec::new();
            let request = self.groups[index].election.poll(now, &mut notices);
            self.settle(index, now, notices);
            requests.extend(request.map(|request| (index, request)));
        }
        self.send(now, requests);
        self.locks.advance(now, None);
        self.ticks.advance(None);
        self.describe_if_changed(now);
        self.examine_if_due(now);
    }

    /// `now` must be what [`advance`](Self::advance) was given: what came due since then has not been looked at.
    fn next_wake(&self, now: BootInstant) -> BootInstant {
        let elections = if self.connection == Connection::Connected { self.schedule.first() } else { None };
        let connect = match self.connection {
            Connection::Wanted { at } => Some(at),
            _ => None,
        };
        let drain = self.drain.as_ref().and_then(|drain| drain.deadline(now));
        let all = [elections, connect, drain, self.start_deadline, self.examining.due(), self.locks.next_wake()];
        all.into_iter().flatten().min().unwrap_or(BootInstant::from_nanos(u64::MAX))
    }

    /// Why nothing can be asked of the store.
    fn not_reached(&self, what: &str) -> StoreError {
        let attempted = format!("{what} on {}", self.shared.address);
        let cause = "the store has not been reached yet".to_owned();
        let last = self.shared.progress.borrow().last_error.clone();
        last.unwrap_or(StoreError::Unavailable { attempted, cause })
    }

    fn announced(&mut self, announcement: &Announcement) {
        self.locks.announced(announcement);
        let now = self.shared.clock.now();
        let which: Vec<usize> = match announcement {
            Announcement::Gap => (0..self.groups.len()).collect(),
            Announcement::LockFree { .. } => Vec::new(),
            Announcement::Examine => return self.examine_again(now),
            // In the order of the names, as the cells are: a fleet may release very many at once.
            Announcement::Released(group) => {
                self.groups.binary_search_by(|known| known.cell.group.cmp(group)).into_iter().collect()
            }
        };
        for index in which {
            self.handle(index, now, Event::Announced);
        }
    }

    fn handle(&mut self, index: usize, now: BootInstant, event: Event) {
        let mut notices = Vec::new();
        self.groups[index].election.handle(now, event, &mut notices);
        self.settle(index, now, notices);
    }

    /// After each step of an election: first the view, then the telling, then when to come back.
    fn settle(&mut self, index: usize, now: BootInstant, mut notices: Vec<Notice>) {
        let group = &mut self.groups[index];
        let mut view = group.election.view(now);
        // This thread may have stood still since `now`. What was seen to end does not come back under its term.
        if let (Some((term, until)), Some((next, _))) = (group.published, view)
            && term == next
            && until <= self.shared.clock.now()
        {
            group.election.handle(now, Event::Lapsed, &mut notices);
            view = None;
        }
        if view != group.published {
            match view {
                Some((term, deadline)) => group.cell.lead(term, deadline, group.election.unbroken_since()),
                None => group.cell.follow(),
            }
            self.held = self.held + usize::from(view.is_some()) - usize::from(group.published.is_some());
            group.published = view;
        }
        for notice in notices {
            self.tell(index, now, notice);
        }
        let group = &mut self.groups[index];
        if !group.settled && group.election.is_settled() {
            group.settled = true;
            self.shared.progress.send_modify(|p| p.settled += 1);
        }
        group.cell.set_abstaining(group.election.is_abstaining());
        let most = self.shared.timing.spread;
        self.schedule.set(index, group.election.next(), self.held, most);
    }

    fn tell(&mut self, index: usize, now: BootInstant, notice: Notice) {
        let cell = &self.groups[index].cell;
        let group = cell.group.clone();
        let report = match notice {
            Notice::Acquired(term) => {
                cell.tell_acquired(term);
                Report::Acquired { group, term }
            }
            Notice::Lost(term, reason) => {
                cell.tell_lost(term, reason);
                Report::Lost { group, term, reason }
            }
            Notice::Released(term, confirmed) => {
                self.drain.iter_mut().for_each(|drain| drain.released(index, &group, confirmed));
                Report::Released { group, term, confirmed }
            }
            Notice::Following(held) => {
                let until = now.saturating_add(held.remaining);
                let leader = Sighting { id: held.holder.clone(), term: held.term, until };
                if !cell.tell_following(leader, held.remaining) {
                    return;
                }
                self.examine_again(now);
                Report::Following { group, leader: held.holder, remaining: held.remaining }
            }
            Notice::Vacant => return cell.forget_leader(),
            Notice::Quarantined(remaining, reason) => {
                let news = cell.set_problem(Some(reason));
                self.wait_for_quarantine(now.saturating_add(remaining));
                if !news {
                    return;
                }
                Report::Quarantined { group, remaining, reason }
            }
            Notice::Duplicate => {
                cell.set_problem(Some(
                    "another process with this instance id leads; this one stays out until restarted",
                ));
                cell.tell_duplicate();
                Report::Duplicate { group }
            }
        };
        self.reporter.send(report);
    }

    /// A request of a group got no answer. Returns whether that is for the log: an error that does not pass by itself is
    /// there once, and not again at each attempt.
    fn failed(&mut self, index: usize, now: BootInstant, no: RequestNo, error: &StoreError) -> bool {
        let group = &mut self.groups[index];
        let text = error.to_string();
        let was_failing = std::mem::replace(&mut group.failing, true);
        group.cell.set_problem(Some(&text));
        // An outage is told of when it begins, and when it is over.
        let known = if error.is_permanent() { group.refused.as_ref() == Some(&text) } else { was_failing };
        if error.is_permanent() {
            group.refused = Some(text);
        }
        let failure = if error.is_permanent() { Failure::Permanent } else { Failure::Passing };
        self.handle(index, now, Event::Failed(no, failure));
        !known
    }

    /// The first start of a fleet on a new store ends with a leader, and not a moment before there can be one.
    fn wait_for_quarantine(&mut self, end: BootInstant) {
        let timing = &self.shared.timing;
        let answered = end.saturating_add(timing.operation_timeout).saturating_add(timing.retry);
        if let Some(deadline) = &mut self.start_deadline {
            *deadline = (*deadline).max(answered.min(self.patient_start_deadline));
        }
    }

    /// The start is over when every group's leader is known, or its time is.
    fn check_start(&mut self, now: BootInstant) {
        let Some(deadline) = self.start_deadline else { return };
        let all = self.groups.iter().all(|g| g.settled);
        if !all && now < deadline {
            return;
        }
        self.start_deadline = None;
        let reached = self.connection == Connection::Connected && self.shared.progress.borrow().contact;
        if self.shared.require_store && !reached {
            self.shared.set_phase(Phase::Unreachable);
            self.ending = true;
        } else {
            self.shared.set_phase(Phase::Running);
        }
    }

    /// The end of the thread. What is still held runs out by itself, and only then the store may forget us: work that
    /// outlived the grace goes on under its lease.
    async fn end(mut self) {
        self.calls.shutdown().await;
        // Whoever asked too late is told by the loss of the question, and not only when the last lease has run out.
        self.in_flight.clear();
        self.examining = Examining::default();
        self.control.close();
        while self.control.try_recv().is_ok() {}
        self.ticks.close();
        for group in &self.groups {
            group.cell.stop();
        }
        self.shared.ungated.close();
        self.shared.owed.close();
        self.locks.close();
        let last = self.groups.iter().filter_map(|g| g.published.map(|(_, deadline)| deadline)).max();
        let drain = self.drain.take();
        if last.is_none() && self.locks.is_empty() {
            self.disconnect().await;
            self.tell_ended(drain);
            return;
        }
        self.tell_ended(drain);
        let connected = self.connection == Connection::Connected;
        let (groups, clock) = (&self.groups, self.shared.clock.clone());
        let leases = async move {
            if let Some(last) = last {
                clock.sleep_until(last).await;
                groups.iter().for_each(|group| group.cell.follow());
            }
        };
        tokio::join!(self.locks.outlive(connected), leases);
        self.disconnect().await;
    }

    fn tell_ended(&self, drain: Option<Drain>) {
        self.reporter.send(Report::Stopped);
        let outcome = drain.map(|drain| drain.end(&self.groups, &self.shared, &self.locks));
        self.shared.progress.send_modify(|p| {
            p.phase = p.phase.max(Phase::Stopped);
            p.outcome = outcome;
        });
    }

    async fn disconnect(&self) {
        let patience = self.shared.timing.operation_timeout;
        let (store, incarnation) = (Arc::clone(&self.shared.store), self.shared.candidate.incarnation);
        // In a task of its own, like every call: a store that panics does not make a clean end a death.
        let farewell = tokio::spawn(async move { store.disconnect(incarnation).await });
        // Whatever it says: nobody is left to act on it, and leases end by themselves.
        let _ = tokio::time::timeout(patience, farewell).await;
    }
}

#[cfg(test)]
mod paused;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NotLive;
    use crate::store::MemoryStore;
    use crate::{Config, Elector};

    #[tokio::test]
    async fn when_the_driver_dies_the_view_has_ended_and_health_is_red() {
        let elector = Elector::start(Config::with_store(MemoryStore::new())).await.unwrap();
        let lease = elector.lease("default").unwrap();
        let mut events = elector.subscribe("default").unwrap();
        let lock = elector.lock("k").acquire().await.unwrap();
        elector.0.control.send(Control::Panic).unwrap();
        lease.lost().await;
        lock.lost().await;
        assert!(!lock.is_held() && elector.lock("another").acquire().await.is_err());
        assert!(lock.release().await.is_err());
        while events.next().await.is_some() {}
        assert!(!elector.is_leader("default"));
        elector.shutdown(std::time::Duration::ZERO).await.unwrap();
        assert_eq!(elector.live(), Err(NotLive::DriverDead));
        assert!(elector.ready().is_err() && !elector.status().problems.is_empty());
    }
}
