//! A soak in short: nothing is found where all is right, what is wrong on purpose is found and its history kept, and the exit
//! code tells. `soak` runs the same for as long as one likes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use leader_tests::process::installed;
use leader_tests::soak::{Place, Settings, run};
use rustix::process::{Pid, Signal, kill_process};

const PROGRAM: &str = env!("CARGO_BIN_EXE_soak");

/// Nothing is found, and something was tried.
#[allow(clippy::print_stderr, reason = "the figures are part of the result")]
fn is_right(place: Place) {
    let folder = tempfile::tempdir().unwrap();
    let keep = Some(folder.path().to_owned());
    // Fewer ticks than otherwise: other tests run beside it, and nothing is optimized for speed.
    let time = Duration::from_secs(10);
    let settings = Settings { place, time, seed: 7, processes: Some(4), rate: 5, keep, ..Settings::default() };
    let report = run(&settings, Path::new(PROGRAM), &AtomicBool::new(false)).unwrap();
    eprintln!("{report}");
    assert!(report.is_clean(), "{:#?}", report.violations);
    assert!(report.struck() > 2 && report.figures.ticks.all.ran > 100, "nothing was tried");
    assert!(report.figures.terms > 2 && report.figures.locks.acquisitions > 20, "nothing was tried");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is kept of what is well");
}

#[test]
fn no_fault_breaks_a_promise_on_redis() {
    let found = Path::new("/usr/bin/redis-server").exists().then_some(());
    if installed(found, "redis-server", "redis-tools").is_some() {
        is_right(Place::Redis);
    }
}

#[test]
fn no_fault_breaks_a_promise_on_sqlite() {
    is_right(Place::Sqlite);
}

/// Ended with the test, also if that fails.
struct Soak(Child);

impl Soak {
    fn start(arguments: &[&str]) -> Self {
        let mut program = Command::new(PROGRAM);
        Self(program.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits for its end: the exit code, what it printed, and the rest of what it told.
    fn end(mut self, mut told: impl BufRead) -> (Option<i32>, String, String) {
        let (mut rest, mut printed) = (String::new(), String::new());
        told.read_to_string(&mut rest).unwrap();
        self.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        (self.0.wait().unwrap().code(), printed, rest)
    }
}

impl Drop for Soak {
    fn drop(&mut self) {
        // It fails only if it was waited for before. Its processes end with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_view_without_a_deadline_is_found_and_the_history_of_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().to_str().unwrap();
    let mut soak = Soak::start(&[
        "--minutes",
        "1",
        "--seed",
        "3",
        "--store",
        "sqlite",
        "--rate",
        "5",
        "--processes",
        "4",
        "--variant",
        "no-deadline",
        "--json",
        "--keep",
        keep,
    ]);
    let told = BufReader::new(soak.0.stderr.take().unwrap());
    let (code, printed, told) = soak.end(told);
    assert_eq!(code, Some(1), "{printed}\n{told}");
    let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert!(report["violations"].to_string().contains("two leaders"), "{report}");
    let logs = Path::new(report["logs"].as_str().unwrap());
    assert!(logs.starts_with(folder.path()) && told.contains(logs.to_str().unwrap()), "{told}");
    let kept = |name: &str| fs::read_to_string(logs.join(name)).unwrap();
    assert!(kept("command.txt").contains("--seed 3 --store sqlite") && kept("report.txt").contains("two leaders"));
    // It ends with what it has found, and that may be early.
    assert!(kept("faults.json-lines").lines().count() > 0);
    let members: Vec<_> =
        fs::read_dir(logs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for (suffix, word) in [("jsonl", "began"), ("views.jsonl", "view"), ("locks.jsonl", "asked")] {
        let is_of_one =
            |name: &&String| name.starts_with('m') && name.split_once('.').is_some_and(|(_, end)| end == suffix);
        assert!(
            members.iter().filter(is_of_one).any(|name| kept(name).contains(word)),
            "{word} in {suffix} of {members:?}"
        );
    }
}

#[test]
fn a_soak_that_is_told_to_end_ends_in_peace_with_a_report() {
    let mut soak = Soak::start(&["--minutes", "600", "--store", "sqlite", "--rate", "5", "--processes", "3"]);
    let mut told = BufReader::new(soak.0.stderr.take().unwrap());
    let mut line = String::new();
    // It tells so when all have begun.
    while !line.contains("begins") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    kill_process(Pid::from_child(&soak.0), Signal::INT).unwrap();
    let (code, printed, told) = soak.end(told);
    assert_eq!(code, Some(0), "{printed}\n{told}");
    assert!(printed.contains("ended early") && printed.contains("violations       0"), "{printed}");
}

fn ended(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

#[test]
fn wrong_arguments_are_told_and_end_with_two() {
    for (wrong, what) in [
        (&["--store", "memory:"][..], "none of redis, sentinel, cluster, sqlite"),
        (&["--minutes", "0"], "at least 0.05"),
        (&["--variant", "naught"], "none of no-deadline"),
        (&["--store", "sqlite", "--variant", "no-quarantine"], "the script for Redis"),
        (&["--what"], "--what"),
    ] {
        let Output { status, stderr, stdout } = ended(wrong);
        let told = String::from_utf8(stderr).unwrap();
        assert_eq!((status.code(), stdout.len()), (Some(2), 0), "{wrong:?}");
        assert!(told.contains(what) && told.contains("see --help"), "{told}");
    }
    let Output { status, stdout, .. } = ended(&["--help"]);
    assert_eq!(status.code(), Some(0));
    assert!(String::from_utf8(stdout).unwrap().contains("--minutes"));
}
