//! Wall clocks that jump. They are faked by libfaketime (Debian: package `faketime`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use leader_core::BootInstant;
use leader_tests::process::{Fleet, Spawn};

use crate::{LONG_BEFORE, PROGRAM, SHORT, later, took};

const DAY: i64 = 86_400;

/// Where the library is. Without it: nothing to test on a developer's machine, a failure where CI should have installed it.
#[allow(clippy::print_stderr)]
fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let found = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "libfaketime is missing: install the package faketime");
        eprintln!("skipped: libfaketime is missing (install the package faketime)");
    }
    found
}

/// A wall clock that is moved by writing a file.
struct Wall {
    file: PathBuf,
}

impl Wall {
    fn new(folder: &Path, label: &str) -> Self {
        let wall = Self { file: folder.join(format!("{label}.faketime")) };
        wall.jump_to(0);
        wall
    }

    /// So many seconds from the true time, from now on.
    fn jump_to(&self, offset: i64) {
        // Renamed into its place: a process never reads half of it.
        let draft = self.file.with_extension("draft");
        fs::write(&draft, format!("{offset:+}")).unwrap();
        fs::rename(&draft, &self.file).unwrap();
    }

    /// Its process reads this clock. CLOCK_MONOTONIC, which no jump of a wall clock moves, stays true.
    fn of(&self, mut plan: Spawn, library: &Path) -> Spawn {
        let settings = [
            ("LD_PRELOAD", library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        plan.environment.extend(settings.map(|(name, value)| (name.to_owned(), value)));
        plan
    }
}

/// The fake is effective: the process reads a wall clock that is so far from ours. And it is not in what is measured: the
/// process reads our boot clock, which `BootInstant` asks of the kernel without the C library.
fn assert_reads(fleet: &mut Fleet, label: &str, offset: i64) {
    let before = BootInstant::now().as_nanos();
    let status = fleet.status(label);
    let boot = status["boot_clock_ns"].as_u64().unwrap();
    assert!((before..=BootInstant::now().as_nanos()).contains(&boot), "the boot clock of {label} is another");
    let truth = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let wall = status["wall_clock_s"].as_i64().unwrap();
    assert!((wall - truth - offset).abs() < 60, "the wall clock of {label} is {} s ahead, not {offset}", wall - truth);
}

#[test]
fn jumps_of_wall_clocks_in_either_direction_change_nothing() {
    let Some(library) = library() else { return };
    let mut fleet = Fleet::new(PROGRAM);
    let walls = ["a", "b"].map(|label| Wall::new(fleet.folder(), label));
    for (label, wall) in ["a", "b"].iter().zip(&walls) {
        let plan = wall.of(fleet.plan(label, SHORT), &library);
        fleet.start(&plan);
        assert_reads(&mut fleet, label, 0);
    }
    let reign = fleet.leader("default", 0);
    assert_eq!(reign.label, "a");
    // The leader's forward and the follower's back, then the other way round, for more than a ttl each.
    for offset in [DAY, -DAY] {
        walls[0].jump_to(offset);
        walls[1].jump_to(-offset);
        assert_reads(&mut fleet, "a", offset);
        assert_reads(&mut fleet, "b", -offset);
        fleet.still_leads(&reign, "default", later(SHORT + SHORT / 3));
        assert_eq!(fleet.leader("default", 0), reign);
    }
    assert_eq!(fleet.read_logs().views().len(), 1, "{:?}", fleet.read_logs().views());
    // A term is larger than the one before also if the clock that it is made by is a day behind.
    walls[1].jump_to(-2 * DAY);
    assert_reads(&mut fleet, "b", -2 * DAY);
    let killed = BootInstant::now();
    fleet.kill("a");
    let view = fleet.next_view("default", killed, reign.term);
    assert_eq!(view.instance, "b");
    assert!(took(killed, &view) < LONG_BEFORE);
    fleet.assert_safe();
}
