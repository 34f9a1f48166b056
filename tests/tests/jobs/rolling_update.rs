//! A rolling update: who leads does not know a job that a newer version has.

use leader_tests::process::{JobPlan, JobRun, MissedTicks};

use crate::assert_accounted;
use crate::lives::Lives;

const EVERY_SECOND: &str = "* * * * * *";
/// So many ticks go by in each state of the fleet.
const FEW: i64 = 2;

fn job(name: &str, missed: MissedTicks) -> JobPlan {
    JobPlan::new(name, EVERY_SECOND, missed)
}

/// The runs of a job by whichever life, in order.
fn runs_of(lives: &Lives, job: &str) -> Vec<JobRun> {
    lives.fleet.runs_of(job).into_iter().map(|(_, run)| run).collect()
}

/// Waits until a life has run a few ticks of a job after `after`; the last of them.
fn runs_on(lives: &mut Lives, label: &str, job: &str, after: i64) -> i64 {
    lives.fleet.runs(label, job, "a few ticks more", |run| run.tick >= after + FEW).tick
}

/// Old, then new, then old again, then new again: each leads for a while.
fn ticks_are_neither_swallowed_nor_doubled(lives: Option<Lives>) {
    let Some(mut lives) = lives else { return };
    let old = vec![job("known", MissedTicks::All)];
    let (own, all) = (job("new-own", MissedTicks::All).of_group("new"), job("new-all", MissedTicks::All));
    let new =
        [old.clone(), vec![all, job("new-once", MissedTicks::Once), job("new-skip", MissedTicks::Skip), own]].concat();

    let first = lives.begin(&old);
    let tick = lives.fleet.runs(&first, "known", "a tick", |_| true).tick;
    // It follows in `default`, which is led by who does not know the new jobs; and competes for `new` alone.
    let second = lives.begin_in(&["new"], &new);
    let since = |lives: &Lives, job| lives.number(if job == "new-own" { "new" } else { "default" }, job, "since");
    let own_since = since(&lives, "new-own");
    runs_on(&mut lives, &second, "new-own", own_since);
    runs_on(&mut lives, &first, "known", tick.max(own_since));
    for job in ["new-all", "new-once", "new-skip"] {
        assert_eq!(runs_of(&lives, job), [], "{job} ran where nobody leads who knows it");
    }
    let handed_over = lives.now();
    lives.shut_down(&first);
    let prompt = lives.fleet.runs(&second, "new-skip", "a tick", |_| true);
    assert!(prompt.tick as f64 > handed_over - 6.0, "{prompt:?}");
    for job in ["known", "new-all", "new-once", "new-skip"] {
        runs_on(&mut lives, &second, job, prompt.tick);
    }

    // The update is taken back, while the new version is there no more.
    let third = lives.begin(&old);
    lives.shut_down(&second);
    let taken_back = lives.number("default", "new-all", "last");
    runs_on(&mut lives, &third, "known", taken_back);
    let fourth = lives.begin_in(&["new"], &new);
    let again = lives.number("default", "known", "last");
    runs_on(&mut lives, &third, "known", again);
    assert_eq!(lives.number("default", "new-all", "last"), taken_back, "who does not know it swallowed its ticks");
    lives.shut_down(&third);
    let prompt = lives.fleet.runs(&fourth, "new-skip", "a tick", |_| true);
    for job in ["known", "new-all", "new-once", "new-skip", "new-own"] {
        runs_on(&mut lives, &fourth, job, prompt.tick);
    }

    for job in ["known", "new-all", "new-once", "new-skip", "new-own"] {
        let runs = runs_of(&lives, job);
        let missed = assert_accounted(job, 1, since(&lives, job), &runs);
        println!("{job}: {} ticks ran, {missed} were told of as missed", runs.len());
        assert!(missed == 0 || ["new-once", "new-skip"].contains(&job), "{job}: {runs:?}");
        assert!(job != "new-once" || missed >= 2 * FEW.unsigned_abs() - 2, "nothing was missed: {runs:?}");
    }
    let only_new = lives.fleet.runs_of("new-own").into_iter().all(|(label, _)| [&second, &fourth].contains(&&label));
    assert!(only_new, "who does not know the group competes for it");
}

#[test]
fn ticks_of_a_job_that_the_leader_does_not_know_are_neither_swallowed_nor_doubled() {
    ticks_are_neither_swallowed_nor_doubled(Lives::on_a_file());
}

#[test]
fn ticks_of_a_job_that_the_leader_does_not_know_are_neither_swallowed_nor_doubled_on_redis() {
    ticks_are_neither_swallowed_nor_doubled(Lives::on_redis());
}
