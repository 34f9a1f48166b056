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
    all: BTreeMap<Arc<str>, Scheduled>,
    /// How often they have changed; 0 before the first scheduler was started, even one without jobs.
    changes: u64,
}

struct Scheduled {
    of: OfGroup,
    /// Its scheduler was stopped: the name is free. Others are told of it all the same, for an elector that ends its work is no
    /// new version of the program; until the next scheduler or job says what is done from there on.
    stopped: bool,
}

impl Jobs {
    fn known(&self) -> MutexGuard<'_, Known> {
        // No change is given up halfway: a poisoned one is whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all these names, or none; the error names those that are taken.
    pub(crate) fn take(&self, jobs: &[NamedJob]) -> Result<(), Vec<Arc<str>>> {
        // One look and one change: of two who want a name, one gets it.
        let mut known = self.known();
        let is_taken = |name: &Arc<str>| known.all.get(name).is_some_and(|job| !job.stopped);
        let taken: Vec<_> = jobs.iter().map(|(name, _)| name).filter(|name| is_taken(name)).cloned().collect();
        if !taken.is_empty() {
            return Err(taken);
        }
        known.all.retain(|_, job| !job.stopped);
        known
            .all
            .extend(jobs.iter().map(|(name, of)| (Arc::clone(name), Scheduled { of: of.clone(), stopped: false })));
        self.tell(known);
        Ok(())
    }

    /// Gives one up, which this elector does no more.
    fn release(&self, name: &str) {
        let mut known = self.known();
        known.all.remove(name);
        self.tell(known);
    }

    /// Gives the names up, and no more: what instances tell each other stays.
    fn stop(&self, names: &[Arc<str>]) {
        let mut known = self.known();
        for name in names {
            if let Some(job) = known.all.get_mut(name) {
                job.stopped = true;
            }
        }
    }

    fn tell(&self, mut known: MutexGuard<'_, Known>) {
        known.changes += 1;
        drop(known);
        self.changed.notify_one();
    }

    /// How often they have changed.
    pub(crate) fn changes(&self) -> u64 {
        self.known().changes
    }

    /// Resolves after a change; for the driver alone.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What instances tell each other about the jobs of each group, which is to be asked for once; nothing before any were
    /// started.
    pub(crate) fn lines(&self) -> impl FnMut(&GroupName) -> Vec<String> + use<> {
        let known = self.known();
        let started = known.changes > 0;
        // In one go: there may be very many of both.
        let mut by_group: BTreeMap<GroupName, Vec<(Arc<str>, String)>> = BTreeMap::new();
        for (name, job) in &known.all {
            if let Some((group, schedule)) = &job.of {
                by_group.entry(group.clone()).or_default().push((Arc::clone(name), schedule.clone()));
            }
        }
        drop(known);
        move |group| {
            if !started {
                return Vec::new();
            }
            let jobs = by_group.remove(group).unwrap_or_default();
            lines_of_jobs(jobs.iter().map(|(name, schedule)| (&**name, schedule.as_str())))
        }
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known();
        f.debug_set().entries(known.all.iter().filter(|(_, job)| !job.stopped).map(|(name, _)| name)).finish()
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

    /// Gives one of the names up, and tells other instances so; at the end of this they are told nothing.
    pub fn release(&mut self, name: &str) {
        if let Some(place) = self.names.iter().position(|known| **known == *name) {
            self.names.swap_remove(place);
            self.elector.jobs.release(name);
        }
    }
}

impl Drop for JobClaim {
    fn drop(&mut self) {
        self.elector.jobs.stop(&self.names);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    fn group(name: &str) -> GroupName {
        GroupName::new(name).unwrap()
    }

    fn job(name: &str, of: &str) -> NamedJob {
        (Arc::from(name), Some((group(of), "0 0 * * * * UTC".to_owned())))
    }

    fn lines(jobs: &Jobs, of: &str) -> Vec<String> {
        jobs.lines()(&group(of))
    }

    #[test]
    fn what_is_told_of_a_group_are_its_own_jobs_once_any_were_started() {
        let jobs = Jobs::default();
        assert!(lines(&jobs, "a").is_empty());
        jobs.take(&[]).unwrap();
        assert_eq!((lines(&jobs, "a"), jobs.changes()), (vec!["@".to_owned()], 1));
        let all = [job("z", "a"), job("b", "a"), job("c", "other"), (Arc::from("everywhere"), None)];
        jobs.take(&all).unwrap();
        let mut of_each = jobs.lines();
        assert_eq!(of_each(&group("other")), ["@", "@c 0 0 * * * * UTC"]);
        assert_eq!(of_each(&group("a")), ["@", "@b 0 0 * * * * UTC", "@z 0 0 * * * * UTC"]);
        assert_eq!(of_each(&group("idle")), ["@"]);
        assert_eq!(jobs.take(&[job("new", "a"), job("z", "a")]), Err(vec![Arc::from("z")]));
        assert_eq!(jobs.changes(), 2, "all or none");
    }

    #[test]
    fn of_two_who_want_a_name_at_one_time_one_gets_it() {
        const ROUNDS: usize = 100_000;
        let rounds: Vec<Jobs> = (0..ROUNDS).map(|_| Jobs::default()).collect();
        let (barrier, wanted) = (Barrier::new(2), [job("digest", "a")]);
        // Who comes second is the faster one, and so they stay together.
        let all = || {
            barrier.wait();
            rounds.iter().map(|jobs| jobs.take(&wanted).is_ok()).collect::<Vec<_>>()
        };
        let (one, other) = thread::scope(|scope| {
            let other = scope.spawn(all);
            (all(), other.join().unwrap())
        });
        for (round, (one, other)) in one.into_iter().zip(other).enumerate() {
            assert!(one != other, "round {round}: {one} and {other}");
        }
    }

    #[test]
    fn names_of_a_scheduler_that_was_stopped_are_free_and_told_until_somebody_starts_others() {
        let jobs = Jobs::default();
        jobs.take(&[job("b", "a"), job("c", "a")]).unwrap();
        jobs.take(&[job("d", "a")]).unwrap();
        jobs.stop(&["b", "c"].map(Arc::from));
        assert_eq!(lines(&jobs, "a").len(), 4, "and none is gone");
        assert_eq!((jobs.changes(), format!("{jobs:?}")), (2, r#"{"d"}"#.to_owned()));
        jobs.release("c");
        assert_eq!((lines(&jobs, "a").len(), jobs.changes()), (3, 3));
        assert_eq!(jobs.take(&[job("e", "a"), job("d", "a")]), Err(vec![Arc::from("d")]));
        jobs.take(&[job("e", "a")]).unwrap();
        assert_eq!(lines(&jobs, "a"), ["@", "@d 0 0 * * * * UTC", "@e 0 0 * * * * UTC"]);
    }
}
