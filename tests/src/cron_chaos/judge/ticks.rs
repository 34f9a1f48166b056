//! Which ticks were begun, how often, and why not.

use std::collections::{BTreeMap, HashMap, HashSet};

use leader_cron::Missed;

use super::bodies::{Body, Over, troubles};
use super::{Counts, Evidence, Violation};
use crate::cron_chaos::jobs::Facts;
use crate::cron_chaos::line::Line;

/// What the library says of ticks that it does not run after a store has lost its memory.
const FORGOTTEN: &str = "the store has lost its memory";
/// So often is a tick begun that is run until it ends.
const ATTEMPTS: u32 = 3;
/// So long after a trouble the ledger may still lack what it was not told meanwhile.
const AFTER_NS: u64 = 2_000_000_000;

pub(super) fn check(evidence: &Evidence, bodies: &[Body<'_>], counts: &mut [Counts], found: &mut Vec<Violation>) {
    let mut by_tick: HashMap<(usize, i64), Vec<&Body<'_>>> = HashMap::new();
    for body in bodies {
        by_tick.entry((body.job, body.tick)).or_default().push(body);
        let counts = &mut counts[body.job];
        counts.cut += u64::from(matches!(body.over, Over::Cut(_)) && evidence.is_news(body.at_ns));
    }
    for ((job, tick), bodies) in &by_tick {
        begun(evidence, *job, *tick, bodies, &mut counts[*job], found);
    }
    let reasons = Reasons::of(evidence, bodies);
    let (from, until) = evidence.bounds.expected;
    for (index, job) in evidence.jobs.iter().enumerate() {
        let counts = &mut counts[index];
        let mut died: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        let mut tick = job.kind.first_tick(from);
        while tick <= until {
            counts.expected += 1;
            if by_tick.contains_key(&(index, tick)) {
                counts.ran += 1;
            } else {
                match reasons.not_begun(evidence, job, tick) {
                    Ok(Reason::Died(member)) => {
                        counts.died += 1;
                        died.entry(member).or_default().push(tick);
                    }
                    Ok(Reason::Forgotten) => counts.forgotten += 1,
                    Ok(Reason::Passed) => counts.passed += 1,
                    Err(said) => {
                        counts.lost += 1;
                        found.push(Violation::Lost { job: job.name.clone(), tick, said });
                    }
                }
            }
            tick += job.kind.period;
        }
        for (member, ticks) in died.into_iter().filter(|(_, ticks)| ticks.len() > 1 && job.kind.is_exclusive()) {
            found.push(Violation::TooManyDied { job: job.name.clone(), member: member.to_owned(), ticks });
        }
    }
}

/// A tick for which these bodies began, in order of time.
fn begun(
    evidence: &Evidence,
    job: usize,
    tick: i64,
    bodies: &[&Body<'_>],
    counts: &mut Counts,
    found: &mut Vec<Violation>,
) {
    let Facts { name, kind, .. } = &evidence.jobs[job];
    let told = || bodies.iter().map(ToString::to_string).collect::<Vec<_>>();
    if evidence.is_news(bodies[0].at_ns) {
        let late_us = bodies[0].true_us - tick * 1_000_000;
        counts.latest_ms = counts.latest_ms.max(late_us / 1_000);
    }
    let again = kind.is_at_least_once() && evidence.bounds.ledger;
    let mut attempts = HashSet::new();
    let mut doubled = 0;
    for (place, body) in bodies.iter().enumerate() {
        let further = attempts.insert(body.attempt) && again;
        let ended = bodies[..place].iter().find(|earlier| matches!(earlier.over, Over::Ended(_)));
        match ended {
            _ if place == 0 || !evidence.is_news(body.at_ns) => {}
            // What it has forgotten is run again, at least once.
            _ if again && evidence.forgot_between(bodies[place - 1].at_ns, body.at_ns) => counts.repeated += 1,
            _ if !further => doubled += 1,
            // The ledger did not know of that end.
            Some(ended) if !untold(evidence, ended, body) => doubled += 1,
            _ => counts.repeated += 1,
        }
    }
    if doubled > 0 {
        counts.doubled += doubled;
        found.push(Violation::Doubled { job: name.clone(), tick, bodies: told() });
    }
    let (from, until) = evidence.bounds.expected;
    if again && !bodies.iter().any(|body| matches!(body.over, Over::Ended(_))) && tick <= until {
        let once = u64::from(tick >= from);
        if attempts.contains(&ATTEMPTS) || evidence.known.given_up.contains(&(name.clone(), tick)) {
            counts.given_up += once;
        } else if evidence.forgot_between(bodies[0].at_ns, u64::MAX) {
            counts.forgotten += once;
        } else {
            found.push(Violation::NoEnd { job: name.clone(), tick, bodies: told() });
        }
    }
}

/// Something kept the process of the first body from telling of its end before the other began.
fn untold(evidence: &Evidence, ended: &Body<'_>, next: &Body<'_>) -> bool {
    let between = (ended.over.at_ns().saturating_sub(AFTER_NS), next.at_ns);
    let death = evidence.deaths.get(ended.member);
    death.is_some_and(|death| death.from_ns <= next.at_ns) || troubles(evidence, ended.member, between).next().is_some()
}

/// Why a tick was not begun.
enum Reason<'a> {
    Died(&'a str),
    Forgotten,
    Passed,
}

/// What was said of ticks that were not begun.
struct Reasons<'a> {
    claims: HashMap<(&'a str, i64), Vec<&'a str>>,
    forgotten: HashMap<&'a str, Vec<(i64, u64)>>,
    passed: HashMap<&'a str, Vec<(i64, u64)>>,
    /// The newest tick of a job that was begun before a loss of memory, by the number of that.
    begun: HashMap<(&'a str, usize), i64>,
}

impl<'a> Reasons<'a> {
    fn of(evidence: &'a Evidence, bodies: &'a [Body<'a>]) -> Self {
        let (claims, forgotten, passed) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut reasons = Self { claims, forgotten, passed, begun: HashMap::new() };
        for (number, loss) in evidence.losses.iter().enumerate() {
            for body in bodies.iter().filter(|body| body.at_ns < loss.at.from_ns) {
                let newest = reasons.begun.entry((body.name, number)).or_insert(body.tick);
                *newest = (*newest).max(body.tick);
            }
        }
        for (job, tick, instance) in &evidence.known.claims {
            reasons.claims.entry((job, *tick)).or_default().push(instance);
        }
        let told = evidence.members.values().flatten().filter_map(|line| match line {
            Line::Told { job, tick, count, text } => Some((job, *tick, *count, text)),
            _ => None,
        });
        let noted = evidence.known.missed.iter().map(|(job, tick, count, text)| (job, *tick, *count, text));
        for (job, tick, count, text) in told.chain(noted) {
            let to = if text.contains(FORGOTTEN) { &mut reasons.forgotten } else { &mut reasons.passed };
            to.entry(job).or_default().push((tick, count));
        }
        for body in bodies.iter().filter(|body| body.missed > 0) {
            let count = i64::try_from(body.missed).unwrap_or(i64::MAX);
            let from = body.tick.saturating_sub(count.saturating_mul(evidence.jobs[body.job].kind.period));
            reasons.passed.entry(body.name).or_default().push((from, body.missed));
        }
        reasons
    }

    /// The store lost its memory while no later tick of the job had been begun.
    fn was_open_at_a_loss(&self, evidence: &Evidence, job: &str, tick: i64) -> bool {
        let open = |number| self.begun.get(&(job, number)).is_none_or(|newest| *newest < tick);
        (0..evidence.losses.len()).any(open)
    }

    /// The job's record was lost, and the next one began after the tick.
    fn began_anew(&self, evidence: &Evidence, job: &str, tick: i64) -> bool {
        let since = evidence.known.since.iter().filter(|(of, _)| of == job);
        since.into_iter().any(|(_, since)| tick <= *since && evidence.losses.iter().any(|loss| loss.second <= *since))
    }

    /// The error: what was said of it, and excuses nothing.
    fn not_begun(&self, evidence: &Evidence, job: &Facts, tick: i64) -> Result<Reason<'a>, String> {
        let (name, kind) = (job.name.as_str(), job.kind);
        let claimers = self.claims.get(&(name, tick)).map_or(&[][..], Vec::as_slice);
        let covers = |told: &HashMap<&str, Vec<(i64, u64)>>| {
            let all = told.get(name).into_iter().flatten();
            let ticks = |count: &u64| i64::try_from(*count).unwrap_or(i64::MAX).saturating_mul(kind.period);
            all.into_iter().any(|(from, count)| (*from..from.saturating_add(ticks(count))).contains(&tick))
        };
        let (forgotten, passed) = (covers(&self.forgotten), covers(&self.passed));
        let may_pass = kind.missed != Missed::All && (passed || !claimers.is_empty() || kind.missed == Missed::Skip);
        let killed = claimers.iter().find(|member| evidence.deaths.contains_key(**member));
        match killed {
            _ if !evidence.bounds.ledger => {}
            _ if (forgotten || !claimers.is_empty() || self.began_anew(evidence, name, tick))
                && self.was_open_at_a_loss(evidence, name, tick) =>
            {
                return Ok(Reason::Forgotten);
            }
            _ if forgotten && !kind.is_at_least_once() && evidence.bounds.restarts > 0 => return Ok(Reason::Forgotten),
            Some(member) if !kind.is_at_least_once() => return Ok(Reason::Died(member)),
            _ if may_pass => return Ok(Reason::Passed),
            _ => {}
        }
        let unasked = evidence.known.failures.len();
        Err(format!(
            "claimed by {claimers:?}, told as passed over: {passed}, as forgotten: {forgotten}; the ledger gave no answer \
             {unasked} times"
        ))
    }
}
