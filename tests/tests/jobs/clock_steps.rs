//! Wall clocks that are set while jobs run.

use leader_tests::process::{JobPlan, JobRun, MissedTicks, Wall};

use crate::assert_accounted;
use crate::lives::Lives;

const NAMES: [&str; 3] = ["all", "once", "skip"];

fn jobs() -> [JobPlan; 3] {
    let missed = [MissedTicks::All, MissedTicks::Once, MissedTicks::Skip];
    let mut jobs = NAMES.into_iter().zip(missed);
    std::array::from_fn(|_| jobs.next().map(|(name, missed)| JobPlan::new(name, "* * * * * *", missed)).unwrap())
}

/// Two instances on one host: who leads, its clock, and the one that follows.
fn two(lives: &mut Lives) -> ([String; 2], [Wall; 2]) {
    let labels = [lives.begin_with_clock(&jobs()), lives.begin_with_clock(&jobs())];
    let [(a, first), (b, second)] = labels;
    ([a, b], [first, second])
}

/// Set back by 5 s, then ahead by 10 s, each for a few ticks; then the other one leads.
fn steps(lives: &mut Lives) {
    let ([first, second], walls) = two(lives);
    let begun = lives.fleet.runs(&first, "all", "a tick", |_| true).tick;
    let mut last = lives.fleet.runs(&first, "all", "a few ticks", |run| run.tick > begun).tick;
    for offset in [-5, 5].map(|step| lives.ahead_s + step) {
        for wall in &walls {
            wall.jump_to(offset);
            wall.assert_reads(&mut lives.fleet, offset);
        }
        let after = |run: &JobRun| run.tick >= last + 2;
        let ran = NAMES.map(|job| lives.fleet.runs(&first, job, "ticks after the step", after).tick);
        last = ran.into_iter().fold(last, i64::max);
    }
    lives.shut_down(&first);
    for job in NAMES {
        lives.fleet.runs(&second, job, "a tick after the hand-over", |run| run.tick > last);
    }
}

fn runs_of(lives: &Lives, job: &str) -> Vec<JobRun> {
    lives.fleet.runs_of(job).into_iter().map(|(_, run)| run).collect()
}

#[test]
fn a_wall_clock_that_is_set_by_minus_5_s_and_plus_10_s_loses_and_doubles_no_tick_on_a_file() {
    let Some(mut lives) = Lives::on_a_file() else { return };
    steps(&mut lives);
    for job in NAMES {
        let mut runs = runs_of(&lives, job);
        // What was being claimed just when the clock was set may be too old by then: it is claimed, not run, and told.
        if job == "skip" {
            let of = |tick| JobRun { job: job.to_owned(), tick, missed: 0, attempt: 1, term: 0, at_ns: 0 };
            runs.extend(lives.too_old("default", job).into_iter().map(of));
            runs.sort_by_key(|run| run.tick);
        }
        let missed = assert_accounted(job, 1, lives.number("default", job, "since"), &runs);
        println!("SQLite, −5 s and +10 s: {job} ran {} ticks, told of {missed} others", runs.len());
        assert!(job != "all" || missed == 0, "{runs:?}");
    }
}

#[test]
fn wall_clocks_of_instances_have_no_effect_at_all_with_redis() {
    let Some(mut lives) = Lives::on_redis() else { return };
    if Wall::of(&lives.fleet, "none").is_none() {
        return;
    }
    steps(&mut lives);
    for job in NAMES {
        let runs = runs_of(&lives, job);
        let missed = assert_accounted(job, 1, lives.number("default", job, "since"), &runs);
        let late = runs.iter().map(|run| lives.time_of(run) - run.tick as f64);
        let (least, most) = late.fold((f64::MAX, f64::MIN), |(least, most), late| (least.min(late), most.max(late)));
        println!(
            "Redis, −5 s and +10 s: {job} ran {} ticks, {least:.3} to {most:.3} s late, missed {missed}",
            runs.len()
        );
        // A tick that came by an instance's clock would be 5 s too early or too late.
        assert!(least > -0.1 && most < 4.0, "{job} by the server's clock: {least} to {most} s late");
        assert!(job != "all" || missed == 0, "{runs:?}");
    }
}
