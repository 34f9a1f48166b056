//! The ways in which a fleet loses a leader, and when.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::cli::{Course, Options};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// SIGKILL: it crashes.
    Kill,
    /// SIGSTOP for longer than the ttl, then SIGCONT: it hangs.
    Stall,
    /// SIGTERM: it is asked to end.
    Drain,
}

impl Fault {
    pub const ALL: [Self; 3] = [Self::Kill, Self::Stall, Self::Drain];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stall => "stall",
            Self::Drain => "drain",
        }
    }

    /// What is planned.
    pub fn plan(self, ttl: Duration) -> String {
        match self {
            Self::Kill => "SIGKILL to the leader of default".to_owned(),
            Self::Stall => format!("SIGSTOP to the next leader, for {:?}: longer than its lease lasts", stall(ttl)),
            Self::Drain => "SIGTERM to the one after that".to_owned(),
        }
    }

    /// What is about to happen to `victim`.
    pub fn words(self, victim: &str, ttl: Duration) -> String {
        match self {
            Self::Kill => format!("SIGKILL to {victim}, the leader of default: it can neither finish nor say goodbye"),
            Self::Stall => format!(
                "SIGSTOP to {victim}, the leader of default, for {:?}: it hangs for longer than its lease lasts",
                stall(ttl)
            ),
            Self::Drain => {
                format!("SIGTERM to {victim}, the leader of default: it finishes its work and gives its leases back")
            }
        }
    }
}

/// How long a stalled leader stands still.
pub fn stall(ttl: Duration) -> Duration {
    ttl + ttl / 2
}

/// One fault to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub fault: Fault,
    /// How long after the whole fleet was ready; `None`: as soon as the fleet is whole again.
    pub at: Option<Duration>,
}

/// All faults to come, in order.
pub fn steps(options: &Options) -> VecDeque<Step> {
    match options.course {
        Course::Timed { calm: true, .. } => VecDeque::new(),
        // The stall gets the longest part, as it lasts longer than the ttl.
        Course::Timed { time, calm: false } => [(Fault::Kill, 15), (Fault::Stall, 35), (Fault::Drain, 75)]
            .map(|(fault, percent)| Step { fault, at: Some(time * percent / 100) })
            .into(),
        Course::Rounds(rounds) => {
            let round = Fault::ALL.map(|fault| Step { fault, at: None });
            std::iter::repeat_n(round, rounds).flatten().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(course: Course) -> Options {
        Options { store: None, instances: 3, ttl: Duration::from_secs(3), course, json: false, log: None }
    }

    #[test]
    fn each_fault_is_over_before_the_next_one_and_the_last_before_the_end() {
        for seconds in [15, 20, 60] {
            let time = Duration::from_secs(seconds);
            let steps = steps(&options(Course::Timed { time, calm: false }));
            let at: Vec<Duration> = steps.iter().filter_map(|step| step.at).collect();
            assert_eq!(at.len(), 3);
            assert!(at[1] + stall(Duration::from_secs(3)) < at[2], "{at:?}");
            assert!(at[2] + Duration::from_secs(2) < time, "{at:?}");
        }
    }

    #[test]
    fn a_round_has_each_fault_once() {
        let faults: Vec<Fault> = steps(&options(Course::Rounds(2))).iter().map(|step| step.fault).collect();
        assert_eq!(faults, [Fault::ALL, Fault::ALL].concat());
        assert!(steps(&options(Course::Timed { time: Duration::ZERO, calm: true })).is_empty());
    }
}
