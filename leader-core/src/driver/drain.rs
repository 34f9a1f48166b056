//! Giving leases back in order: no new work starts, the work that runs is asked to end, and only when it has ended the
//! lease is released. Whoever outlives the grace keeps the lease: we never cause an overlap ourselves.

use std::time::Duration;

use tokio::sync::oneshot;

use super::locks::Locks;
use super::report::Report;
use super::{Driver, Group};
use crate::clock::BootInstant;
use crate::election::Event;
use crate::error::DrainError;
use crate::group::GroupName;
use crate::shared::{Phase, Shared};
use crate::work::RunningWork;

type Reply = oneshot::Sender<Result<bool, DrainError>>;

/// What becomes of a group once its work has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Abstain for a ttl.
    StepDown,
    /// Stay out until resumed.
    StandAside,
    /// The elector ends.
    Withdraw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Work is running.
    Busy,
    /// The release is on its way.
    Leaving,
    Left,
}

/// So many operation time-outs has the ledger of ticks to be told what is left, once there is nothing else to wait for: a store
/// that is down would hold up an end without work for the whole grace.
const TELLING: u32 = 3;

/// One request to give leases back.
#[derive(Debug)]
pub(super) struct Drain {
    /// By index, in order.
    groups: Vec<(usize, Stage)>,
    then: Then,
    grace_ends: BootInstant,
    /// Cancelled work has until then to be dropped by its runtime; set when the grace is over.
    patience_ends: Option<BootInstant>,
    reply: Option<Reply>,
    began: bool,
    hurried: bool,
    released: bool,
    unconfirmed: Vec<GroupName>,
}

impl Drain {
    pub(super) fn new(groups: Vec<usize>, then: Then, grace_ends: BootInstant, reply: Option<Reply>) -> Self {
        let groups = groups.into_iter().map(|group| (group, Stage::Busy)).collect();
        let (began, hurried, released) = (false, false, false);
        Self { groups, then, grace_ends, patience_ends: None, reply, began, hurried, released, unconfirmed: Vec::new() }
    }

    /// When to look again though nothing happens; once both times have passed, only events move it on.
    pub(super) fn deadline(&self, now: BootInstant) -> Option<BootInstant> {
        let asked = self.reply.is_some() || self.then == Then::Withdraw;
        let ends = self.patience_ends.unwrap_or(self.grace_ends);
        (asked && now < ends).then_some(ends)
    }

    /// Nothing but a call of the store is waited for: until then.
    fn hurry(&mut self, until: BootInstant) {
        if !std::mem::replace(&mut self.hurried, true) {
            self.grace_ends = self.grace_ends.min(until);
        }
    }

    /// The store has answered a release.
    pub(super) fn released(&mut self, index: usize, group: &GroupName, confirmed: bool) {
        // In order, so that very many releases do not each walk over all.
        let found = self.groups.binary_search_by_key(&index, |(known, _)| *known);
        if found.is_ok_and(|at| self.groups[at].1 == Stage::Leaving) {
            self.released |= confirmed;
            if !confirmed {
                self.unconfirmed.push(group.clone());
            }
        }
    }

    fn outcome(&self) -> Result<bool, DrainError> {
        if self.unconfirmed.is_empty() {
            return Ok(self.released);
        }
        let cause = "the log says why".to_owned();
        Err(DrainError::Unconfirmed { groups: self.unconfirmed.clone(), cause })
    }

    /// The elector ends: tells the asker what there is to tell.
    pub(super) fn end(self, groups: &[Group], shared: &Shared, locks: &Locks) -> Result<bool, DrainError> {
        let running = still_running(&self, groups, shared, locks);
        if running.is_empty() { self.outcome() } else { Err(DrainError::StillRunning { running }) }
    }
}

fn still_running(drain: &Drain, groups: &[Group], shared: &Shared, locks: &Locks) -> Vec<RunningWork> {
    let mut running: Vec<_> = drain.groups.iter().flat_map(|(index, _)| groups[*index].cell.work.running()).collect();
    if drain.then == Then::Withdraw {
        running.extend(shared.ungated.running());
        running.extend(shared.owed.running());
        running.extend(locks.running());
    }
    running
}

impl Driver {
    /// One at a time, in the order they were asked for.
    pub(super) fn begin_drain(&mut self, drain: Drain) {
        self.waiting_drains.push_back(drain);
    }

    /// Comes before any other drain: the elector ends.
    pub(super) fn begin_shutdown(&mut self, grace: Duration) {
        let grace_ends = self.shared.clock.now().saturating_add(grace);
        let all = (0..self.groups.len()).collect();
        let shutdown = Drain::new(all, Then::Withdraw, grace_ends, None);
        self.start_deadline = None;
        self.shared.set_phase(Phase::Ending);
        self.locks.stop_waiting();
        // Whoever waits for another drain learns that the elector has ended, from its dropped reply.
        self.waiting_drains.clear();
        self.drain = Some(shutdown);
        // A second shutdown waits for the end of this one by itself.
        self.control.close();
        self.shutting_down = true;
    }

    pub(super) fn resume(&mut self, now: BootInstant) {
        let ended = self.drain.take().into_iter().chain(std::mem::take(&mut self.waiting_drains));
        for reply in ended.filter_map(|drain| drain.reply) {
            // The asker may have gone.
            let _ = reply.send(Err(DrainError::Resumed));
        }
        for index in 0..self.groups.len() {
            self.reopen(index);
            self.handle(index, now, Event::Resume);
        }
    }

    /// Moves the current drain on, as far as it goes.
    pub(super) fn continue_drain(&mut self, now: BootInstant) {
        loop {
            // One whose asker has been answered waits in the background for the work that is left; others come before it.
            if self.drain.as_ref().is_none_or(|d| d.reply.is_none() && d.then != Then::Withdraw)
                && let Some(next) = self.waiting_drains.pop_front()
            {
                let only_a_step_down = next.then == Then::StepDown;
                // A drain of all groups takes the place of the one in the background; a step-down only comes before it.
                let background = self.drain.replace(next).filter(|_| only_a_step_down);
                self.waiting_drains.extend(background);
            }
            let Some(mut drain) = self.drain.take() else { return };
            self.step(&mut drain, now);
            let left = drain.groups.iter().all(|(_, stage)| *stage == Stage::Left);
            let Shared { ungated, owed, .. } = &*self.shared;
            let (told, ended) = (owed.is_idle(), ungated.is_idle() && self.locks.are_quiet());
            if left && ended && !told {
                let telling = self.shared.timing.operation_timeout.saturating_mul(TELLING);
                drain.hurry(now.saturating_add(telling));
            }
            let quiet = told && ended;
            if left && (quiet || drain.then != Then::Withdraw) {
                if drain.then == Then::Withdraw {
                    self.ending = true;
                    self.drain = Some(drain);
                    return;
                }
                self.complete(drain);
                continue;
            }
            self.enforce_grace(&mut drain, now);
            if drain.reply.is_none() && drain.then == Then::StepDown {
                continue;
            }
            self.drain = Some(drain);
            return;
        }
    }

    fn step(&mut self, drain: &mut Drain, now: BootInstant) {
        if !drain.began {
            drain.began = true;
            for (index, _) in &drain.groups {
                let cell = &self.groups[*index].cell;
                cell.work.close();
                if let Some(acquisition) = cell.acquisition() {
                    acquisition.begin_drain();
                }
            }
            if drain.then == Then::Withdraw {
                self.shared.ungated.close();
                self.shared.owed.close();
            }
        }
        for at in 0..drain.groups.len() {
            let (index, stage) = drain.groups[at];
            if stage == Stage::Busy && self.groups[index].cell.work.is_idle() {
                drain.groups[at].1 = Stage::Leaving;
                let event = match drain.then {
                    Then::StepDown => Event::StepDown,
                    Then::StandAside => Event::StandAside,
                    Then::Withdraw => Event::Withdraw,
                };
                self.handle(index, now, event);
            }
            let quiet = self.groups[index].election.is_quiet();
            if drain.groups[at].1 == Stage::Leaving && quiet {
                drain.groups[at].1 = Stage::Left;
            }
        }
    }

    /// Work that may be cancelled is dropped when the grace is over; other work ends the drain.
    fn enforce_grace(&mut self, drain: &mut Drain, now: BootInstant) {
        if now < drain.grace_ends || drain.reply.is_none() && drain.then != Then::Withdraw {
            return;
        }
        let patience = self.shared.timing.operation_timeout;
        let busy = drain.groups.iter().filter(|(_, stage)| *stage == Stage::Busy);
        let must_finish = busy.clone().any(|(index, _)| self.groups[*index].cell.work.must_finish())
            || drain.then == Then::Withdraw && (self.shared.ungated.must_finish() || self.locks.must_finish());
        // A step-down that other work prevents leaves everything as it was.
        let in_vain = must_finish && drain.then == Then::StepDown;
        if drain.patience_ends.is_none() && !in_vain {
            for (index, _) in busy.clone() {
                if let Some(acquisition) = self.groups[*index].cell.acquisition() {
                    acquisition.cancel();
                }
            }
            if drain.then == Then::Withdraw {
                self.locks.cancel();
            }
        }
        let patience_ends = *drain.patience_ends.get_or_insert(now.saturating_add(patience));
        // A release that is on its way ends by itself, by the operation time-out.
        let leaving = drain.groups.iter().any(|(_, stage)| *stage == Stage::Leaving)
            || drain.then == Then::Withdraw && self.locks.are_leaving();
        if leaving || (!must_finish && now < patience_ends) {
            return;
        }
        let running = still_running(drain, &self.groups, &self.shared, &self.locks);
        self.reporter.send(Report::StillRunning { what: names(&running) });
        match drain.then {
            // The leases stay in the store: their ttl is the last grace.
            Then::Withdraw => self.ending = true,
            Then::StepDown | Then::StandAside => {
                let busy: Vec<usize> = busy.map(|(index, _)| *index).collect();
                // Unless a drain in the background, which came first, keeps it closed.
                if drain.then == Then::StepDown && !self.waiting_drains.iter().any(|d| d.began) {
                    busy.into_iter().for_each(|index| self.reopen(index));
                }
                if let Some(reply) = drain.reply.take() {
                    // The asker may have gone.
                    let _ = reply.send(Err(DrainError::StillRunning { running }));
                }
            }
        }
    }

    fn complete(&mut self, mut drain: Drain) {
        // Who does not lead starts no work; when it leads again, it may.
        for (index, _) in &drain.groups {
            self.groups[*index].cell.work.open();
        }
        if let Some(reply) = drain.reply.take() {
            // The asker may have gone.
            let _ = reply.send(drain.outcome());
        }
    }

    fn reopen(&mut self, index: usize) {
        let cell = &self.groups[index].cell;
        // First, or work that begins at once would find itself cancelled.
        if let Some(acquisition) = cell.acquisition() {
            acquisition.abandon_drain();
        }
        cell.work.open();
    }
}

fn names(running: &[RunningWork]) -> String {
    running.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
