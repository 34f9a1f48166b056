//! Faults as they strike, and how they pass.

use std::time::Duration;

use leader_core::testing::election::Event;

use super::backend::Memory;
use super::cluster::{Server, State};
use super::faults::Fault;
use super::world::{Happening, World};

/// A run keeps so many older states of the store to go back to.
const SNAPSHOTS: usize = 4;

impl World<'_> {
    /// What is not an election's doing.
    pub(super) fn upheaval(&mut self, happening: Happening) {
        match happening {
            Happening::Fault => {
                self.plan_fault();
                self.fault();
            }
            Happening::GoesOn(i) => {
                // A crash in between has ended it already.
                if std::mem::take(&mut self.instances[i].still) {
                    self.say(i, || "goes on".to_owned());
                    for deferred in std::mem::take(&mut self.instances[i].deferred) {
                        let soon = self.rng.below(Duration::from_micros(300));
                        self.agenda.add(self.now + soon, deferred);
                    }
                }
            }
            Happening::Reconnected(i) => {
                self.instances[i].cut_out = false;
                self.instances[i].cut_back = false;
            }
            Happening::Killed { instance, start } => {
                if self.instances[instance].start == start && self.instances[instance].election.is_some() {
                    self.say(instance, || "is killed".to_owned());
                    self.process_ends(instance);
                }
            }
            Happening::StoreBack(node) => self.cluster.nodes[node].state = State::Up,
            Happening::Cluster(turn) => self.cluster_turns(turn),
            other => unreachable!("{other:?} is an election's"),
        }
    }

    fn fault(&mut self) {
        if self.rng.chance(0.5) {
            let memory = self.cluster.main().server.memory();
            self.snapshots.push_back(memory);
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
            self.report.struck(fault);
        }
    }

    /// Whether there was anything to strike.
    fn strike(&mut self, fault: Fault) -> bool {
        let ttl = self.settings.ttl(0);
        let i = self.victim();
        let running = self.instances[i].election.is_some();
        let up = self.cluster.main().state == State::Up;
        match fault {
            Fault::Crash if running => {
                self.say(i, || "crashes".to_owned());
                self.process_ends(i);
            }
            Fault::CleanStop if running && !self.instances[i].still => {
                self.say(i, || "is asked to stop".to_owned());
                self.instances[i].leaving = true;
                let start = self.instances[i].start;
                self.agenda.add(self.now + ttl.as_nanos() as u64, Happening::Killed { instance: i, start });
                self.handle(i, Event::Withdraw);
            }
            Fault::Pause | Fault::DriverStall if running && !self.instances[i].still => {
                self.say(i, || format!("{fault:?}"));
                self.instances[i].still = true;
                let later = self.rng.below(ttl * 3);
                self.agenda.add(self.now + later, Happening::GoesOn(i));
            }
            Fault::StepDown if self.leads(i) && !self.instances[i].still => {
                self.say(i, || "is told to step down".to_owned());
                self.handle(i, Event::StepDown);
            }
            Fault::StandAside if running && !self.instances[i].still => {
                self.say(i, || "stands aside".to_owned());
                let start = self.instances[i].start;
                let most = if self.rng.chance(0.5) { ttl / 50 } else { ttl };
                let later = self.rng.below(most);
                self.handle(i, Event::StandAside);
                self.agenda.add(self.now + later, Happening::Resumes { instance: i, start });
            }
            Fault::Partition => {
                let way = self.rng.index(3);
                self.say(i, || format!("is cut off, {}", ["out", "back", "both ways"][way]));
                self.instances[i].cut_out |= way != 1;
                self.instances[i].cut_back |= way != 0;
                let later = self.rng.below(ttl * 3);
                self.agenda.add(self.now + later, Happening::Reconnected(i));
            }
            Fault::WallClockStep => {
                let by = self.rng.between(-3, 3) * ttl.as_nanos() as i64 / 2;
                self.say(i, || format!("has its wall clock set by {by} ns"));
                self.instances[i].clock.set(by);
                self.clock_was_set(i);
            }
            Fault::RestartEmpty if up => {
                self.cluster.main().server.lose_all();
                self.restart("restarts empty");
            }
            Fault::RestartKept if up => self.restart("restarts with its data"),
            Fault::Rollback if up && !self.snapshots.is_empty() => {
                let memory = self.older();
                self.cluster.main().server.load(memory);
                self.restart("rolls back");
            }
            Fault::Promotion if up && !self.snapshots.is_empty() => {
                if self.rng.chance(0.1) {
                    self.cluster.main().server.lose_all();
                } else {
                    let memory = self.older();
                    self.cluster.main().server.load(memory);
                }
                let skew = self.rng.between(-2_000_000, 2_000_000);
                self.cluster.main().clock.set(skew);
                self.restart("fails over to a replica");
            }
            Fault::FlushAll if up => {
                self.say_store(|| "FLUSHALL".to_owned());
                self.cluster.main().server.lose_all();
                self.written();
            }
            Fault::StoreStall if up => {
                let until = self.now + self.rng.below(ttl * 2);
                self.say_store(|| format!("stands still until {:.6}", until as f64 / 1e9));
                let node = self.cluster.primary;
                self.cluster.nodes[node].state = State::StandsStill(until);
                self.agenda.add(until, Happening::StoreBack(node));
            }
            Fault::LeaseDeleted if up => {
                self.say_store(|| "the lease key is deleted".to_owned());
                let group = self.group.clone();
                self.cluster.main().server.delete_lease(&group);
                self.written();
            }
            Fault::StoreClockBack => {
                let by = self.rng.below(ttl * 20);
                self.say_store(|| format!("its clock is set back by {by} ns"));
                self.cluster.main().clock.set(-(by as i64));
            }
            Fault::Servers(upset) => return self.upset(upset),
            _ => return false,
        }
        true
    }

    /// A leader, if there is one, every other time: what befalls it matters most.
    fn victim(&mut self) -> usize {
        let any = self.rng.index(self.instances.len());
        if self.rng.chance(0.5) { (0..self.instances.len()).find(|i| self.leads(*i)).unwrap_or(any) } else { any }
    }

    /// A snapshot; what is later than it is forgotten.
    fn older(&mut self) -> Memory {
        let which = self.rng.index(self.snapshots.len());
        self.snapshots.truncate(which + 1);
        self.snapshots[which].clone()
    }
}
