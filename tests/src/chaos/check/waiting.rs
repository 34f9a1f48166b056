//! Those who wait: each gets its turn or is told in time, few who came later pass it, and nothing stays locked for long.

use super::attempts::Attempt;
use super::spans::Spans;
use super::{Evidence, Figures, Violation};
use crate::chaos::log::How;

/// How much later than it had to be an answer may come, besides what was measured.
const LATE_NS: u64 = 2_000_000_000;
/// One who asked so much later came later to the store too: so long takes no call of a member that has no trouble.
const LATER_NS: u64 = 300_000_000;
/// So many of those who came later may pass one who waits.
const PASSES: usize = 2;
/// How much longer than it has to a lock may stay with nobody, besides what was measured: one who missed its turn asks
/// each second.
const IDLE_NS: u64 = 1_200_000_000;

/// What each attempt was told, and when.
pub(super) fn answers(evidence: &Evidence, attempts: &[Attempt], found: &mut Vec<Violation>) {
    for attempt in attempts {
        let died = evidence.deaths.contains_key(&attempt.member);
        let attempt_name = || attempt.name();
        match attempt.how() {
            None if !died => found.push(Violation::NeverAnswered { attempt: attempt_name() }),
            Some(How::Busy) if attempt.answered_ns() < Some(attempt.asked_ns + attempt.wait_ns) => {
                found.push(Violation::GaveUpEarly { attempt: attempt_name() });
            }
            Some(how) if attempt.must && !matches!(how, How::Done | How::Before) => {
                found.push(Violation::NotItsTurn { attempt: attempt_name(), how: format!("{how:?}") });
            }
            _ => {}
        }
        let Some(answered) = attempt.answered_ns() else { continue };
        let window = (attempt.asked_ns, answered);
        let mut own = Spans::default();
        for trouble in evidence.troubles.iter().filter(|trouble| trouble.is_of(&attempt.member)) {
            own.add((trouble.from_ns, trouble.to_ns), window);
        }
        let took = (answered - attempt.asked_ns).saturating_sub(own.length());
        let limit = attempt.wait_ns + 2 * evidence.bounds.operation_ns + LATE_NS;
        // The last ones wait for as long as it takes.
        if took > limit && !attempt.must {
            found.push(Violation::Late { attempt: attempt_name(), by_ns: took - limit });
        }
    }
}

/// Who was passed by those who came later. Only of one who had no trouble while it waited can be told when it came.
pub(super) fn order(evidence: &Evidence, attempts: &[Attempt], figures: &mut Figures, found: &mut Vec<Violation>) {
    for (n, waiter) in attempts.iter().enumerate().filter(|(_, attempt)| attempt.wait_ns > 0) {
        let Some(body) = waiter.body else { continue };
        let window = (waiter.asked_ns, body.at_ns);
        if evidence.troubles.iter().any(|trouble| trouble.is_of(&waiter.member) && trouble.disturbs(window)) {
            continue;
        }
        let later = attempts[n + 1..].iter().filter(|later| later.asked_ns > waiter.asked_ns + LATER_NS);
        let came = later.take_while(|later| later.asked_ns < body.since_ns);
        let passed: Vec<_> =
            came.filter(|later| later.body.is_some_and(|theirs| theirs.at_ns < body.since_ns)).collect();
        figures.waiters_judged += 1;
        figures.most_passes = figures.most_passes.max(passed.len());
        if passed.len() > PASSES {
            let by = passed.iter().map(|attempt| attempt.name()).collect();
            found.push(Violation::Passed { attempt: waiter.name(), by });
        }
    }
}

/// For how long a lock was with nobody while somebody waited for it.
pub(super) fn gaps(evidence: &Evidence, attempts: &[Attempt], figures: &mut Figures, found: &mut Vec<Violation>) {
    let limit = evidence.bounds.ttl_ns + evidence.bounds.retry_ns + IDLE_NS;
    let mut holders: Vec<_> = attempts.iter().filter_map(|attempt| Some((attempt, attempt.body?))).collect();
    holders.sort_by_key(|(_, body)| body.at_ns);
    // The one whose body ran last, and until when.
    let mut last: Option<(&Attempt, u64)> = None;
    for (next, body) in holders {
        if let Some((holder, ended)) = last {
            let window = (ended, body.at_ns);
            let (waited, excused) = (waiting(evidence, attempts, window), excuses(evidence, attempts, window));
            let (gap, rest) = (waited.length(), waited.length_without(&excused));
            figures.longest_gap_ns = figures.longest_gap_ns.max(gap);
            figures.longest_unexcused_ns = figures.longest_unexcused_ns.max(rest);
            if holder.left.is_none() && evidence.deaths.contains_key(&holder.member) {
                figures.holders_died += 1;
                // Where nothing else was the matter.
                if gap > 0 && excused.length() == 0 {
                    figures.deaths_judged += 1;
                    figures.longest_after_death_ns = figures.longest_after_death_ns.max(gap);
                }
            }
            if rest > limit {
                let (after, next) = (holder.name(), next.name());
                found.push(Violation::StayedLocked { after, next, for_ns: rest, limit_ns: limit });
            }
        }
        if last.is_none_or(|(_, ended)| ended < body.last_ns.max(body.at_ns)) {
            last = Some((next, body.last_ns.max(body.at_ns)));
        }
    }
}

/// When somebody waited.
fn waiting(evidence: &Evidence, attempts: &[Attempt], window: (u64, u64)) -> Spans {
    let mut waited = Spans::default();
    for attempt in attempts.iter().filter(|attempt| attempt.wait_ns > 0) {
        waited.add((attempt.asked_ns, evidence.end_of_waiting(attempt)), window);
    }
    waited
}

/// When the store, or one who waits and may have been next, had trouble; and as long after it as such a one keeps its place.
fn excuses(evidence: &Evidence, attempts: &[Attempt], window: (u64, u64)) -> Spans {
    let mut excused = Spans::default();
    for trouble in &evidence.troubles {
        let place = if trouble.lingers { evidence.bounds.place_ns() } else { 0 };
        if trouble.from_ns >= window.1 || trouble.to_ns + place <= window.0 {
            continue;
        }
        if trouble.whom.is_none() {
            excused.add((trouble.from_ns, trouble.to_ns + place), window);
        }
        for attempt in attempts.iter().filter(|attempt| trouble.is_of(&attempt.member)) {
            let end = evidence.end_of_waiting(attempt);
            if attempt.asked_ns < trouble.to_ns && trouble.from_ns < end {
                // Who was answered has left its place, or had the lock.
                let answered = attempt.body.is_some() || attempt.how() == Some(&How::Busy);
                let until = if answered { end } else { end.saturating_add(place) };
                excused.add((trouble.from_ns, until.min(trouble.to_ns + place).max(trouble.to_ns)), window);
            }
        }
    }
    excused
}
