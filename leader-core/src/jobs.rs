//! The jobs that are scheduled on an elector: none may be twice, and instances compare them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::doctor::lines_of_jobs;
use crate::group::GroupName;
use crate::shared::Shared;

/// Of one elector.
#[derive(Default)]
pub(crate) struct Jobs {
    known: Mutex<Known>,
    changed: Notify,
}

/// The group that runs a job on its leader, and its schedule; none, of a job that each instance runs.
type OfGroup = Option<(GroupName, String)>;

/// A job's name, and with the group that runs it on its leader, if it is of one, its schedule.
#[doc(hidden)]
pub type NamedJob = (Arc<str>, Option<(GroupName, String)>);

#[derive(Default)]
struct Known {
    all: BTreeMap<Arc<str>, OfGroup>,
    /// How often they have changed; 0 before the first scheduler was started, even one without jobs.
    changes: u64,
}

impl Jobs {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is one assignment: a poisoned one is whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<Arc<str>, OfGroup>) -> T) -> T {
        let mut known = self.known();
        let done = change(&mut known.all);
        known.changes += 1;
        drop(known);
        self.changed.notify_one();
        done
    }

    /// Takes all these names, or none; the error names those that are taken.
    pub(crate) fn take(&self, jobs: &[NamedJob]) -> Result<(), Vec<Arc<str>>> {
        let taken = |known: &Known| {
            let taken = jobs.iter().filter(|(name, _)| known.all.contains_key(name));
            taken.map(|(name, _)| Arc::clone(name)).collect::<Vec<_>>()
        };
        let taken = taken(&self.known());
        if !taken.is_empty() {
            return Err(taken);
        }
        self.change(|all| all.extend(jobs.iter().cloned()));
        Ok(())
    }

    /// How often they have changed.
    pub(crate) fn changes(&self) -> u64 {
        self.known().changes
    }

    /// Resolves after a change; for the driver alone.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What instances tell each other about the jobs of a group; nothing before any were started.
    pub(crate) fn lines(&self, group: &GroupName) -> Vec<String> {
        let known = self.known();
        if known.changes == 0 {
            return Vec::new();
        }
        lines_of_jobs(known.all.iter().filter_map(|(name, of)| {
            let (of, schedule) = of.as_ref()?;
            (of == group).then_some((&**name, schedule.as_str()))
        }))
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known().all.keys()).finish()
    }
}

/// Names of jobs that are scheduled on an elector, for as long as this lives.
#[doc(hidden)]
#[derive(Debug)]
pub struct JobClaim {
    elector: Arc<Shared>,
    names: Vec<Arc<str>>,
}

impl JobClaim {
    pub(crate) fn new(elector: Arc<Shared>, names: Vec<Arc<str>>) -> Self {
        Self { elector, names }
    }

    /// All names were given up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Gives one of the names up.
    pub fn release(&mut self, name: &str) {
        if let Some(place) = self.names.iter().position(|known| **known == *name) {
            self.names.swap_remove(place);
            self.elector.jobs.change(|all| all.remove(name));
        }
    }
}

impl Drop for JobClaim {
    fn drop(&mut self) {
        self.elector.jobs.change(|all| all.retain(|job, _| !self.names.contains(job)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_group_are_its_own_jobs_once_any_were_started() {
        let (jobs, group) = (Jobs::default(), |name: &str| GroupName::new(name).unwrap());
        assert!(jobs.lines(&group("a")).is_empty());
        jobs.take(&[]).unwrap();
        assert_eq!((jobs.lines(&group("a")), jobs.changes()), (vec!["@".to_owned()], 1));
        let of = |name: &str, of: &str| (Arc::from(name), Some((group(of), "0 0 * * * * UTC".to_owned())));
        let all = [of("z", "a"), of("b", "a"), of("c", "other"), (Arc::from("everywhere"), None)];
        jobs.take(&all).unwrap();
        assert_eq!(jobs.lines(&group("a")), ["@", "@b 0 0 * * * * UTC", "@z 0 0 * * * * UTC"]);
        assert_eq!(jobs.take(&[of("new", "a"), of("z", "a")]), Err(vec![Arc::from("z")]));
        assert_eq!(jobs.changes(), 2, "all or none");
    }
}
