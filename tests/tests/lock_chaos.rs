//! The chaos of locks in short: nothing is found where all is right, what is wrong on purpose is found, and what is to be done
//! once is done once. `lock-chaos` runs the same for as long as one likes.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use leader_tests::chaos::{Bad, Place, Settings, run, run_once};
use leader_tests::command::seed;

const PROGRAM: &str = env!("CARGO_BIN_EXE_lock-chaos");

fn settings(place: Place, seconds: u64) -> Settings {
    Settings { place, time: Duration::from_secs(seconds), seed: seed(), ..Settings::default() }
}

/// Nothing is found, and something was tried.
#[allow(clippy::print_stderr, reason = "the figures are part of the result, and the seed finds it again")]
fn is_right(place: Place) {
    let settings = settings(place, 15);
    eprintln!("LEADER_TEST_SEED={}", settings.seed);
    let Some(report) = run(&settings, Path::new(PROGRAM)).expect("it runs to its end") else { return };
    eprintln!("{report}");
    assert!(report.is_clean(), "seed {}: {:#?}", report.seed, report.violations);
    assert!(report.figures.acquisitions > 20 && report.struck() > 3, "nothing was tried");
}

#[test]
fn no_fault_lets_two_bodies_of_a_lock_run_at_once_on_redis() {
    is_right(Place::OwnRedis);
}

#[test]
fn no_fault_lets_two_bodies_of_a_lock_run_at_once_on_sqlite() {
    is_right(Place::OwnSqlite);
}

/// The checker finds it, on one lock that all want: with another course, if it did not come to pass in the first.
#[allow(clippy::print_stderr)]
fn shows(place: &Place, bad: Bad, tasks: usize, sign: &str) {
    const COURSES: u64 = 8;
    for _ in 0..COURSES {
        let settings = Settings { bad: Some(bad), keys: 1, tasks, ..settings(place.clone(), 12) };
        let Some(report) = run(&settings, Path::new(PROGRAM)).expect("it runs to its end") else { return };
        let found = report.violations.iter().filter(|violation| violation.to_string().starts_with(sign)).count();
        eprintln!("{bad:?}, {place:?}, seed {}: {found} times", settings.seed);
        if found > 0 {
            return;
        }
    }
    panic!("{bad:?} does not show on {place:?}");
}

#[test]
fn a_lock_whose_deadline_is_not_looked_at_shows() {
    // One task of each process: while one stands still under the lock, it is others who wait.
    shows(&Place::OwnSqlite, Bad::NoDeadline, 1, "overlap");
}

#[test]
fn work_that_goes_on_when_its_lock_is_lost_shows() {
    shows(&Place::OwnSqlite, Bad::NoCancel, 1, "overlap");
}

#[test]
fn a_script_that_does_not_keep_the_order_shows() {
    shows(&Place::OwnRedis, Bad::NoQueue, 4, "passed");
}

/// Twenty at once; half-way and after the commit, the first who comes there dies.
#[allow(clippy::print_stderr)]
fn once(place: Place, bad: Option<Bad>) {
    let settings = Settings { bad, ..settings(place, 0) };
    let Some(report) = run_once(&settings, 20, Path::new(PROGRAM)).expect("it runs to its end") else { return };
    eprintln!("{report}");
    match bad {
        None => assert_eq!(report.violations, [""; 0], "seed {}", settings.seed),
        // The commit of the one that died was not noted, and the work is done again.
        Some(_) => assert!(report.rows.values().all(|rows| *rows >= 2), "{:?}", report.rows),
    }
    assert!(report.died >= 2 * settings.keys, "only {} died", report.died);
}

#[test]
fn work_is_done_once_though_the_first_dies_half_way_and_the_second_after_its_commit_on_redis() {
    once(Place::OwnRedis, None);
}

#[test]
fn work_is_done_once_though_the_first_dies_half_way_and_the_second_after_its_commit_on_sqlite() {
    once(Place::OwnSqlite, None);
}

#[test]
fn work_that_does_not_look_whether_it_was_committed_is_done_twice() {
    once(Place::OwnSqlite, Some(Bad::Blind));
}
