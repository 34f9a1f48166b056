//! The chaos of cron jobs in short: nothing is found where a ledger is kept, much where none is, and what died half-way is run
//! again. `cron-chaos` runs the same for as long as one likes.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use leader_tests::chaos::Place;
use leader_tests::chaos::crew::Crew;
use leader_tests::command::member::FINISH;
use leader_tests::command::seed;
use leader_tests::cron_chaos::jobs::Jobs;
use leader_tests::cron_chaos::member::Options;
use leader_tests::cron_chaos::{Line, Settings, run};
use leader_tests::process::eventually;
use leader_tests::redis::RedisServer;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cron-chaos");

/// Fewer ticks each second than `cron-chaos` makes: other tests run beside it, and nothing is optimized for speed.
fn settings(place: Place, seconds: u64) -> Settings {
    Settings { place, rate: 60, ticks: 60 * seconds, seed: seed(), ..Settings::default() }
}

/// Nothing is found, and something was tried.
#[allow(clippy::print_stderr, reason = "the figures are part of the result, and the seed finds it again")]
fn is_right(place: Place) {
    let settings = settings(place, 20);
    eprintln!("LEADER_TEST_SEED={}", settings.seed);
    let Some(report) = run(&settings, Path::new(PROGRAM)).expect("it runs to its end") else { return };
    eprintln!("{report}");
    assert!(report.is_clean(), "seed {}: {:#?}", report.seed, report.violations);
    let figures = &report.figures;
    assert!(figures.all.ran > 1_000 && figures.leader_changes > 2, "nothing was tried");
}

#[test]
fn no_fault_loses_or_doubles_a_tick_on_redis() {
    is_right(Place::OwnRedis);
}

#[test]
fn no_fault_loses_or_doubles_a_tick_on_sqlite() {
    is_right(Place::OwnSqlite);
}

/// In a longer course, if it did not come to pass in the first.
#[test]
#[allow(clippy::print_stderr)]
fn without_a_ledger_the_same_faults_lose_ticks_and_double_some() {
    const COURSES: u64 = 4;
    let (mut lost, mut doubled) = (0, 0);
    for _ in 0..COURSES {
        let settings = Settings { without_ledger: true, ..settings(Place::OwnSqlite, 15) };
        let report = run(&settings, Path::new(PROGRAM)).expect("it runs to its end").expect("it needs no server");
        eprintln!("{report}");
        lost += report.figures.all.lost;
        doubled += report.figures.all.doubled;
        if lost > 0 && doubled > 0 {
            assert!(!report.is_clean());
            return;
        }
    }
    panic!("{lost} lost, {doubled} doubled: the faults prove nothing");
}

fn lines(crew: &Crew) -> Vec<(String, Line)> {
    let of = |label: &String| {
        let lines = crew.lines::<Line>(label).expect("the log can be read");
        lines.into_iter().map(|line| (label.clone(), line)).collect::<Vec<_>>()
    };
    crew.labels().iter().flat_map(of).collect()
}

/// The leader dies in the middle of a body; another one runs that tick again, once, and then the next.
fn half_way(url: &str) {
    let folder = tempfile::tempdir().expect("temporary folders can be created");
    let mut crew = Crew::new(Path::new(PROGRAM), folder.path()).expect("the folder is empty");
    for label in ["a", "b"] {
        let options = Options {
            label: label.to_owned(),
            store: url.to_owned(),
            ttl: Duration::from_secs(1),
            operation_timeout: Duration::from_millis(300),
            retry: Duration::from_millis(200),
            jobs: Jobs::Slow,
            without_ledger: false,
            log: crew.log(label),
        };
        crew.start(label, &options).expect("it starts");
    }
    // A whole body first, so that the death below is in the life of the job and not in its begin.
    let has_ended = |lines: &[(String, Line)], of: &str, run: u64| {
        lines.iter().any(|(label, line)| label == of && matches!(line, Line::Ended { run: ended, .. } if *ended == run))
    };
    let (leader, tick) = eventually("a body is on", || {
        let lines = lines(&crew);
        let (label, line) = lines.iter().rfind(|(_, line)| matches!(line, Line::Began { .. }))?;
        let Line::Began { run, tick, .. } = line else { return None };
        (*run > 0 && !has_ended(&lines, label, *run)).then(|| (label.clone(), *tick))
    });
    crew.kill(&leader).expect("it runs");
    let other = if leader == "a" { "b" } else { "a" };
    let began = |lines: &[(String, Line)], of: i64| {
        let attempts = lines.iter().filter_map(|(label, line)| match line {
            Line::Began { run, tick, attempt, .. } if *tick == of => {
                Some((label.clone(), *attempt, has_ended(lines, label, *run)))
            }
            _ => None,
        });
        attempts.collect::<Vec<_>>()
    };
    let all = eventually("the next tick has run", || {
        let lines = lines(&crew);
        began(&lines, tick + 3).iter().any(|(.., ended)| *ended).then(|| began(&lines, tick))
    });
    assert_eq!(
        all,
        if other == "b" {
            [("a".to_owned(), 1, false), ("b".to_owned(), 2, true)]
        } else {
            [("a".to_owned(), 2, true), ("b".to_owned(), 1, false)]
        }
    );
    crew.say(other, FINISH);
    let ended = eventually("the other one has ended", || crew.ended(other));
    assert!(ended.success(), "{}", crew.written(other));
}

#[test]
fn a_tick_whose_leader_died_half_way_is_run_again_once_on_redis() {
    let Some(server) = RedisServer::start(&[]) else { return };
    half_way(&server.url());
}

#[test]
fn a_tick_whose_leader_died_half_way_is_run_again_once_on_sqlite() {
    let folder = tempfile::tempdir().expect("temporary folders can be created");
    half_way(&format!("sqlite://{}/leader.db", folder.path().display()));
}
