//! Bodies, put together from the lines of their processes.

use std::collections::HashMap;
use std::fmt;

use super::{Evidence, Trouble, What};
use crate::cron_chaos::line::Line;

/// A body that began.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub(super) member: &'a str,
    /// The index of its job.
    pub(super) job: usize,
    pub(super) name: &'a str,
    pub(super) tick: i64,
    pub(super) attempt: u32,
    pub(super) missed: u64,
    term: u64,
    pub(super) at_ns: u64,
    pub(super) true_us: i64,
    pub(super) own_us: i64,
    pub(super) over: Over,
}

/// How a body was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// It came to its end.
    Ended(u64),
    /// It was dropped.
    Cut(u64),
    /// It wrote nothing more; its process was dead by then.
    Died(u64),
}

impl Over {
    /// Surely over by then.
    pub(super) fn at_ns(self) -> u64 {
        let (Self::Ended(at) | Self::Cut(at) | Self::Died(at)) = self;
        at
    }
}

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, name, tick, attempt, term, at_ns, over, .. } = self;
        let at = *at_ns as f64 / 1e9;
        write!(f, "{name} {tick} attempt {attempt} by {member} term {term} at {at:.4} ")?;
        let ms = (over.at_ns().saturating_sub(*at_ns)) as f64 / 1e6;
        match over {
            Over::Ended(_) => write!(f, "ended after {ms:.1} ms"),
            Over::Cut(_) => write!(f, "cut after {ms:.1} ms"),
            Over::Died(_) => write!(f, "died within {ms:.1} ms"),
        }
    }
}

/// All, by the instant at which they began.
pub(super) fn bodies(evidence: &Evidence) -> Vec<Body<'_>> {
    let index: HashMap<_, _> =
        evidence.jobs.iter().enumerate().map(|(index, job)| (job.name.as_str(), index)).collect();
    let mut all = Vec::new();
    for (member, lines) in &evidence.members {
        let mut overs = HashMap::new();
        let mut last = 0;
        for line in lines {
            match line {
                Line::Ended { run, at_ns } => drop(overs.insert(*run, Over::Ended(*at_ns))),
                Line::Cut { run, at_ns } => drop(overs.insert(*run, Over::Cut(*at_ns))),
                Line::Began { at_ns, .. } => last = last.max(*at_ns),
                _ => {}
            }
        }
        let dead = Over::Died(evidence.deaths.get(member).map_or(last, |death| death.to_ns));
        for line in lines {
            let Line::Began { run, job, tick, attempt, missed, term, at_ns, true_us, own_us, .. } = line else {
                continue;
            };
            let Some((name, index)) = index.get_key_value(job.as_str()) else { continue };
            all.push(Body {
                member,
                job: *index,
                name,
                tick: *tick,
                attempt: *attempt,
                missed: *missed,
                term: *term,
                at_ns: *at_ns,
                true_us: *true_us,
                own_us: *own_us,
                over: overs.get(run).copied().unwrap_or(dead),
            });
        }
    }
    all.sort_by_key(|body| body.at_ns);
    all
}

/// What went wrong with a process, or with all, and reaches into that time.
pub(super) fn troubles<'a>(
    evidence: &'a Evidence,
    member: &'a str,
    (from_ns, to_ns): (u64, u64),
) -> impl Iterator<Item = (What, u64, u64)> + 'a {
    let noted =
        evidence.troubles.iter().filter(move |trouble| trouble.whom.as_deref().is_none_or(|whom| whom == member));
    let noted = noted.map(|Trouble { what, from_ns, to_ns, .. }| (*what, *from_ns, *to_ns));
    let stalls = evidence.members.get(member).into_iter().flatten().filter_map(|line| match line {
        Line::Stalled { from_ns, to_ns } => Some((What::Halt, *from_ns, *to_ns)),
        _ => None,
    });
    noted.chain(stalls).filter(move |(_, from, to)| *from <= to_ns && from_ns <= *to)
}
