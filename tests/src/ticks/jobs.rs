//! The jobs of a simulated fleet: every policy, and bodies of every length.

use std::time::Duration;

use leader_cron::testing::{Policy, Schedule};
use leader_cron::{Delivery, Missed, Overlap};

/// A job, the same in every run.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) name: &'static str,
    /// Which of the groups it belongs to.
    pub(super) group: usize,
    /// In the first version of the program, if that one knows it, and in the second.
    schedules: [Option<&'static str>; 2],
    /// What they mean.
    parsed: [Option<Schedule>; 2],
    pub(super) policy: Policy,
    /// How long its bodies run, at least and at most, in milliseconds.
    pub(super) body: (i64, i64),
    /// A body is dropped when its lease is lost.
    pub(super) cancels: bool,
    /// The body of some ticks kills its process.
    pub(super) poison: bool,
}

/// How many groups there are: one of all instances, and one of those with the second version.
pub(super) const GROUPS: [&str; 2] = ["default", "new"];

impl Job {
    /// What this version of the program knows of it.
    pub(super) fn schedule(&self, version: usize) -> Option<Schedule> {
        self.parsed[version].clone()
    }

    /// The ticks that count, whichever version leads: those that both have.
    pub(super) fn expected(&self) -> Schedule {
        self.schedule(0).or_else(|| self.schedule(1)).expect("some version has it")
    }

    /// The versions have other ticks.
    pub(super) fn changes(&self) -> bool {
        matches!(self.schedules, [Some(first), Some(second)] if first != second)
    }

    /// One run at a time.
    pub(super) fn is_exclusive(&self) -> bool {
        self.policy.overlap == Overlap::Forbid || self.at_least_once()
    }

    pub(super) fn at_least_once(&self) -> bool {
        self.policy.delivery == Delivery::AtLeastOnce
    }

    /// A tick that is older than this is not run.
    pub(super) fn window(&self) -> Duration {
        let window = match self.policy.missed {
            Missed::Skip => Duration::from_secs(5),
            _ => self.policy.within.unwrap_or(Duration::from_secs(600)),
        };
        window + self.policy.jitter
    }

    /// The body of this tick kills its process.
    pub(super) fn kills(&self, tick: i64) -> bool {
        self.poison && tick % 300 == 0
    }
}

pub(super) fn jobs() -> Vec<Job> {
    let all = Policy { missed: Missed::All, ..Policy::DEFAULT };
    let once = Policy::DEFAULT;
    let skip = Policy { missed: Missed::Skip, ..Policy::DEFAULT };
    let least = Policy { delivery: Delivery::AtLeastOnce, ..all };
    let job = |name, expression, policy, body| Job {
        name,
        group: 0,
        schedules: [Some(expression), Some(expression)],
        parsed: [None, None],
        policy,
        body,
        cancels: false,
        poison: false,
    };
    let parse = |expression| Schedule::parse(expression, None).expect("a valid expression");
    let jobs = [
        job("second", "* * * * * *", all, (1, 20)),
        job("seven", "*/7 * * * * *", once, (10, 300)),
        job("long", "*/20 * * * * *", once, (1_000, 40_000)),
        job("skip", "*/10 * * * * *", skip, (10, 500)),
        job("least", "*/20 * * * * *", least, (500, 9_000)),
        Job {
            schedules: [Some("*/30 * * * * *"), Some("*/15 * * * * *")],
            ..job("changed", "* * * * * *", all, (1, 50))
        },
        Job { schedules: [None, Some("*/20 * * * * *")], ..job("new", "* * * * * *", all, (1, 50)) },
        Job { schedules: [None, Some("*/20 * * * * *")], group: 1, ..job("new-own", "* * * * * *", all, (1, 50)) },
        job("jitter", "*/30 * * * * *", Policy { jitter: Duration::from_secs(8), ..all }, (1, 50)),
        Job { poison: true, ..job("poison", "*/30 * * * * *", least, (400, 500)) },
        job("allow", "*/2 * * * * *", Policy { overlap: Overlap::Allow, ..all }, (500, 6_000)),
        job("allow-once", "*/5 * * * * *", Policy { overlap: Overlap::Allow, ..once }, (100, 9_000)),
        Job { cancels: true, ..job("least-cancel", "*/15 * * * * *", least, (200, 5_000)) },
        Job { cancels: true, ..job("cancel", "*/5 * * * * *", once, (100, 3_000)) },
        job("window", "*/3 * * * * *", Policy { within: Some(Duration::from_secs(20)), ..all }, (1, 200)),
    ];
    jobs.into_iter().map(|job| Job { parsed: job.schedules.map(|schedule| schedule.map(parse)), ..job }).collect()
}
