//! Faults: what begins when, on whom, and what mends it.

use std::time::{Duration, Instant};

use super::{Course, LOOK, PATIENCE, SECOND_US, push};
use crate::chaos::crew::Between;
use crate::chaos::log::now_ns;
use crate::command::member::FINISH;
use crate::cron_chaos::Witness;
use crate::cron_chaos::judge::{Loss, What};
use crate::cron_chaos::member::true_us;
use crate::soak::check::Violation;
use crate::soak::check::views::Struck;
use crate::soak::ground::Mend;
use crate::soak::member::{DRAIN, RESUME, STEP_DOWN};
use crate::soak::plan::{Fault, Planned, Whom};

/// What ends, and what began then.
pub(super) struct End {
    pub(super) what: Ending,
    fault: Fault,
    from_ns: u64,
}

pub(super) enum Ending {
    /// A process begins in this slot.
    Start(usize),
    /// It goes on.
    Continue(usize),
    /// It competes again.
    Resume(usize),
    /// The store is mended.
    Mend(Mend),
}

/// Faults.
impl Course<'_> {
    pub(super) fn faults(&mut self, end: Instant) -> Result<(), String> {
        while Instant::now() < end && !self.is_over() {
            let Some(planned) = self.plan.next() else { break };
            let at = end.min(Instant::now() + planned.after);
            while Instant::now() < at && !self.is_over() {
                self.pass(at.min(Instant::now() + 4 * LOOK))?;
            }
            if Instant::now() < end && !self.is_over() {
                let struck = self.strikes(planned)?;
                struck.into_iter().for_each(|fault| *self.faults.entry(fault.name()).or_default() += 1);
            }
        }
        Ok(())
    }

    /// What did strike: one that stands still is not stopped again, and a store has one trouble at a time.
    fn strikes(&mut self, Planned { fault, whom, group, lasts, .. }: Planned) -> Result<Option<Fault>, String> {
        let over = Instant::now() + lasts;
        if !fault.is_of_process() {
            let group = self.fleet.all_groups()[group].clone();
            let from_ns = now_ns();
            let Some(mend) = self.ground.begin(fault, &group, lasts)? else { return Ok(None) };
            self.history.fault("begins", fault, None);
            if fault.loses_memory() {
                // What was open by its claim is waited for no more.
                self.fleet.progress.forget_open(now_ns());
            }
            self.ends.add(over, End { what: Ending::Mend(mend), fault, from_ns });
            return Ok(Some(fault));
        }
        if let Fault::KillAt(after_ms) = fault {
            let wait = SECOND_US - (true_us() - after_ms * 1_000).rem_euclid(SECOND_US);
            self.pass(Instant::now() + Duration::from_micros(wait.unsigned_abs()))?;
        }
        let slot = match whom {
            Whom::Slot(slot) => Some(slot).filter(|slot| self.fleet.is_well(*slot)),
            Whom::Leader(group) => self.fleet.leader(&self.fleet.all_groups()[group]),
        };
        let Some(slot) = slot else { return Ok(None) };
        // The first process lives to the end, so that it shows what grows: whatever would end it stops it instead.
        let spared = slot == 0 && matches!(fault, Fault::Kill | Fault::KillAt(_) | Fault::Restart);
        let fault = if spared { Fault::Stop } else { fault };
        Ok(self.hurt(fault, slot, group, over).then_some(fault))
    }

    fn hurt(&mut self, fault: Fault, slot: usize, group: usize, over: Instant) -> bool {
        let (label, from_ns) = (self.fleet.slots[slot].label.clone(), now_ns());
        self.history.fault("begins", fault, Some(&label));
        let what = match fault {
            Fault::Kill | Fault::KillAt(_) => {
                let Some(death) = self.fleet.kill(slot) else { return false };
                self.window.deaths.insert(label, death);
                self.witness.iter().for_each(Witness::look);
                self.struck.push(Struck { name: fault.name(), from_ns, to_ns: death.to_ns });
                Ending::Start(slot)
            }
            Fault::Stop => {
                let Some(writing) = self.fleet.crew.stop(&label) else { return false };
                self.fleet.slots[slot].stopped = Some((from_ns, writing));
                Ending::Continue(slot)
            }
            Fault::StepDown => {
                let group = self.fleet.all_groups()[group].clone();
                self.fleet.crew.say(&label, &format!("{STEP_DOWN}{group}"));
                self.struck.push(Struck { name: fault.name(), from_ns, to_ns: now_ns() });
                return true;
            }
            Fault::Drain => {
                self.fleet.crew.say(&label, DRAIN);
                self.fleet.slots[slot].drained = true;
                Ending::Resume(slot)
            }
            _ => {
                self.fleet.crew.say(&label, FINISH);
                self.fleet.slots[slot].ending = true;
                Ending::Start(slot)
            }
        };
        self.ends.add(over, End { what, fault, from_ns });
        true
    }

    pub(super) fn end(&mut self, End { what, fault, from_ns }: End) -> Result<(), String> {
        match what {
            Ending::Start(slot) => {
                let label = self.fleet.slots[slot].label.clone();
                if self.fleet.slots[slot].ending {
                    match self.fleet.crew.ended(&label) {
                        Some(status) if status.success() => {
                            self.struck.push(Struck { name: fault.name(), from_ns, to_ns: now_ns() });
                        }
                        Some(_) => self.bad_end(label.clone()),
                        None => {
                            // It takes its time.
                            self.ends.add(Instant::now() + LOOK, End { what: Ending::Start(slot), fault, from_ns });
                            return Ok(());
                        }
                    }
                }
                self.history.fault("ends", fault, Some(&label));
                self.start(slot)?;
            }
            Ending::Continue(slot) => {
                let label = self.fleet.slots[slot].label.clone();
                if let Some((from_ns, writing)) = self.fleet.cont(slot) {
                    let to_ns = now_ns();
                    push(&self.troubles, Some(&label), What::Halt, from_ns, to_ns);
                    if writing {
                        push(&self.troubles, None, What::Silence, from_ns, to_ns);
                    }
                    self.struck.push(Struck { name: fault.name(), from_ns, to_ns });
                    self.history.fault("ends", fault, Some(&label));
                }
            }
            Ending::Resume(slot) => {
                let label = self.fleet.slots[slot].label.clone();
                self.fleet.crew.say(&label, RESUME);
                self.fleet.slots[slot].drained = false;
                self.struck.push(Struck { name: fault.name(), from_ns, to_ns: now_ns() });
                self.history.fault("ends", fault, Some(&label));
            }
            Ending::Mend(mend) => {
                if let Some(rest) = self.ground.end(mend)? {
                    let waited = Duration::from_nanos(now_ns().saturating_sub(from_ns));
                    if waited > 4 * PATIENCE {
                        return Err(format!("the servers are not well {waited:.0?} after: {}", fault.name()));
                    }
                    self.ends.add(Instant::now() + 2 * LOOK, End { what: Ending::Mend(rest), fault, from_ns });
                    return Ok(());
                }
                self.mended(fault, from_ns);
            }
        }
        Ok(())
    }

    fn mended(&mut self, fault: Fault, from_ns: u64) {
        let to_ns = now_ns();
        match fault.network() {
            None => push(&self.troubles, None, What::Silence, from_ns, to_ns),
            // Of whoever was there meanwhile.
            Some(slot) => self.fleet.labels_of(slot).for_each(|label| {
                push(&self.troubles, Some(&label), What::Silence, from_ns, to_ns);
            }),
        }
        self.struck.push(Struck { name: fault.name(), from_ns, to_ns });
        self.history.fault("ends", fault, None);
        if matches!(fault, Fault::ServerKill) {
            self.window.restarts += 1;
        }
        if fault.loses_memory() {
            self.lost_memory(from_ns, to_ns);
        }
        self.look_for_promotions();
    }

    fn lost_memory(&mut self, from_ns: u64, to_ns: u64) {
        // By the clock of this host, which is that of its servers.
        let ago_us = i64::try_from(now_ns().saturating_sub(from_ns) / 1_000).unwrap_or(i64::MAX);
        let second = (true_us() - ago_us) / SECOND_US;
        self.window.losses.push(Loss { at: Between { from_ns, to_ns }, second });
        self.window.restarts += 1;
        self.figures.losses += 1;
        self.fleet.progress.forget_open(now_ns());
    }

    /// Servers may be replaced though nothing was done to them, on a busy machine.
    pub(super) fn look_for_promotions(&mut self) {
        let now = (self.ground.identity(), now_ns());
        let (before, since_ns) = std::mem::replace(&mut self.identity, now);
        if before != self.identity.0 {
            self.lost_memory(since_ns, self.identity.1);
        }
    }

    pub(super) fn bad_end(&mut self, member: String) {
        let wrote = self.fleet.crew.written(&member);
        self.violations.push(Violation::BadEnd { member, wrote });
    }
}
