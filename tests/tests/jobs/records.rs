//! What the ledger remembers of a job, and what it does not: first ticks, other schedules, jobs that come back, a broken record.

use leader_tests::process::{JobPlan, MissedTicks};

use crate::assert_accounted;
use crate::lives::{Lives, MARCH};

const EVERY_SECOND: &str = "* * * * * *";
const EVERY: &str = "*/5 * * * * *";
const PERIOD: i64 = 5;
const MINUTE: i64 = 60;
const NOON: i64 = MARCH + 720 * MINUTE;

#[test]
fn a_first_tick_that_nobody_led_for_is_made_up_for_by_who_leads_later() {
    let Some(mut lives) = Lives::on_a_file() else { return };
    let hourly =
        [MissedTicks::Once, MissedTicks::All].map(|missed| JobPlan::new(&format!("{missed:?}"), "@hourly", missed));
    lives.go_to(NOON + 10);
    let leader = lives.begin(&[]);
    lives.fleet.leader("default", 0);
    // It follows, and tells the ledger of its jobs; then nobody is there.
    let follower = lives.begin(&hourly);
    for job in &hourly {
        lives.number("default", &job.name, "since");
    }
    lives.kill(&follower);
    lives.shut_down(&leader);

    lives.go_to(NOON + 65 * MINUTE);
    let later = lives.begin(&hourly);
    for job in &hourly {
        lives.fleet.runs(&later, &job.name, "its first tick", |run| run.tick == NOON + 60 * MINUTE);
    }
    lives.shut_down(&later);
    for job in &hourly {
        let runs = lives.fleet.runs_of(&job.name);
        assert_eq!(runs.iter().map(|(_, run)| run.missed).collect::<Vec<_>>(), [0], "{runs:?}");
    }
}

fn a_changed_schedule_counts_from_now(lives: Option<Lives>) {
    let Some(mut lives) = lives else { return };
    let first = lives.begin(&[JobPlan::new("work", EVERY, MissedTicks::All).forever()]);
    lives.fleet.runs(&first, "work", "a tick", |_| true);
    lives.shut_down(&first);

    // By either schedule there are more than a hundred ticks since.
    lives.pass(10 * MINUTE);
    let back = lives.now();
    let second = lives.begin(&[JobPlan::new("work", "*/3 * * * * *", MissedTicks::All).forever()]);
    let run = lives.fleet.runs(&second, "work", "a tick", |_| true);
    assert!(run.tick as f64 >= back.floor() && run.missed == 0, "it fired at once: {run:?}, back since {back}");
    // Its second is one of the new schedule's.
    assert_eq!(run.tick % 3, 0, "{run:?}");
    lives.shut_down(&second);

    // From then on the new one is caught up as any other.
    lives.pass(10 * MINUTE);
    let last = lives.number("default", "work", "last");
    let third = lives.begin(&[JobPlan::new("work", "*/3 * * * * *", MissedTicks::All).forever()]);
    let run = lives.fleet.runs(&third, "work", "a tick", |_| true);
    assert!(run.tick > last && run.tick <= last + 3 && run.missed == 0, "{run:?} after {last}");
}

#[test]
fn a_changed_schedule_does_not_fire_at_once_and_counts_from_now() {
    a_changed_schedule_counts_from_now(Lives::on_a_file());
}

#[test]
fn a_changed_schedule_does_not_fire_at_once_and_counts_from_now_on_redis() {
    a_changed_schedule_counts_from_now(Lives::on_redis());
}

fn a_job_that_comes_back_goes_on_from_its_last(lives: Option<Lives>) {
    let Some(mut lives) = lives else { return };
    let (stays, goes) = (JobPlan::new("stays", EVERY, MissedTicks::All), JobPlan::new("goes", EVERY, MissedTicks::All));
    let both = [stays.clone(), goes];
    let first = lives.begin(&both);
    for job in &both {
        lives.fleet.runs(&first, &job.name, "a tick", |_| true);
    }
    lives.shut_down(&first);
    lives.pass(2 * MINUTE);
    // A version without it.
    let last = lives.number("default", "goes", "last");
    let second = lives.begin(&[stays]);
    lives.fleet.runs(&second, "stays", "the first tick that it missed", |_| true);
    lives.shut_down(&second);
    assert_eq!(lives.number("default", "goes", "last"), last);
    lives.pass(2 * MINUTE);
    let last = ["stays", "goes"].map(|job| lives.number("default", job, "last"));
    let back = lives.now();
    let third = lives.begin(&both);
    for (job, last) in ["stays", "goes"].into_iter().zip(last) {
        lives.fleet.runs(&third, job, "a tick that is not late", |run| run.tick as f64 > back - PERIOD as f64);
        let runs = lives.runs(&third, job);
        assert_eq!(assert_accounted(job, PERIOD, last, &runs), 0, "{runs:?}");
        println!("{job} made up for {} ticks", runs.len());
        assert!(job == "stays" || runs.len() >= 48, "of four minutes: {runs:?}");
    }
}

#[test]
fn a_job_that_was_removed_and_added_again_goes_on_from_its_last() {
    a_job_that_comes_back_goes_on_from_its_last(Lives::on_a_file());
}

#[test]
fn a_job_that_was_removed_and_added_again_goes_on_from_its_last_on_redis() {
    a_job_that_comes_back_goes_on_from_its_last(Lives::on_redis());
}

fn one_broken_record_stops_its_job_alone(lives: Option<Lives>) {
    let Some(mut lives) = lives else { return };
    let names = ["a", "b", "c", "d", "e"];
    let jobs = names.map(|name| JobPlan::new(name, EVERY_SECOND, MissedTicks::All));
    let first = lives.begin(&jobs);
    for job in names {
        lives.fleet.runs(&first, job, "a tick", |_| true);
    }
    lives.shut_down(&first);
    lives.write("default", "c", "last", "yesterday");
    let last = names.map(|job| lives.text("default", job, "last").unwrap());

    let second = lives.begin(&jobs);
    let others: Vec<_> = names.into_iter().zip(last).filter(|(job, _)| *job != "c").collect();
    for (job, last) in &others {
        let last: i64 = last.parse().unwrap();
        lives.fleet.runs(&second, job, "two ticks", |run| run.tick >= last + 2);
        assert_eq!(assert_accounted(job, 1, last, &lives.runs(&second, job)), 0);
    }
    assert_eq!(lives.runs(&second, "c"), []);
    let log = lives.fleet.written(&second);
    let told: Vec<_> = log.lines().filter(|line| line.contains("cannot be read")).collect();
    let says = |text| told.iter().all(|line: &&str| line.contains(text));
    assert!(told.len() == 1 && says("ERROR"), "once, and not the others: {told:?}");
    assert!(says("the record of job c cannot be read (`last`)") && says("remove the record"), "{told:?}");
    lives.shut_down(&second);
    assert_eq!(lives.text("default", "c", "last").as_deref(), Some("yesterday"), "it is left as it is");

    // As the log says.
    lives.remove("default", "c");
    let third = lives.begin(&jobs);
    let since = lives.number("default", "c", "since");
    let run = lives.fleet.runs(&third, "c", "a tick", |_| true);
    assert!(run.tick == since + 1 && run.missed == 0, "it begins anew at {since}: {run:?}");
}

#[test]
fn one_broken_record_among_many_stops_its_job_alone_and_the_log_says_so() {
    one_broken_record_stops_its_job_alone(Lives::on_a_file());
}

#[test]
fn one_broken_record_among_many_stops_its_job_alone_and_the_log_says_so_on_redis() {
    one_broken_record_stops_its_job_alone(Lives::on_redis());
}
