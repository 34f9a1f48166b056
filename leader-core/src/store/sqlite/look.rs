//! What the doctor is told of a file and of those who use it. The worker looks, in short jobs between its others.

use std::collections::{BTreeMap, BTreeSet};

use super::card::Card;
use super::database::Database;
use super::failure::Failure;
use super::place::{FileSystem, in_container};
use super::row::Row;
use super::witness::Witness;
use super::{life, ticks};
use crate::clock::BootInstant;
use crate::group::GroupName;
use crate::identity::Incarnation;
use crate::store::JobName;

/// Rows of so many groups are read in one job: what else the worker has to do need not wait for more.
pub(super) const AT_ONCE: usize = 100;

/// What was found beside the rows.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    pub(super) file_system: Option<FileSystem>,
    pub(super) in_container: bool,
    /// All that live by this file, or may; nothing of those that do not say who they are, or are just about to.
    pub(super) alive: BTreeMap<Incarnation, Option<Card>>,
    /// Groups whose leases were seen to be renewed under another kernel.
    pub(super) elsewhere: BTreeSet<GroupName>,
}

/// What the file holds of a group.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    /// Or why it cannot be read.
    pub(super) lease: Result<Row, String>,
    /// Each job that it has a record of, with the last tick that was claimed, in seconds since 1970.
    pub(super) jobs: Vec<(JobName, i64)>,
}

impl Surroundings {
    pub(super) fn see(database: &Database, witness: &Witness) -> Result<Self, Failure> {
        let locks = database.locks();
        let alive = life::alive(locks, database.id());
        Ok(Self {
            file_system: FileSystem::of(locks),
            in_container: in_container(),
            alive: alive.map_err(|error| Failure::of_file(&locks.display().to_string(), &error))?,
            elsewhere: witness.elsewhere().clone(),
        })
    }
}

impl Rows {
    /// Of each of these groups, at one moment.
    pub(super) fn read(
        database: &mut Database,
        groups: Vec<GroupName>,
        deadline: BootInstant,
    ) -> Result<BTreeMap<GroupName, Self>, Failure> {
        let snapshot = database.look(deadline)?;
        let read = |group: GroupName| {
            let lease = Row::read(&snapshot, &group).map_err(|error| error.to_string());
            let rows = Self { lease, jobs: ticks::jobs_of(&snapshot, &group)? };
            Ok((group, rows))
        };
        groups.into_iter().map(read).collect()
    }
}
