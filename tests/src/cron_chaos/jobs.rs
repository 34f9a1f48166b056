//! The jobs of a chaos: what each is, and what it promises.

use std::time::Duration;

use leader_cron::{Delivery, Missed, Overlap};
use serde::{Deserialize, Serialize};

use crate::sim::rng::Rng;

/// The group of all jobs, unless they are spread over several.
pub const GROUP: &str = "chaos";

/// Jobs with the same policies.
#[derive(Debug)]
pub struct Kind {
    /// What their names begin with.
    pub name: &'static str,
    /// The cron expression.
    pub schedule: &'static str,
    /// From one tick to the next, in seconds.
    pub period: i64,
    /// What becomes of missed ticks.
    pub missed: Missed,
    /// What becomes of a tick whose run died.
    pub delivery: Delivery,
    /// Whether two runs may be on at a time.
    pub overlap: Overlap,
    /// How long a body takes: at least, and at most.
    pub length: (Duration, Duration),
    /// How many there are.
    many: Many,
}

/// How many jobs are of a kind.
#[derive(Debug)]
enum Many {
    /// So many percent of those that come each second.
    Percent(usize),
    /// So many.
    Just(usize),
}

/// A job.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// What it is.
    pub kind: &'static Kind,
}

/// Which jobs a process has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jobs {
    /// Of all kinds, so many ticks each second.
    All(usize),
    /// The same, spread over these groups.
    Spread(usize, Vec<String>),
    /// One, at least once, with a body that takes its time.
    Slow,
}

const fn ms(from: u64, to: u64) -> (Duration, Duration) {
    (Duration::from_millis(from), Duration::from_millis(to))
}

const PLAIN: Kind = Kind {
    name: "",
    schedule: "* * * * * *",
    period: 1,
    missed: Missed::All,
    delivery: Delivery::AtMostOnce,
    overlap: Overlap::Forbid,
    length: ms(0, 12),
    many: Many::Just(1),
};

/// Every kind.
pub static KINDS: [Kind; 10] = [
    // Each of their ticks is to be begun, with no excuse, and to end.
    Kind { name: "again", delivery: Delivery::AtLeastOnce, many: Many::Percent(60), ..PLAIN },
    // Each of theirs is to be begun, unless it was claimed by a process that was killed.
    Kind { name: "all", many: Many::Percent(40), ..PLAIN },
    Kind { name: "once", missed: Missed::Once, many: Many::Just(4), ..PLAIN },
    Kind { name: "once-again", missed: Missed::Once, delivery: Delivery::AtLeastOnce, many: Many::Just(3), ..PLAIN },
    Kind { name: "skip", missed: Missed::Skip, many: Many::Just(2), ..PLAIN },
    Kind { name: "beside", overlap: Overlap::Allow, length: ms(1_200, 1_600), many: Many::Just(2), ..PLAIN },
    // Their bodies outlive the period.
    Kind { name: "long", missed: Missed::Once, length: ms(1_300, 1_500), many: Many::Just(2), ..PLAIN },
    Kind {
        name: "long-again",
        missed: Missed::Once,
        delivery: Delivery::AtLeastOnce,
        length: ms(1_300, 1_500),
        many: Many::Just(2),
        ..PLAIN
    },
    // Here the time before a tick is empty.
    Kind {
        name: "rare",
        schedule: "*/5 * * * * *",
        period: 5,
        delivery: Delivery::AtLeastOnce,
        length: ms(0, 300),
        many: Many::Just(6),
        ..PLAIN
    },
    SLOW,
];

const SLOW: Kind = Kind {
    name: "slow",
    schedule: "*/3 * * * * *",
    period: 3,
    delivery: Delivery::AtLeastOnce,
    length: ms(800, 900),
    many: Many::Just(2),
    ..PLAIN
};

static ONE_SLOW: Kind = Kind { many: Many::Just(1), ..SLOW };

impl Jobs {
    /// All of them, each with its index.
    #[must_use]
    pub fn list(&self) -> Vec<Facts> {
        let mut all: Vec<_> = match self {
            Self::Slow => ONE_SLOW.list(1).collect(),
            Self::All(rate) | Self::Spread(rate, _) => KINDS.iter().flat_map(|kind| kind.list(*rate)).collect(),
        };
        if let Self::Spread(_, groups) = self {
            for (job, group) in all.iter_mut().zip(groups.iter().cycle()) {
                job.group.clone_from(group);
            }
        }
        all
    }
}

impl Kind {
    fn list(&'static self, rate: usize) -> impl Iterator<Item = Facts> {
        let many = match self.many {
            Many::Percent(percent) => (rate * percent).div_ceil(100),
            Many::Just(many) => many,
        };
        (0..many).map(move |number| {
            let (name, group) = (format!("{}-{number}", self.name), GROUP.to_owned());
            Facts { name, group, kind: self }
        })
    }

    /// Two runs exclude each other.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.overlap == Overlap::Forbid
    }

    /// A run that died is repeated.
    #[must_use]
    pub fn is_at_least_once(&self) -> bool {
        self.delivery == Delivery::AtLeastOnce
    }

    /// Nothing excuses that a tick of such a job was not begun, and nothing that it did not end: bodies are too short to die
    /// again and again.
    #[must_use]
    pub fn has_no_excuse(&self) -> bool {
        self.missed == Missed::All && self.is_at_least_once() && self.length.1 < Duration::from_millis(100)
    }

    /// The tick at `second` or the first after it.
    #[must_use]
    pub fn first_tick(&self, second: i64) -> i64 {
        (second + self.period - 1).div_euclid(self.period) * self.period
    }
}

impl Facts {
    /// How long the body of a tick takes.
    #[must_use]
    pub fn length(&self, index: usize, tick: i64) -> Duration {
        let (least, most) = self.kind.length;
        let mut rng = Rng::new(tick.unsigned_abs() << 16 | index as u64);
        least + (most - least).mul_f64(rng.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_ticks_as_are_asked_for_come_each_second_and_most_have_no_excuse() {
        let jobs = Jobs::All(500).list();
        let each_second = |job: &&Facts| job.kind.period == 1;
        assert!(jobs.iter().filter(each_second).count() >= 500);
        let strict = jobs.iter().filter(|job| job.kind.missed == Missed::All && job.kind.is_at_least_once());
        assert!(2 * strict.filter(each_second).count() > jobs.len());
        let mut names: Vec<_> = jobs.iter().map(|job| &job.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), jobs.len());
    }

    #[test]
    fn ticks_are_those_of_the_schedule() {
        let rare = Jobs::All(1).list().into_iter().find(|job| job.kind.period == 5).unwrap();
        assert_eq!([100, 101, 105].map(|second| rare.kind.first_tick(second)), [100, 105, 105]);
    }
}
