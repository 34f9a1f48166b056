//! In between: all is mended, somebody leads each group, and what was is judged.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::faults::Ending;
use super::{Course, LOOK, PATIENCE, SECOND_US, STORM};
use crate::chaos::log::{nanos, now_ns};
use crate::command::member::FINISH;
use crate::cron_chaos::Witness;
use crate::cron_chaos::member::true_us;
use crate::process::Usage;
use crate::soak::check::Violation;
use crate::soak::check::wear::Sample;
use crate::soak::fleet::Fleet;
use crate::soak::settings::Variant;

/// What is behind, and comes no nearer for so long, does not come: it was given up, or is lost.
const STUCK: Duration = Duration::from_secs(25);

/// Peace.
impl Course<'_> {
    /// All faults end, and somebody leads each group.
    pub(super) fn mend(&mut self) -> Result<(), String> {
        while let Some(end) = self.ends.pull() {
            let waits = matches!(end.what, Ending::Start(_) | Ending::Mend(_));
            self.end(end)?;
            if waits {
                self.pass(Instant::now() + LOOK)?;
            }
        }
        let calm_ns = now_ns();
        self.until(PATIENCE, |course| course.fleet.have_started())?;
        for group in self.fleet.all_groups() {
            if !self.until(PATIENCE, |course| course.fleet.views.is_led(&group, calm_ns))? {
                self.violations.push(Violation::NoLeader { group, waited: PATIENCE });
            }
        }
        self.look_for_promotions();
        Ok(())
    }

    /// All up to now is over, written down, and judged.
    pub(super) fn judge(&mut self) -> Result<(), String> {
        let until = true_us() / SECOND_US;
        let without_ledger = self.settings.variant == Some(Variant::WithoutLedger);
        // As long as ticks are made up for, however slowly. What is missing after that is found by the judge.
        let mut last = (self.fleet.progress.lag(self.fleet.ticks.jobs(), until), Instant::now());
        self.until(Duration::MAX, |course| {
            let (progress, jobs) = (&course.fleet.progress, course.fleet.ticks.jobs());
            let lag = progress.lag(jobs, until);
            if lag != last.0 {
                last = (lag, Instant::now());
            }
            progress.is_over(jobs, until, without_ledger) || last.1.elapsed() > STUCK
        })?;
        self.order += 1;
        let order = self.order;
        self.fleet.order_flush(order);
        if !self.until(PATIENCE, |course| course.fleet.flushed(order).is_ok())?
            && let Err(member) = self.fleet.flushed(order)
        {
            let wrote = self.fleet.crew.written(&member);
            self.violations.push(Violation::NoAnswer { member, waited: PATIENCE, wrote });
        }
        let cut_ns = self.fleet.flushed(order).unwrap_or_else(|_| now_ns());
        self.sample();
        self.conclude(until, cut_ns)?;
        self.figures.windows += 1;
        Ok(())
    }

    /// Judges what was written before this instant, and forgets what nothing can contradict any more.
    fn conclude(&mut self, until: i64, cut_ns: u64) -> Result<(), String> {
        self.fleet.look()?;
        let gone = self.fleet.gone();
        let known = self.witness.as_mut().map_or_else(|| Ok(Default::default()), Witness::take)?;
        let new = std::mem::take(&mut *self.troubles.lock().unwrap_or_else(PoisonError::into_inner));
        self.window.troubles.extend(new);
        let groups = self.fleet.all_groups();
        let Fleet { views, ticks, locks, progress, .. } = &mut self.fleet;
        self.violations.extend(views.judge());
        self.violations.extend(locks.judge(&self.window.losses, nanos(self.settings.ttl)));
        self.violations.extend(ticks.judge(until, cut_ns, &self.window, known, &gone));
        for (name, after_ns) in views.recovery(&groups, &self.struck) {
            self.figures.led_again.entry(name).or_default().add(Duration::from_nanos(after_ns));
        }
        views.forget_before(cut_ns);
        locks.forget_before(cut_ns, &gone);
        progress.forget_before(until);
        self.struck.clear();
        let back_ns = cut_ns.saturating_sub(nanos(4 * STORM));
        self.window.deaths.retain(|_, death| death.to_ns >= back_ns);
        self.window.troubles.retain(|trouble| trouble.to_ns >= back_ns);
        self.window.losses.retain(|loss| loss.at.to_ns >= back_ns);
        if self.window.losses.is_empty() {
            self.window.restarts = 0;
        }
        (self.figures.terms, self.figures.leader_changes) = (views.terms, views.changes);
        self.figures.ticks = ticks.figures.clone();
        self.figures.locks = locks.counts;
        self.fleet.forget(&gone);
        Ok(())
    }

    fn sample(&mut self) {
        let Some(usage) = self.fleet.crew.usage(&self.fleet.slots[0].label) else { return };
        let servers = self.ground.servers();
        let memory = |server: &crate::redis::RedisServer| server.used_memory() / 1024;
        self.samples.push(Sample {
            threads: usage.threads as u64,
            descriptors: usage.descriptors as u64,
            resident_kib: usage.resident_kib,
            connections: servers.iter().map(|server| server.connections() as u64).sum(),
            server_kib: servers.iter().map(|server| memory(server)).sum(),
            checker_kib: Usage::of(std::process::id()).map_or(0, |usage| usage.resident_kib),
        });
    }

    /// All end as they should.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        let mut living = self.fleet.crew.living();
        living.iter().for_each(|label| self.fleet.crew.say(label, FINISH));
        let mut bad = Vec::new();
        self.until(PATIENCE, |course| {
            living.retain(|label| {
                let ended = course.fleet.crew.ended(label);
                if ended.is_some_and(|status| !status.success()) {
                    bad.push(label.clone());
                }
                ended.is_none()
            });
            living.is_empty()
        })?;
        bad.into_iter().chain(living).for_each(|label| self.bad_end(label));
        // No tick is expected any more; who led and who held a lock to the end is judged.
        if self.violations.is_empty() {
            self.conclude(self.fleet.ticks.until(), now_ns())?;
        }
        if let Some(witness) = self.witness.take() {
            witness.finish()?;
        }
        Ok(())
    }
}
