//! What a job does about ticks that were missed, runs that overlap, and runs that died.

use std::time::Duration;

/// A tick that is older than this is not run any more, unless [`Policy::within`] says otherwise: ten minutes. A hand-over takes
/// a ttl at most (10 s by default), a store that restarts or a deployment a few minutes; and last night's job does not run at
/// noon because somebody deployed.
const WITHIN: Duration = Duration::from_secs(600);

/// A run that died is tried so often in all, with [`Delivery::AtLeastOnce`]: a tick that kills whoever runs it ends.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// What becomes of ticks that were not run in time: nobody led, the leader stood still, the store was away, or the run before
/// was still on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Missed {
    /// The newest is run, and told how many came before it: [`Tick::missed`](crate::Tick::missed).
    #[default]
    Once,
    /// None is run that is more than five seconds late.
    Skip,
    /// All are run, in order, one after another; the newest thousand, if there are more.
    All,
}

/// Whether two runs of one job may be on at a time, in the whole fleet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Overlap {
    /// No: a tick that comes due meanwhile waits, and is then treated as a missed one.
    #[default]
    Forbid,
    /// Yes, as many as come due.
    Allow,
}

/// What becomes of a tick whose run died half-way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Delivery {
    /// Nothing: a body begins at most once for a tick.
    #[default]
    AtMostOnce,
    /// The next leader runs it again, with [`Tick::attempt`](crate::Tick::attempt) one higher, three times in all.
    AtLeastOnce,
}

/// The policies of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What becomes of ticks that were missed.
    pub missed: Missed,
    /// How old a tick may be that is run; ten minutes, if nothing else is said.
    pub within: Option<Duration>,
    /// Whether runs may overlap.
    pub overlap: Overlap,
    /// What becomes of a tick whose run died.
    pub delivery: Delivery,
    /// How long a run may take.
    pub timeout: Option<Duration>,
    /// A run begins up to so much later than its tick.
    pub jitter: Duration,
}

impl Policy {
    /// What holds unless something else is said.
    pub const DEFAULT: Self = Self {
        missed: Missed::Once,
        within: None,
        overlap: Overlap::Forbid,
        delivery: Delivery::AtMostOnce,
        timeout: None,
        jitter: Duration::ZERO,
    };

    pub(crate) fn within(&self) -> Duration {
        self.within.unwrap_or(WITHIN)
    }

    /// A run of the job excludes others: what tells a run that died is its slot, of which a job has one.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.overlap == Overlap::Forbid || self.delivery == Delivery::AtLeastOnce
    }

    /// What is wrong with these policies for a job with ticks in this distance at least; `grouped`: it is run once in the fleet.
    pub(crate) fn check(&self, grouped: bool, period: Duration) -> Result<(), String> {
        let Self { missed, within, delivery, jitter, .. } = *self;
        if !grouped && (Self { timeout: None, ..*self }) != Self::DEFAULT {
            return Err(
                "`missed`, `within`, `overlap`, `delivery` and `jitter` are kept in the ledger of a group: give the \
                        job one, by #[leader_only] or Job::group"
                    .to_owned(),
            );
        }
        if missed == Missed::Skip && within.is_some() {
            return Err(
                "`within` says how old a missed tick may be that is run, and `missed = \"skip\"` runs none: leave one \
                        of them out"
                    .to_owned(),
            );
        }
        if delivery == Delivery::AtLeastOnce && self.overlap == Overlap::Allow {
            return Err(
                "`delivery = \"at-least-once\"` tells a run that died by its slot, of which a job has one: leave out \
                        `overlap = \"allow\"`"
                    .to_owned(),
            );
        }
        if jitter >= period {
            return Err(format!(
                "two of its ticks are {period:?} apart, and a jitter of {jitter:?} would mix them up: make it shorter than that"
            ));
        }
        if let Some(zero) = [self.timeout, within].into_iter().flatten().find(Duration::is_zero) {
            return Err(format!(
                "a `timeout` or `within` of {zero:?} leaves no time for any run: leave it out for the default"
            ));
        }
        Ok(())
    }

    /// What will surprise.
    pub(crate) fn warning(&self, period: Duration, blocking: bool) -> Option<String> {
        if let Some(timeout) = self.timeout.filter(|_| blocking) {
            return Some(format!(
                "a `timeout` ({timeout:?}) does nothing for work that blocks its thread, which cannot be cut: make the work async, or \
                 let it look at the clock itself"
            ));
        }
        let timeout = self.timeout.filter(|timeout| *timeout > period && self.overlap == Overlap::Forbid)?;
        Some(format!(
            "a run may take {timeout:?}, and two of the ticks are {period:?} apart: a tick that comes while a run is on waits for its \
             end, and is then run only if it is the newest"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn what_does_not_go_together_is_refused_with_what_would() {
        let wrong = [
            (Policy { missed: Missed::All, ..Policy::DEFAULT }, false, "give the job one"),
            (Policy { missed: Missed::Skip, within: Some(MINUTE), ..Policy::DEFAULT }, true, "leave one of them out"),
            (
                Policy { delivery: Delivery::AtLeastOnce, overlap: Overlap::Allow, ..Policy::DEFAULT },
                true,
                "leave out `overlap",
            ),
            (Policy { jitter: MINUTE, ..Policy::DEFAULT }, true, "shorter than that"),
            (Policy { within: Some(Duration::ZERO), ..Policy::DEFAULT }, true, "leave it out"),
        ];
        for (policy, grouped, advice) in wrong {
            let reason = policy.check(grouped, MINUTE).unwrap_err();
            assert!(reason.contains(advice), "{reason}");
        }
        assert_eq!(Policy::DEFAULT.check(false, MINUTE), Ok(()));
        assert_eq!(Policy { timeout: Some(MINUTE), ..Policy::DEFAULT }.check(false, MINUTE), Ok(()));
    }

    #[test]
    fn a_timeout_above_the_period_is_warned_about_where_runs_exclude_each_other() {
        let long = Policy { timeout: Some(2 * MINUTE), ..Policy::DEFAULT };
        assert!(long.warning(MINUTE, false).unwrap().contains("waits for its end"));
        assert_eq!(Policy { overlap: Overlap::Allow, ..long }.warning(MINUTE, false), None);
        assert_eq!(Policy::DEFAULT.warning(MINUTE, false), None);
    }

    #[test]
    fn a_timeout_of_work_that_cannot_be_cut_is_warned_about() {
        let short = Policy { timeout: Some(MINUTE / 2), ..Policy::DEFAULT };
        assert!(short.warning(MINUTE, true).unwrap().contains("cannot be cut"));
        assert_eq!(short.warning(MINUTE, false), None);
        assert_eq!(Policy::DEFAULT.warning(MINUTE, true), None);
    }
}
