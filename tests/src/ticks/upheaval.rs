//! Faults as they strike, and how they pass.

use std::time::Duration;

use leader_core::BootInstant;
use leader_core::store::{JobName, TickCommand, TickOp};
use leader_core::testing::election::Event;

use super::faults::Fault;
use super::world::{Happening, World};
use crate::sim::cluster::{Server, State};

/// A run keeps so many older states of the store to go back to.
const SNAPSHOTS: usize = 4;

impl World<'_> {
    /// What is not a course's or an election's doing.
    pub(super) fn upheaval(&mut self, happening: Happening) {
        match happening {
            Happening::Fault => {
                self.plan_fault();
                self.fault();
            }
            Happening::GoesOn(h) => {
                let host = &mut self.hosts[h];
                // A crash in between has ended it already.
                if let Some(since) = host.still.take() {
                    host.stood = Some((since, self.now));
                    let deferred = std::mem::take(&mut host.deferred);
                    self.say(h, || "goes on".to_owned());
                    for deferred in deferred {
                        let soon = self.rng.below(Duration::from_micros(300));
                        self.agenda.add(self.now + soon, deferred);
                    }
                }
            }
            Happening::Reconnected(h) => self.hosts[h].cut = (false, false),
            Happening::Starts(h) => self.start(h),
            Happening::LeaderKilled => {
                if let Some(h) = (0..self.hosts.len()).find(|h| self.leads(*h)) {
                    self.crashes(h);
                }
            }
            Happening::Killed { host, start } => {
                if self.hosts[host].start == start {
                    self.crashes(host);
                }
            }
            Happening::Stops { host, version } => {
                self.hosts[host].version = if self.now < self.quiet_from { version } else { 1 };
                self.stops(host);
            }
            Happening::GraceOver { host, start } => {
                if self.hosts[host].start == start && self.hosts[host].process.is_some() {
                    self.cancel_what_may_be(host);
                    let patience = self.settings.operation_timeout() * 3;
                    let at = self.now + patience.as_nanos() as u64;
                    self.agenda.add(at, Happening::Killed { host, start });
                }
            }
            Happening::StoreBack(node) => self.cluster.nodes[node].state = State::Up,
            Happening::Cluster(turn) => self.cluster_turns(turn),
            Happening::Resumed(job) => self.operate(job, TickOp::Resume),
            other => unreachable!("{other:?} is not an upheaval"),
        }
    }

    fn fault(&mut self) {
        if self.rng.chance(0.5) {
            let memory = self.cluster.main().server.memory();
            self.snapshots.push_back((self.now, memory));
            if self.snapshots.len() > SNAPSHOTS {
                self.snapshots.pop_front();
            }
        }
        let kinds = self.settings.faults.kinds();
        if self.now >= self.quiet_from || kinds.is_empty() {
            return;
        }
        let fault = kinds[self.rng.index(kinds.len())];
        if self.strike(fault) {
            self.struck(fault);
        }
    }

    /// Whether there was anything to strike.
    fn strike(&mut self, fault: Fault) -> bool {
        let ttl = self.settings.ttl;
        let h = self.victim();
        let running = self.hosts[h].process.is_some();
        let up = self.cluster.main().state == State::Up;
        // Two things that void the rules together: a clock that was set may give two leaders for a ttl, of whom one may then
        // vouch wrongly; and a store that forgot which ticks were claimed has only its clock to tell.
        let since = |last: Option<u64>| last.is_none_or(|last| self.now - last > 3 * ttl.as_nanos() as u64);
        let settled = since(self.checker.steps.last().map(|(at, _)| *at));
        let on_time = settled && self.store_us() >= self.store_peak;
        let remembers = since(self.checker.losses.last().map(|loss| loss.until));
        match fault {
            Fault::Crash if running => self.crashes(h),
            Fault::CrashAtTick => {
                let job = &self.jobs[self.rng.index(self.jobs.len())];
                let after = self.rng.between(3, 60) + (self.store_us() / 1_000_000) as i64;
                let Some(tick) = job.expected().next_after(after) else { return false };
                let by = [-2_000_000, -100_000, 0, 100_000][self.rng.index(4)];
                let micros = (tick * 1_000_000 + by) as u64;
                let at = self.cluster.main().clock.when(BootInstant::from_nanos(micros * 1000));
                self.agenda.add(at.max(self.now), Happening::LeaderKilled);
            }
            Fault::CleanStop if running => self.stops(h),
            Fault::RollingUpdate => {
                let version = 1 - self.hosts[h].version;
                let mut at = self.now;
                for host in 0..self.hosts.len() {
                    self.agenda.add(at, Happening::Stops { host, version });
                    at += self.rng.below(ttl * 8);
                }
            }
            Fault::Pause if running && self.hosts[h].still.is_none() => {
                self.say(h, || "stands still".to_owned());
                self.hosts[h].still = Some(self.now);
                let later = self.rng.below(ttl * 4);
                self.agenda.add(self.now + later, Happening::GoesOn(h));
            }
            Fault::StepDown if self.leads(h) && self.hosts[h].still.is_none() => {
                self.say(h, || "steps down".to_owned());
                self.vote(h, 0, Event::StepDown);
            }
            Fault::Partition => {
                let way = self.rng.index(3);
                self.say(h, || format!("is cut off, {}", ["out", "back", "both ways"][way]));
                self.hosts[h].cut.0 |= way != 1;
                self.hosts[h].cut.1 |= way != 0;
                let later = self.rng.below(ttl * 2);
                self.agenda.add(self.now + later, Happening::Reconnected(h));
            }
            Fault::StoreStall if up => {
                let until = self.now + self.rng.below(ttl * 2);
                self.say_store(|| format!("stands still until {:.6}", until as f64 / 1e9));
                let node = self.cluster.primary;
                self.cluster.nodes[node].state = State::StandsStill(until);
                self.agenda.add(until, Happening::StoreBack(node));
            }
            Fault::RestartKept if up => self.restart("restarts with its data"),
            Fault::RestartEmpty if up && on_time => {
                self.cluster.main().server.lose_all();
                self.memory_was_lost(self.now);
                self.restart("restarts empty");
            }
            Fault::FlushAll if up && on_time => {
                self.say_store(|| "FLUSHALL".to_owned());
                self.cluster.main().server.lose_all();
                self.memory_was_lost(self.now);
                self.cluster.primary_flushed(self.now, &mut self.rng);
            }
            Fault::Rollback if up && on_time && !self.snapshots.is_empty() => {
                self.goes_back();
                self.restart("rolls back");
            }
            Fault::Promotion if up && on_time && !self.snapshots.is_empty() => {
                self.goes_back();
                let skew = self.rng.between(-200_000_000, 200_000_000);
                self.set_store_clock(skew);
                self.restart("fails over to a replica");
            }
            Fault::LeaseDeleted if up => {
                self.say_store(|| "the lease key is deleted".to_owned());
                self.cluster.main().server.delete_lease(0);
                self.written(|ledger| ledger.lease_write(0));
            }
            Fault::StoreClockStep if remembers => {
                let by = self.rng.between(-5_000_000_000, 10_000_000_000);
                self.set_store_clock(by);
            }
            Fault::PauseJob if up => {
                let job = self.rng.index(self.jobs.len());
                let now = (self.store_us() / 1_000_000) as i64;
                let until = now + self.rng.between(5, 60);
                self.operate(job, TickOp::Pause { until, note: String::new() });
                if self.rng.chance(0.5) {
                    let later = self.rng.below(Duration::from_secs(60));
                    self.agenda.add(self.now + later, Happening::Resumed(job));
                }
            }
            Fault::Servers(upset) => return on_time && self.upset(upset),
            _ => return false,
        }
        true
    }

    /// An operator's command, without a network.
    fn operate(&mut self, job: usize, op: TickOp) {
        if self.cluster.main().state != State::Up {
            return;
        }
        let now = self.store_us();
        let (group, name) = (self.jobs[job].group, JobName::new(self.jobs[job].name).expect("a valid name"));
        let candidate =
            leader_core::Candidate { id: self.new_id(), incarnation: leader_core::Incarnation::from_u128(u128::MAX) };
        let command = TickCommand { group: self.groups[group].clone(), job: name, candidate, op };
        let done = self.cluster.main().server.tick(now, group, job, &command);
        self.written(|ledger| ledger.tick_write(group, job));
        self.say_store(|| format!("{} {:?}: {:?}", command.job, command.op, done.answer.reply));
        if let TickOp::Pause { until, .. } = command.op {
            self.checker.paused(job, until);
        }
    }

    /// A leader, if there is one, every other time: what befalls it matters most.
    fn victim(&mut self) -> usize {
        let any = self.rng.index(self.hosts.len());
        if self.rng.chance(0.5) { (0..self.hosts.len()).find(|h| self.leads(*h)).unwrap_or(any) } else { any }
    }

    fn leads(&self, h: usize) -> bool {
        let host = &self.hosts[h];
        let seat = host.process.as_ref().and_then(|process| process.seats[0].as_ref());
        seat.is_some_and(|seat| seat.led(host.clock.read(self.now)).is_some())
    }

    /// A snapshot; what is later than it is forgotten.
    fn goes_back(&mut self) {
        let which = self.rng.index(self.snapshots.len());
        self.snapshots.truncate(which + 1);
        let (at, memory) = self.snapshots[which].clone();
        self.cluster.main().server.load(memory);
        self.memory_was_lost(at);
    }

    fn set_store_clock(&mut self, by: i64) {
        self.store_peak = self.store_peak();
        self.say_store(|| format!("its clock is set by {:.3} s", by as f64 / 1e9));
        self.cluster.nodes.iter_mut().for_each(|node| node.clock.set(by));
        self.checker.clock_was_set(self.now, by);
    }

    fn crashes(&mut self, h: usize) {
        if self.hosts[h].process.is_some() {
            self.say(h, || "dies".to_owned());
            self.checker.died(h, self.hosts[h].start);
            self.process_ends(h);
        }
    }

    fn stops(&mut self, h: usize) {
        let start = self.hosts[h].start;
        let Some(process) = self.hosts[h].process.as_mut().filter(|process| !process.closed) else { return };
        process.closed = true;
        self.say(h, || "is asked to stop".to_owned());
        let at = self.now + self.settings.grace.as_nanos() as u64;
        self.agenda.add(at, Happening::GraceOver { host: h, start });
        if self.hosts[h].still.is_none() {
            self.leave_locks(h);
            self.advance_all(h);
        }
        self.drained(h);
    }

    /// A process that ends gives its leases back once nothing is on, and nothing owed.
    pub(super) fn drained(&mut self, h: usize) {
        let host = &mut self.hosts[h];
        let Some(process) = &mut host.process else { return };
        let quiet = |process: &super::host::Process| {
            process.members.iter().all(|member| member.entry.is_none() && member.course.is_quiet())
        };
        if host.still.is_some() || !process.closed || process.withdrawn || !process.bodies.is_empty() || !quiet(process)
        {
            return;
        }
        process.withdrawn = true;
        self.say(h, || "has drained".to_owned());
        for group in 0..self.groups.len() {
            self.vote(h, group, Event::Withdraw);
        }
        self.ends_if_all_is_released(h);
    }

    pub(super) fn ends_if_all_is_released(&mut self, h: usize) {
        let Some(process) = &self.hosts[h].process else { return };
        if process.withdrawn && process.seats.iter().flatten().all(|seat| seat.election.is_quiet()) {
            self.say(h, || "has stopped".to_owned());
            self.process_ends(h);
        }
    }

    fn process_ends(&mut self, h: usize) {
        self.checker.all_end(h, self.hosts[h].start, self.hosts[h].still.unwrap_or(self.now));
        let host = &mut self.hosts[h];
        host.process = None;
        host.still = None;
        host.deferred.clear();
        for group in 0..self.groups.len() {
            self.observe_leader(h, group);
        }
        self.locks_end_with(h);
        let later = self.rng.below(self.settings.ttl * 2);
        self.agenda.add(self.now + later, Happening::Starts(h));
    }
}
