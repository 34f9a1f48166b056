//! The judge's verdict over a run.

use std::collections::HashMap;
use std::time::Duration;

use leader_cron::Missed;
use leader_cron::testing::Reason;

use super::checker::{Checker, Permitted, Ran, Tick};
use super::jobs::Job;
use super::report::Report;
use crate::sim::cluster::Loss;

/// So much around a loss of memory is excused, in nanoseconds; and after the store's clock was set ahead.
const AROUND: u64 = 90_000_000_000;
/// So much later than its window may a tick be run: what a claim takes, and a store's clock that was set.
const LATER: i64 = 14;

impl Checker {
    /// Adds up what is wrong. Ticks count up to the second `until`.
    pub(super) fn judge(&self, jobs: &[Job], until: i64, end: u64, seed: u64, report: &mut Report) {
        let mut by_tick: HashMap<Tick, Vec<&Ran>> = HashMap::new();
        for body in &self.bodies {
            by_tick.entry(body.tick).or_default().push(body);
        }
        let mut wrong = |what: String| {
            report.failure.get_or_insert((seed, what));
        };
        let name = |tick: Tick| format!("{} at {}", jobs[tick.0].name, tick.1);
        for (tick, bodies) in &by_tick {
            let job = &jobs[tick.0];
            if !job.at_least_once() && bodies.len() > 1 {
                report.doubled += bodies.len() as u64 - 1;
                wrong(format!("{} ran twice: {bodies:?}", name(*tick)));
            }
            let told = self.told.get(tick).into_iter().flatten();
            // A leader that knew nothing of a pause that is over catches up what came meanwhile.
            let excused = [Some(Reason::Forgotten), Some(Reason::Paused)];
            let told = told.filter(|(reason, ..)| !excused.contains(reason)).count();
            if told > 0 && !job.at_least_once() {
                report.misreported += 1;
                wrong(format!("{} was told to be left out, {:?}, and ran: {bodies:?}", name(*tick), self.told[tick]));
            }
        }
        for body in &self.bodies {
            let (job, due) = (&jobs[body.tick.0], body.tick.1 * 1_000_000);
            if (body.store_us as i64) < due {
                report.early += 1;
                wrong(format!("{} was early: {body:?}", name(body.tick)));
            }
            let latest = due + (job.window().as_secs() as i64 + LATER) * 1_000_000;
            if body.store_us as i64 > latest && body.attempt == 1 {
                report.late += 1;
                wrong(format!("{} was late: {body:?}", name(body.tick)));
            }
        }
        for (index, job) in jobs.iter().enumerate() {
            let mut bodies: Vec<&Ran> = self.bodies.iter().filter(|body| body.tick.0 == index).collect();
            bodies.sort_by_key(|body| body.began);
            if job.is_exclusive() {
                for (first, second) in overlapping(&bodies, end) {
                    if self.clock_was_set_ahead(second.began) {
                        report.excused += 1;
                    } else if self.memory_was_lost_before(second.began) {
                        report.unsafe_slots += 1;
                    } else {
                        report.overlaps += 1;
                        wrong(format!("{} overlaps {}: {first:?}, {second:?}", name(second.tick), name(first.tick)));
                    }
                }
            }
            if job.policy.missed == Missed::All && job.is_exclusive() {
                let mut newest: Option<&Ran> = None;
                for body in bodies.iter().filter(|body| body.attempt == 1 && !self.given_back.contains(&body.tick)) {
                    if let Some(newest) = newest.filter(|newest| newest.tick.1 > body.tick.1) {
                        // At least once, what the store has forgotten runs again.
                        let since = newest.began.saturating_sub(5_000_000_000);
                        let forgot = self.losses.iter().any(|loss| (since..body.began).contains(&loss.until));
                        if !forgot && !self.clock_was_set_ahead(body.began) {
                            report.disorder += 1;
                            wrong(format!("{} came after {newest:?}: {body:?}", name(body.tick)));
                        }
                    }
                    newest = Some(body);
                }
            }
        }
        report.returned += self.given_back.len() as u64;
        report.gave_up += self.given_up.len() as u64;
        for (index, job) in jobs.iter().enumerate() {
            let Some(since) = self.since[index].first().copied() else { continue };
            let schedule = job.expected();
            let ticks = std::iter::successors(schedule.next_after(since), |tick| schedule.next_after(*tick));
            for tick in ticks.take_while(|tick| *tick <= until).map(|tick| (index, tick)) {
                report.expected += 1;
                match by_tick.get(&tick) {
                    Some(bodies) => {
                        report.ran += 1;
                        if job.at_least_once() && !self.came_to_an_end(tick, bodies) {
                            report.unfinished += 1;
                            report.failure.get_or_insert((seed, format!("{} came to no end: {bodies:?}", name(tick))));
                        }
                    }
                    None => self.account(job, tick, seed, report),
                }
            }
        }
    }

    fn came_to_an_end(&self, tick: Tick, bodies: &[&Ran]) -> bool {
        let after = |began: u64| began.saturating_sub(AROUND / 20)..began + AROUND;
        bodies.iter().any(|body| body.completed)
            || self.given_up.contains(&tick)
            || self
                .told
                .get(&tick)
                .is_some_and(|told| told.iter().any(|(reason, ..)| *reason != Some(Reason::Forgotten)))
            || self.losses.iter().any(|loss| bodies.iter().any(|body| after(body.began).contains(&loss.until)))
    }

    /// Why a tick did not run.
    fn account(&self, job: &Job, tick: Tick, seed: u64, report: &mut Report) {
        let told = self.told.get(&tick).map(Vec::as_slice).unwrap_or_default();
        let age = |store_us: u64| Duration::from_micros(store_us.saturating_sub(tick.1.cast_unsigned() * 1_000_000));
        let permitted = told.iter().any(|(reason, store_us, _)| {
            let old = age(*store_us) + Duration::from_secs(1) >= job.window();
            match reason {
                Some(Reason::Coalesced) => job.policy.missed == Missed::Once,
                Some(Reason::Forgotten | Reason::Paused) => false,
                None => old || job.policy.missed != Missed::All,
                Some(_) => old,
            }
        });
        // The claimer may have died before it could tell what stands in the history.
        let noted = self.claims[tick.0].iter().any(|claim| {
            let old = claim.tick - tick.1 + LATER >= job.window().as_secs() as i64;
            claim.missed.is_some_and(|from| (from..claim.tick).contains(&tick.1))
                && (job.policy.missed != Missed::All || old)
        });
        let of_it = |claim: &&Permitted| claim.tick == tick.1;
        // No claim is forgotten that was first asked for after the memory was lost.
        let since = self.claims[tick.0].iter().find(of_it).map_or(0, |claim| claim.at);
        let forgotten = told.iter().any(|(reason, _, at)| {
            let explains = |doubt: &u64| (since..*at).contains(doubt) && self.was_open(tick, *doubt);
            *reason == Some(Reason::Forgotten) && self.doubts.iter().any(explains)
        });
        let claimed = self.claims[tick.0].iter().rfind(of_it);
        // Also just before the store executed what it had asked.
        let died = claimed.is_some_and(|claim| self.deaths.contains(&claim.process));
        let is_paused = |reason: Option<Reason>| reason == Some(Reason::Paused);
        let told_so = told.iter().any(|(reason, ..)| is_paused(*reason));
        let paused = told_so && self.pauses[tick.0].iter().any(|until| tick.1 <= *until);
        let counted = if permitted || noted || self.given_up.contains(&tick) {
            &mut report.missed
        } else if paused {
            &mut report.paused
        } else if died {
            &mut report.died
        } else if forgotten {
            &mut report.forgotten
        } else if self.began_anew(tick) || claimed.is_some_and(|claim| self.was_forgotten(claim)) {
            &mut report.memory
        } else if job.changes() && self.came_with_a_change(tick) {
            &mut report.changed
        } else {
            let what = format!("{} at {} is lost; claimed: {claimed:?}, told: {told:?}", job.name, tick.1);
            report.failure.get_or_insert((seed, what));
            &mut report.lost
        };
        *counted += 1;
    }

    /// At this true time the tick was still to be claimed: no later one had been, or it had been given back.
    fn was_open(&self, tick: Tick, at: u64) -> bool {
        let passed = self.claims[tick.0].iter().any(|claim| claim.at < at && claim.tick > tick.1);
        !passed || self.given_back.contains(&tick)
    }

    /// The store forgot a claim, or may have, before it was given back.
    fn was_forgotten(&self, claim: &Permitted) -> bool {
        let soon = claim.at..claim.at + AROUND / 3;
        let holds = |loss: &Loss| (loss.since..loss.until).contains(&claim.at);
        self.losses.iter().any(|loss| loss.of.is_none_or(|node| node == claim.node) && holds(loss))
            || self.doubts.iter().any(|doubt| soon.contains(doubt))
    }

    /// The job's record was lost, and a new one began after the tick.
    fn began_anew(&self, tick: Tick) -> bool {
        let anew = self.since[tick.0].iter().skip(1).any(|since| tick.1 <= *since);
        anew && self.losses.iter().any(|loss| self.was_open(tick, loss.until))
    }

    /// The next claim after it was of a process that registered the job later: another schedule counts from there.
    fn came_with_a_change(&self, tick: Tick) -> bool {
        let next = self.claims[tick.0].iter().find(|claim| claim.tick > tick.1);
        next.is_none_or(|claim| claim.registered >= tick.1)
    }

    fn clock_was_set_ahead(&self, before: u64) -> bool {
        self.steps.iter().any(|(at, by)| *by > 0 && (*at..at + AROUND).contains(&before))
    }

    fn memory_was_lost_before(&self, at: u64) -> bool {
        self.losses.iter().any(|loss| (loss.until..loss.until + AROUND / 3).contains(&at))
    }
}

/// Each body that began before an earlier one had ended, with that one.
fn overlapping<'a>(bodies: &[&'a Ran], end: u64) -> Vec<(&'a Ran, &'a Ran)> {
    let mut found = Vec::new();
    let mut last: Option<&Ran> = None;
    for body in bodies {
        if let Some(last) = last.filter(|last| last.ended.unwrap_or(end) > body.began) {
            found.push((last, *body));
        }
        if last.is_none_or(|last| last.ended.unwrap_or(end) < body.ended.unwrap_or(end)) {
            last = Some(body);
        }
    }
    found
}
