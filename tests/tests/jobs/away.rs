//! Nobody is there for a while: ten minutes, a day, three days.

use leader_tests::process::{JobPlan, JobRun, MissedTicks};

use crate::assert_accounted;
use crate::lives::{Lives, MARCH};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How old a tick may be that is run, unless the job says more; and how many are caught up at most.
const WINDOW: i64 = 10 * MINUTE;
const CAUGHT_UP: usize = 1_000;

const EVERY: &str = "*/10 * * * * *";
const PERIOD: i64 = 10;
/// The last tick of the time away is older than what `skip` runs.
const LATE: i64 = 6;
const NAMES: [&str; 5] = ["once", "once-forever", "all", "all-forever", "skip"];

fn jobs(schedule: &str) -> Vec<JobPlan> {
    let job = |name, missed| JobPlan::new(name, schedule, missed);
    vec![
        job("once", MissedTicks::Once),
        job("once-forever", MissedTicks::Once).forever(),
        job("all", MissedTicks::All),
        job("all-forever", MissedTicks::All).forever(),
        job("skip", MissedTicks::Skip),
    ]
}

#[derive(Clone, Copy)]
enum End {
    ShutDown,
    Killed,
}

/// One life, some time without, and another life: what each job does about what it missed.
fn away(lives: Option<Lives>, what: &str, end: End, pass: i64) {
    let Some(mut lives) = lives else { return };
    let first = lives.begin(&jobs(EVERY));
    for job in NAMES {
        lives.fleet.runs(&first, job, "a tick", |_| true);
    }
    match end {
        End::ShutDown => lives.shut_down(&first),
        End::Killed => lives.kill(&first),
    }
    lives.pass(pass);
    let last = NAMES.map(|job| lives.number("default", job, "last"));
    let back = lives.now();

    let second = lives.begin(&jobs(EVERY));
    // Once a tick that is not late has come, the others are told of.
    let prompt = lives.fleet.runs(&second, "skip", "a tick", |_| true).tick;
    for job in NAMES {
        lives.fleet.runs(&second, job, "a tick that is not late", |run| run.tick >= prompt);
    }
    let log = lives.fleet.written(&second);
    for (job, last) in NAMES.into_iter().zip(last) {
        let runs = lives.runs(&second, job);
        let missed = assert_accounted(job, PERIOD, last, &runs);
        let late: Vec<&JobRun> = runs.iter().filter(|run| run.tick as f64 <= back).collect();
        println!("{what}: {job} ran {} ticks of before, and told of {missed} others", late.len());
        let returned = Returned { lives: &lives, job, last, back, first: &runs[0], late: &late, runs: &runs };
        match job {
            "once" | "once-forever" => returned.newest_alone(),
            "all" => returned.those_of_the_window(),
            "all-forever" => returned.all_but_too_many(),
            _ => returned.none(),
        }
        if missed > 0 {
            let reason = match job {
                "once" | "once-forever" => "a newer one is run in their place",
                "all-forever" => "they are more than are caught up",
                _ => "they are older than what the job runs",
            };
            let (told, count) = (format!(" ticks of job {job}, from "), runs[0].missed);
            let line = log.lines().find(|line| line.contains(&format!("{count}{told}")));
            assert!(line.is_some_and(|line| line.contains(reason)), "{count} of {job} are not told of in:\n{log}");
        }
    }
}

/// What a job did when its program came back.
struct Returned<'a> {
    lives: &'a Lives,
    job: &'a str,
    /// The last tick before.
    last: i64,
    /// When the program was started.
    back: f64,
    first: &'a JobRun,
    /// Runs of ticks that had come before.
    late: &'a [&'a JobRun],
    runs: &'a [JobRun],
}

impl Returned<'_> {
    fn newest_alone(&self) {
        let Self { job, first, .. } = self;
        assert!(first.tick as f64 > self.back - PERIOD as f64, "{job}: not the newest: {first:?}");
        assert!(self.late.len() <= 1, "{job}: {:?}", self.late);
    }

    fn those_of_the_window(&self) {
        let Self { job, first, .. } = self;
        assert!(first.tick as f64 >= self.back - WINDOW as f64 - 1.0, "{job}: too old: {first:?}");
        let before = (first.tick - PERIOD) as f64;
        let all = first.missed == 0 || before < self.lives.time_of(first) - WINDOW as f64;
        assert!(all, "{job}: the one before was young enough: {first:?}");
        self.one_after_another();
    }

    fn all_but_too_many(&self) {
        let Self { job, first, .. } = self;
        let newest = (first.tick + (CAUGHT_UP as i64 - 1) * PERIOD) as f64;
        let is_bound = newest > self.back - PERIOD as f64 && newest <= self.lives.time_of(first);
        assert!(first.missed == 0 && first.tick == self.last + PERIOD || is_bound, "{job}: {first:?}");
        assert!(self.late.len() <= CAUGHT_UP);
        self.one_after_another();
    }

    fn one_after_another(&self) {
        let job = self.job;
        assert!(self.runs[1..].iter().all(|run| run.missed == 0), "{job} left out some: {:?}", self.runs);
    }

    fn none(&self) {
        let prompt = |run: &JobRun| run.tick as f64 > self.back - 6.0;
        assert!(self.runs.iter().all(prompt), "{}: {:?}", self.job, self.runs);
    }
}

#[test]
fn after_ten_minutes_away_each_job_does_as_it_says() {
    away(Lives::on_a_file(), "SQLite, ten minutes, shut down", End::ShutDown, 10 * MINUTE + LATE);
}

#[test]
fn after_a_day_away_once_runs_one_tick_and_tells_of_the_others_all_runs_them_bounded_and_skip_none() {
    away(Lives::on_a_file(), "SQLite, a day, killed", End::Killed, DAY + LATE);
}

#[test]
fn after_three_days_away_the_same_holds() {
    away(Lives::on_a_file(), "SQLite, three days, shut down", End::ShutDown, 3 * DAY + LATE);
}

#[test]
fn after_a_day_away_the_same_holds_on_redis() {
    away(Lives::on_redis(), "Redis, a day, shut down", End::ShutDown, DAY);
}

/// Claims after the ones that it has saved may be lost: nobody knows which ticks ran.
#[test]
fn after_a_day_away_of_a_server_too_that_was_started_again_no_tick_of_before_runs_and_the_log_says_why() {
    let Some(mut lives) = Lives::on_redis() else { return };
    let first = lives.begin(&jobs("* * * * * *"));
    for job in NAMES {
        lives.fleet.runs(&first, job, "a tick", |_| true);
    }
    lives.shut_down(&first);
    lives.pass(DAY);
    lives.server_starts_again();
    let back = lives.now();
    let second = lives.begin(&jobs("* * * * * *"));
    for job in NAMES {
        let run = lives.fleet.runs(&second, job, "a tick", |_| true);
        // Who leads on a server that was started again waits a little first, and what comes meanwhile counts.
        let first = run.tick - i64::try_from(run.missed).unwrap();
        assert!(first > back.floor() as i64, "{job}: {run:?}, back since {back}");
        let log = lives.fleet.written(&second);
        let line = log.lines().find(|line| line.contains(&format!("ticks of job {job}, from")));
        assert!(line.is_some_and(|line| line.contains("may have forgotten")), "{job} says nothing in:\n{log}");
    }
}

/// As anacron does: a machine that is off at night runs last night's job when it is on.
#[test]
fn a_daily_job_without_a_window_is_made_up_for_at_noon_and_one_with_the_usual_window_waits_for_the_next_night() {
    const JOBS: [&str; 4] = ["once-forever", "all-forever", "once", "skip"];
    let Some(mut lives) = Lives::on_a_file() else { return };
    let daily = |name, missed| JobPlan::new(name, "0 0 0 * * *", missed);
    let jobs = [
        daily("once-forever", MissedTicks::Once).forever(),
        daily("all-forever", MissedTicks::All).forever(),
        daily("once", MissedTicks::Once),
        daily("skip", MissedTicks::Skip),
    ];
    lives.go_to(MARCH + DAY / 2);
    let life = lives.begin(&jobs);
    for job in JOBS {
        assert!((lives.number("default", job, "since") - MARCH - DAY / 2).abs() < HOUR);
    }
    lives.shut_down(&life);

    // When it is on again; and the days of the ticks that each job runs then, with how many before were missed.
    type Days = &'static [(i64, u64)];
    let lives_and_runs: [(i64, [Days; 4]); 4] = [
        // Half a minute after midnight.
        (DAY + 30, [&[(1, 0)], &[(1, 0)], &[(1, 0)], &[]]),
        (2 * DAY + DAY / 2, [&[(2, 0)], &[(2, 0)], &[], &[]]),
        (5 * DAY + DAY / 2, [&[(5, 2)], &[(3, 0), (4, 0), (5, 0)], &[], &[]]),
        (6 * DAY + 30, [&[(6, 0)], &[(6, 0)], &[(6, 4)], &[]]),
    ];
    for (on, expected) in lives_and_runs {
        lives.go_to(MARCH + on);
        let life = lives.begin(&jobs);
        for (job, days) in JOBS.into_iter().zip(expected) {
            for (day, _) in days {
                lives.fleet.runs(&life, job, "a tick", |run| run.tick == MARCH + day * DAY);
            }
        }
        lives.shut_down(&life);
        for (job, days) in JOBS.into_iter().zip(expected) {
            let runs: Vec<_> =
                lives.runs(&life, job).iter().map(|run| ((run.tick - MARCH) / DAY, run.missed)).collect();
            assert_eq!(runs, days, "{job}, on since day {:.2}", on as f64 / DAY as f64);
        }
    }
}
