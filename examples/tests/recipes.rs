//! Each recipe does what it says, in the time that a reader has.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod programs;

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use programs::{Guard, program, signal};
use rustix::process::Signal;

fn run(example: &str, store: &str) -> String {
    let Output { status, stdout, stderr } = Command::new(program(example)).env("LEADER_STORE", store).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{example} on {store}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

fn on_each_store(example: &str, told: &str) {
    let folder = tempfile::tempdir().unwrap();
    for store in ["memory:".to_owned(), format!("sqlite://{}/leader.db", folder.path().display())] {
        let output = run(example, &store);
        assert!(output.contains(told), "{example} on {store}:\n{output}");
    }
}

#[test]
fn start_up_work_runs_where_nobody_else_leads() {
    on_each_store("startup_once", "this instance leads: 128 cache entries are warm");
}

#[test]
fn a_drained_node_leads_nothing() {
    on_each_store(
        "maintenance_drain",
        "drained: default is led by another one\ndrained: cleanup is led by another one",
    );
}

#[test]
fn after_a_step_down_two_instances_share_the_work() {
    on_each_store("spread_workloads", "instance 1 leads [\"reindex\"], so it rebuilds the search index");
}

#[test]
fn the_jobs_of_two_groups_run() {
    let output = run("singleton_cron", "memory:");
    assert!(output.contains("reports/report-") && output.contains("expired reports are removed"), "{output}");
}

#[test]
fn a_charge_run_waits_for_an_older_one_that_is_still_on() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["memory:".to_owned(), format!("sqlite://{}/leader.db", folder.path().display())] {
        let output = run("charge_run", &store);
        let (before, after) = output.split_once("the older run ends").unwrap_or_else(|| panic!("{store}:\n{output}"));
        assert!(before.is_empty() && after.contains("charged account 17 for"), "{store}:\n{output}");
    }
}

#[test]
fn start_up_work_is_done_once_for_each_version() {
    for version in ["1.4.0", "1.5.0"] {
        on_each_store("versioned_warm_up", &format!("version {version}: warmed up by 1 of 3 instances, [128] entries"));
    }
}

#[test]
fn the_first_program_runs_its_job_until_it_is_asked_to_end() {
    let mut command = Command::new(program("first"));
    let mut child = Guard(command.env("LEADER_STORE", "memory:").stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    // Its log goes there, too.
    assert!(lines.any(|line| line.contains("warms the caches")));
    assert!(lines.any(|line| line == "digest 1"));
    signal(&child.0, Signal::TERM);
    assert!(child.0.wait().unwrap().success());
}
