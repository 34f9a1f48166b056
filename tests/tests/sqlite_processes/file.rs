//! The database's file is taken away, replaced, or made read-only under running instances.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Program;

use leader_core::BootInstant;
use leader_tests::process::{Fleet, Told};

use crate::{PROGRAM, SHORT, later, start};

/// Two nodes, the file they share, and the term of `a`, which leads.
fn two() -> (Fleet, tempfile::TempDir, PathBuf, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let mut fleet = Fleet::on(PROGRAM, &path);
    start(&mut fleet, SHORT, &["a", "b"]);
    let reign = fleet.leader("default", 0);
    assert_eq!(reign.label, "a");
    (fleet, folder, path, reign.term)
}

/// The status of a node says that it needs somebody, and what for: a permanent error, whatever the doctor says beside it.
fn says(fleet: &mut Fleet, label: &str, text: &str) {
    fleet.until(&format!("the status of {label} says that something was refused: `{text}`"), |fleet| {
        let problems = fleet.problems(label);
        (problems.contains("was refused") && problems.contains(text)).then_some(())
    });
}

fn side(path: &Path, suffix: &str) -> PathBuf {
    format!("{}{suffix}", path.display()).into()
}

#[test]
fn instances_whose_file_was_replaced_lead_no_more_and_say_why() {
    let (mut fleet, folder, path, term) = two();
    // A backup is put in its place, as it is.
    let away = folder.path().join("away.db");
    fs::rename(&path, &away).unwrap();
    fs::copy(&away, &path).unwrap();
    fleet.hears("a", "that its lease is lost", |t| t.is_event("default", "lost"));
    says(&mut fleet, "a", "another file");
    says(&mut fleet, "a", "restart this instance");
    // The other one finds out when it wants the lease.
    says(&mut fleet, "b", "another file");
    let nobody = |told: &Told| told.leads("default").is_some_and(|new| new > term);
    assert!(!["a", "b"].iter().any(|label| fleet.told_by(label).any(nobody)));
    fleet.assert_safe();
}

#[test]
fn a_file_that_was_deleted_is_noticed_and_a_new_one_has_no_leader_beside_the_old_ones() {
    let (mut fleet, _folder, path, term) = two();
    let deleted = BootInstant::now();
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(side(&path, suffix)).unwrap();
    }
    // Starts at once, on a new file, while the old leader may still believe in the old one.
    fleet.start(&fleet.plan("c", SHORT));
    let view = fleet.next_view("default", deleted, 0);
    assert!(view.instance == "c" || view.term == term, "{view:?}");
    for label in ["a", "b"] {
        says(&mut fleet, label, "leader.db");
    }
    let next = fleet.leader("default", term);
    assert_eq!(next.label, "c");
    fleet.still_leads(&next, "default", later(SHORT));
    fleet.assert_safe();
}

/// Files that nobody may change, not even root and who has them open; changeable again at the end whatever happens.
struct Immutable(Vec<PathBuf>);

impl Immutable {
    #[allow(clippy::print_stderr)]
    fn new(paths: Vec<PathBuf>) -> Option<Self> {
        let files = Self(paths);
        let possible = files.set("+i");
        if !possible {
            eprintln!("skipped: this user or this file system has no immutable files");
        }
        possible.then_some(files)
    }

    fn set(&self, flag: &str) -> bool {
        Program::new("chattr").arg(flag).args(&self.0).output().is_ok_and(|done| done.status.success())
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        self.set("-i");
    }
}

#[test]
fn a_file_that_was_made_read_only_is_a_clear_problem_and_nobody_leads_by_it() {
    let (mut fleet, _folder, path, term) = two();
    let Some(files) = Immutable::new(["", "-wal", "-shm"].map(|suffix| side(&path, suffix)).into()) else { return };
    fleet.hears("a", "that its lease is lost", |t| t.is_event("default", "lost"));
    says(&mut fleet, "a", "read-only");
    // Who starts now is refused, with what to do.
    fleet.spawn(&fleet.plan("c", SHORT));
    let told = fleet.hears("c", "why it cannot start", |t| matches!(t, Told::NotStarted { .. }));
    let Told::NotStarted { error } = told else { unreachable!() };
    assert!(error.contains("leader.db") && error.contains("right to write"), "{error}");
    drop(files);
    fleet.leader("default", term);
    fleet.assert_safe();
}
