//! One job in virtual time: the real course and the real rules of the ledger, days in seconds.
//!
//! Two instances have the job. Who leads is what the test says, or changes now and then, without a drain: what is being
//! claimed then, or asked, is under way. Wake-ups may come late, twice, or not at all but for the waker's own look; clocks may
//! be set. Everything else goes as it should, so nothing excuses a tick that is lost. (All faults at once, many jobs and the
//! real election are in [`ticks`](crate::ticks).)

mod report;
mod store;
mod world;

use std::time::Duration;

use leader_cron::testing::Policy;

pub use report::{Ran, Report};

/// How many instances there are.
pub const INSTANCES: usize = 2;

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The job's schedule.
    pub schedule: &'static str,
    /// Its time zone, if it is not UTC.
    pub zone: Option<&'static str>,
    /// Its policies.
    pub policy: Policy,
    /// What the store's clock shows at first, in seconds since 1970.
    pub begins: i64,
    /// For how long.
    pub span: Duration,
    /// How what is planned comes about.
    pub wakes: Wakes,
    /// Which clocks are set.
    pub steps: Steps,
    /// Who leads.
    pub reigns: Reigns,
    /// What is broken on purpose, so that the judge can show that it would notice.
    pub broken: Option<Broken>,
    /// Where chance begins.
    pub seed: u64,
}

/// What can be broken on purpose, about once in twenty times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A claim is permitted and not written down. Who claimed it knows better; who leads next does not.
    ClaimForgotten,
    /// A run that was permitted does not begin, and counts as one that has ended.
    RunSwallowed,
    /// The store answers by a clock that is two seconds ahead.
    ClockAhead,
    /// It is told of a tick that runs that it does not.
    ToldWrongly,
}

/// How an instance is woken for what is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wakes {
    /// When it said.
    Exact,
    /// Late, twice, too early as well, or only by the waker's look a second later; and now and then everything stands still
    /// for up to twenty seconds.
    Faulty,
}

/// Which clocks are set by −5 s and +10 s, about every five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// None.
    None,
    /// The store's, which tells all instances the time.
    Store,
    /// Each instance's own, which is the store's clock to it: a file that each of them reads by a wall clock of its own.
    Instances,
}

/// Who leads when.
#[derive(Debug, Clone)]
pub enum Reigns {
    /// The one, then the other, some minutes each.
    Alternating,
    /// From these seconds on, it is so.
    Scripted(Vec<(i64, Reign)>),
}

/// What becomes of the lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reign {
    /// This instance leads.
    Of(usize),
    /// Who leads is killed, and comes back as a follower: nobody leads.
    Killed,
}

/// Runs a plan to its end.
///
/// # Panics
/// If the course tells what cannot be.
#[must_use]
pub fn run(plan: &Plan) -> Report {
    world::World::new(plan).run()
}
