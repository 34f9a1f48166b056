//! The fleet as people run it: it keeps its promises under faults, and leaves no process behind.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod programs;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use leader_examples::history::History;
use programs::{Guard, program, signal};
use rustix::process::Signal;
use serde_json::Value;

/// The machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Its logs go to `log`, and whatever else it writes beside them.
fn fleet(log: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program("fleet"));
    // A fleet that is killed cannot take its database away.
    command.env("TMPDIR", log.parent().unwrap());
    command.arg("--log").arg(log).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How many instances that log into this folder are alive. What is left of a dead process has no command line.
fn instances(log: &Path) -> usize {
    let log = log.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    commands.filter(|command| command.contains(log) && command.contains("--as-instance")).count()
}

fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < patience, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Reads the news until one contains `text`.
fn hear(fleet: &mut Child, text: &str) {
    use std::io::{BufRead, BufReader};
    let news = BufReader::new(fleet.stderr.as_mut().unwrap()).lines().map_while(Result::ok);
    let mut heard = Vec::new();
    for line in news {
        if line.contains(text) {
            return;
        }
        heard.push(line);
    }
    panic!("the fleet never said `{text}`, but: {heard:#?}");
}

#[test]
fn a_fleet_under_faults_never_has_two_leaders_and_says_so_in_one_object() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let output = fleet(&log, &["--json", "--seconds", "7", "--ttl", "1s"]).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);

    let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    let kinds: Vec<&str> = report["handovers"].as_array().unwrap().iter().filter_map(|h| h["kind"].as_str()).collect();
    for kind in ["kill", "stall", "drain"] {
        assert!(kinds.contains(&kind), "no {kind} in {report}");
    }
    assert_eq!((&report["overlap_ms"], &report["ticks"]["doubled"]), (&Value::from(0.0), &Value::from(0)), "{report}");
    let ticks = |what: &str| report["ticks"][what].as_u64().unwrap();
    assert_eq!(ticks("lost"), 0, "{report}");
    assert_eq!(ticks("ran") + ticks("died"), ticks("expected"), "{report}");
    assert!(ticks("ran") > 0, "{report}");

    // The logs say the same to whoever reads them.
    let history = History::read_folder(&log).unwrap();
    assert_eq!(history.overlaps(), []);
    assert_eq!(history.term_faults(), []);
    assert!(history.runs().iter().all(|run| run.began_ns <= run.ended_ns));
    assert_eq!(instances(&log), 0);
}

#[test]
fn the_death_of_the_parent_ends_all_instances_also_a_stopped_one() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let arguments = ["--json", "--seconds", "15", "--ttl", "3s"];
    let mut parent = Guard(fleet(&log, &arguments).spawn().unwrap());
    hear(&mut parent.0, "SIGSTOP to fleet-");
    wait_until("three instances", || instances(&log) == 3);
    parent.0.kill().unwrap();
    parent.0.wait().unwrap();
    wait_until("no instance is left", || instances(&log) == 0);
}

#[test]
fn ctrl_c_ends_all_instances() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut parent = Guard(fleet(&log, &["--json"]).spawn().unwrap());
    hear(&mut parent.0, "all instances are ready");
    assert_eq!(instances(&log), 3);
    signal(&parent.0, Signal::INT);
    assert_eq!(parent.0.wait().unwrap().code(), Some(130));
    assert_eq!(instances(&log), 0);
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    std::fs::create_dir(&log).unwrap();
    std::fs::write(log.join("old.jsonl"), "").unwrap();
    for (arguments, code, told) in
        [(&["--json", "--seconds", "soon"][..], 2, "--seconds takes a whole number"), (&["--json"], 3, "is not empty")]
    {
        let output = fleet(&log, arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(told) && output.stdout.is_empty(), "{stderr}");
    }
}

#[test]
fn an_instance_that_cannot_start_ends_the_fleet_with_its_complaint() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let output = fleet(&log, &["--json", "--store", "mongodb://somewhere"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("ended with exit status: 1") && stderr.contains("mongodb"), "{stderr}");
    assert_eq!(instances(&log), 0);
}
