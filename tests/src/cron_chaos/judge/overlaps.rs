//! Runs of one job at a time.

use super::bodies::{Body, troubles};
use super::{Counts, Evidence, Figures, Violation, What};

/// So soon after its process goes on is a body that cannot go on over: on a busy machine.
const SOON_NS: u64 = 700_000_000;

pub(super) fn check(
    evidence: &Evidence,
    bodies: &[Body<'_>],
    counts: &mut [Counts],
    figures: &mut Figures,
    found: &mut Vec<Violation>,
) {
    let mut by_job: Vec<Vec<&Body<'_>>> = vec![Vec::new(); evidence.jobs.len()];
    for body in bodies.iter().filter(|body| evidence.jobs[body.job].kind.is_exclusive()) {
        by_job[body.job].push(body);
    }
    for (job, bodies) in by_job.iter().enumerate() {
        let mut last: Option<&Body<'_>> = None;
        for body in bodies {
            if let Some(last) = last.filter(|last| last.over.at_ns() > body.at_ns && evidence.is_news(body.at_ns)) {
                if late_line(evidence, last, body) {
                    figures.after_halts += 1;
                } else if evidence.forgot_between(last.at_ns, body.at_ns) {
                    figures.joined += 1;
                } else {
                    counts[job].overlapping += 1;
                    found.push(Violation::Overlap { first: last.to_string(), second: body.to_string() });
                }
            }
            if last.is_none_or(|last| last.over.at_ns() < body.over.at_ns()) {
                last = Some(body);
            }
        }
    }
}

/// The process of the first stood still when the second began, and the first was over as soon as it went on; or that of the
/// second had been let begin, and stood still before it could write that down.
fn late_line(evidence: &Evidence, first: &Body<'_>, second: &Body<'_>) -> bool {
    let over = first.over.at_ns();
    let mut of_first = troubles(evidence, first.member, (second.at_ns.saturating_sub(SOON_NS), over));
    let mut of_second = troubles(evidence, second.member, (second.at_ns.saturating_sub(SOON_NS), second.at_ns));
    of_first.any(|(what, _, to)| what == What::Halt && to + SOON_NS >= over)
        || of_second.any(|(what, ..)| what == What::Halt)
}
