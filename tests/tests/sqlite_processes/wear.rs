//! What stays of very many locks and hand-overs.

use std::path::Path;

use leader_tests::process::Fleet;
use rusqlite::Connection;

use crate::{PROGRAM, SHORT, start};

const LOCKS: u32 = 10_000;
const FLAPS: usize = 500;

/// How many rows each table has, and the names of all files.
fn rows_and_files(folder: &Path) -> Vec<String> {
    let database = Connection::open(folder.join("leader.db")).unwrap();
    let mut select = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
    let tables: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let rows = |table: String| {
        let count: u32 = database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        format!("{table}: {count}")
    };
    let mut files = Vec::new();
    for folder in [folder.to_owned(), folder.join("leader.db-locks")] {
        files.extend(folder.read_dir().unwrap().map(|file| file.unwrap().path().display().to_string()));
    }
    files.sort();
    tables.into_iter().map(rows).chain(files).collect()
}

fn fleet(labels: &[&str]) -> (Fleet, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::on(PROGRAM, &folder.path().join("leader.db"));
    start(&mut fleet, SHORT, labels);
    (fleet, folder)
}

#[test]
fn ten_thousand_locks_leave_nothing_in_the_file_and_nothing_in_the_process() {
    let (mut fleet, folder) = fleet(&["a"]);
    // The first lock of a file leaves the number of the newest token.
    fleet.ask("a", &leader_tests::process::Command::Locks { count: 1 }).unwrap();
    fleet.assert_locks_leave_nothing("a", LOCKS, || rows_and_files(folder.path()));
}

#[test]
fn five_hundred_hand_overs_leave_nothing_in_the_file_and_nothing_in_the_processes() {
    let (mut fleet, folder) = fleet(&["a", "b"]);
    fleet.assert_flaps_leave_nothing(["a", "b"], FLAPS, || rows_and_files(folder.path()));
}
