//! Whether the old names of jobs make sense.

use std::sync::Arc;

use leader_core::GroupName;

use crate::error::JobProblem;
use crate::job::{Job, Place};
use crate::live_job::LiveJob;

/// A job, as far as its names go.
#[derive(Clone, Copy)]
struct Named<'a> {
    name: &'a str,
    old: Option<&'a str>,
    place: Place,
    grouped: bool,
}

/// Checks the old names of `jobs`, which come to others that were started before.
pub(crate) fn check_renames(jobs: &[Job], started: &[Arc<LiveJob>]) -> Vec<JobProblem> {
    let started = started.iter().map(|job| Named {
        name: &job.name,
        old: job.renamed_from.as_ref().map(|old| old.as_str()),
        place: job.place,
        grouped: job.group.is_some(),
    });
    let new = jobs.iter().map(|job| Named {
        name: &job.name,
        old: job.renamed_from.as_deref(),
        place: job.place,
        grouped: job.membership.group().is_some(),
    });
    let all: Vec<_> = started.chain(new).collect();
    let check = |(place, job): (usize, &Named<'_>)| {
        let old = job.old?;
        let reason = why_not(job, old, &all[..place], &all)?;
        let (name, place) = (job.name.to_owned(), job.place.to_string());
        Some(JobProblem::OldName { job: name, place, old_name: old.to_owned(), reason })
    };
    all.iter().enumerate().filter_map(check).collect()
}

fn why_not(job: &Named<'_>, old: &str, before: &[Named<'_>], all: &[Named<'_>]) -> Option<String> {
    let reason = if GroupName::new(old).is_err() {
        "that cannot be the name of a job: 1 to 64 ASCII letters, digits, `.`, `_` or `-`"
    } else if !job.grouped {
        "only the ledger of a group knows the ticks of an old name: give the job a group, by #[leader_only] or Job::group"
    } else if old == job.name {
        "that is the name it has: leave it out"
    } else if let Some(other) = all.iter().find(|other| other.name == old) {
        return Some(format!("{} has a job of that name, and the ticks of one would count for the other", other.place));
    } else if let Some(other) = before.iter().find(|other| other.old == Some(old)) {
        return Some(format!("so is job `{}` ({}): one of them is another job", other.name, other.place));
    } else {
        return None;
    };
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use crate::scheduler::live;

    fn job(name: &str) -> Job {
        Job::new(name, "@daily", |_| async {}).group("g")
    }

    fn problems(jobs: &[Job], started: Vec<Job>) -> String {
        let schedule = Schedule::parse("@daily", None).unwrap();
        let started = started.into_iter().map(|job| Arc::new(live(0, job, schedule.clone())));
        check_renames(jobs, &started.collect::<Vec<_>>()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_old_name_is_one_of_no_other_job_and_not_the_jobs_own() {
        let renamed = || job("new").renamed_from("old");
        for (jobs, started, reason) in [
            (vec![job("new").renamed_from("a::b")], vec![], "cannot be the name"),
            (vec![job("new").renamed_from("new")], vec![], "the name it has"),
            (vec![Job::new("new", "@daily", |_| async {}).renamed_from("old")], vec![], "give the job a group"),
            (vec![renamed(), job("old")], vec![], "has a job of that name"),
            (vec![renamed()], vec![job("old")], "has a job of that name"),
            (vec![job("old")], vec![renamed()], "has a job of that name"),
            (vec![renamed(), job("newer").renamed_from("old")], vec![], "so is job `new`"),
        ] {
            let text = problems(&jobs, started);
            assert!(text.contains(reason) && text.contains("renames.rs"), "{text}");
        }
        assert_eq!(problems(&[renamed(), job("other")], vec![job("third")]), "");
    }
}
