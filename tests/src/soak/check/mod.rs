//! What must never be, and how it is noticed in what the processes write: part after part, so that a soak may last for hours.
//!
//! - [`views`]: no two lead a group at once, terms rise; and how soon somebody leads again after a fault.
//! - [`ticks`]: what a window of time hands to the judge of `cron-chaos`.
//! - [`locks`]: no two hold a lock, tokens rise, and what is done once is done once.
//! - [`wear`]: what processes and servers have in use.

pub(super) mod locks;
pub(super) mod ticks;
pub(super) mod views;
pub(super) mod wear;

use std::fmt;
use std::time::Duration;

use crate::chaos::check::Violation as OfLocks;
use crate::cron_chaos::judge::Violation as OfTicks;

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the message of each says it")]
pub enum Violation {
    Leaders(String),
    Term(String),
    Tick(OfTicks),
    LateTick { member: String, job: String, tick: i64 },
    Lock(OfLocks),
    DoneTwice { first: String, second: String },
    NoLeader { group: String, waited: Duration },
    NoAnswer { member: String, waited: Duration, wrote: String },
    BadEnd { member: String, wrote: String },
    Grown { what: String, first: u64, last: u64, most: u64 },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaders(what) => write!(f, "two leaders: {what}"),
            Self::Term(what) => write!(f, "term: {what}"),
            Self::Tick(what) => write!(f, "tick: {what}"),
            Self::LateTick { member, job, tick } => {
                write!(f, "tick: {member} began {job} at {tick} long after all was known of that tick")
            }
            Self::Lock(what) => write!(f, "lock: {what}"),
            Self::DoneTwice { first, second } => write!(f, "done twice: after {first} by {second}"),
            Self::NoLeader { group, waited } => {
                write!(f, "no leader: nobody leads {group} {waited:.0?} after all faults have ended")
            }
            Self::NoAnswer { member, waited, wrote } => {
                write!(f, "no answer: {member} does not do what it is told, for {waited:.0?}; it wrote last:\n{wrote}")
            }
            Self::BadEnd { member, wrote } => {
                write!(f, "bad end: {member} did not end as it should; it wrote last:\n{wrote}")
            }
            Self::Grown { what, first, last, most } => {
                write!(f, "grown: {what}, from {first} in the first third to {last} in the last; {most} would be right")
            }
        }
    }
}
