//! A writer that is stopped between its check and its write is refused by the database.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod programs;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use programs::{Guard, program, signal};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn accounts(&self) -> std::path::PathBuf {
        self.0.path().join("accounts.db")
    }

    fn writer(&self) -> Command {
        let mut command = Command::new(program("fenced_writer"));
        command.env("LEADER_STORE", format!("sqlite://{}", self.0.path().join("leader.db").display()));
        command.arg(self.accounts()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Balance and token.
    fn account(&self) -> (i64, i64) {
        let database = Connection::open(self.accounts()).unwrap();
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        database.query_row("SELECT balance, token FROM accounts WHERE id = 7", [], row).unwrap()
    }
}

/// The token in what a writer says.
fn token(line: &str) -> i64 {
    line.split_once("under token ").unwrap().1.trim_end_matches(": press Enter").parse().unwrap()
}

/// Stops it outside of a transaction: otherwise it would stop all who write to the same file.
fn stop(child: &Child) {
    let pid = Pid::from_child(child);
    loop {
        signal(child, Signal::STOP);
        // Without this it may run on for a moment.
        waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED).unwrap();
        if !writes(pid) {
            return;
        }
        signal(child, Signal::CONT);
    }
}

fn writes(pid: Pid) -> bool {
    let pid = pid.as_raw_nonzero().to_string();
    let locks = std::fs::read_to_string(Path::new("/proc/locks")).unwrap();
    locks.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.contains(&"POSIX") && words.contains(&"WRITE") && words.contains(&pid.as_str())
    })
}

#[test]
fn a_writer_that_was_stopped_for_too_long_changes_nothing() {
    let place = Place::new();
    let mut first = Guard(place.writer().stdin(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(first.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    let asked = lines.next().unwrap();
    assert!(asked.starts_with("will write 90"), "{asked}");
    stop(&first.0);

    // It waits until the lock of the first one has ended.
    let second = place.writer().output().unwrap();
    let told = String::from_utf8_lossy(&second.stdout).into_owned();
    assert!(second.status.success(), "{told}{}", String::from_utf8_lossy(&second.stderr));
    let newer = token(told.lines().last().unwrap());
    assert!(newer > token(&asked), "{told} after {asked}");
    assert_eq!(place.account(), (90, newer));

    signal(&first.0, Signal::CONT);
    first.0.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut complaint = String::new();
    first.0.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    assert!(!first.0.wait().unwrap().success());
    assert!(complaint.contains("Fenced") && complaint.contains(&token(&asked).to_string()), "{complaint}");
    assert_eq!((lines.next(), place.account()), (None, (90, newer)));

    // Whoever comes now does it again, from what is there.
    let third = place.writer().output().unwrap();
    assert!(third.status.success());
    assert_eq!(place.account(), (80, token(String::from_utf8_lossy(&third.stdout).lines().last().unwrap())));
}
