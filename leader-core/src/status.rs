//! A snapshot of an elector, for people and dashboards.

use std::time::Duration;

use crate::group::GroupName;
use crate::identity::InstanceId;
use crate::lease::Term;
use crate::store::{Guarantees, LockKey};
use crate::work::RunningWork;

/// What an elector knows and does. Taken without I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Status {
    /// Who this instance is.
    pub instance: InstanceId,
    /// The store's address, without a password.
    pub store: String,
    /// What the store promises.
    pub guarantees: Guarantees,
    /// Each group, in order of its name.
    pub groups: Vec<GroupStatus>,
    /// What somebody should look at, with the group that it is about, if it is about one.
    pub problems: Vec<Problem>,
    /// Work that is running, gated or registered as ungated.
    pub running: Vec<RunningWork>,
    /// Locks that this instance holds or waits for.
    pub locks: LocksStatus,
    /// Log lines that were dropped because the log was blocked.
    pub dropped_log_lines: u64,
}

/// The locks of an instance, in a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LocksStatus {
    /// How many it holds.
    pub held: usize,
    /// How many it waits for.
    pub waiting: usize,
    /// Those that were asked for longest ago, 20 at most: there may be very many.
    pub oldest: Vec<LockStatus>,
}

/// One lock of a [`LocksStatus`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LockStatus {
    /// What is locked.
    pub key: LockKey,
    /// Whether it is held, or waited for.
    pub held: bool,
    /// Since when it was asked for.
    pub asked_ago: Duration,
}

/// One group of a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GroupStatus {
    /// Its name.
    pub group: GroupName,
    /// What this instance is in it.
    pub standing: Standing,
    /// Who leads, as far as it is known here: this instance, or another one as it was last seen.
    pub leader: Option<InstanceId>,
    /// The number of the leader's acquisition.
    pub term: Option<Term>,
    /// How long the leader's lease lasts, as far as it is known here, unless it is renewed.
    pub remaining: Option<Duration>,
}

/// What an instance is in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Standing {
    /// It leads.
    Leader,
    /// It would lead if the leader stopped.
    Follower,
    /// It only looks who leads.
    Observer,
    /// It stays out on purpose: after a step-down for a ttl, after a drain until resumed.
    Abstaining,
    /// Another process with its instance id leads: it stays out until restarted.
    Duplicate,
}

/// Something that somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Problem {
    /// The group, if it is about one.
    pub group: Option<GroupName>,
    /// What was tried, what happened, what to do.
    pub text: String,
}
