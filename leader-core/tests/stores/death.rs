//! A process that is killed: its lease is free at once. The children are this test's own program.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use leader_core::Term;
use leader_core::store::{Answer, Held};

use crate::party::{LONG, Party};

const PATH: &str = "LEADER_TEST_CHILD_PATH";

/// Not a test of its own: what the child does.
#[tokio::test]
async fn child_that_wins_and_waits() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let party = Party::join(Path::new(&path), "child").await.unwrap();
    let term = party.win().await;
    #[allow(clippy::print_stdout)]
    {
        println!("\nwon {term}");
    }
    // Until the parent's end of the pipe closes: no child outlives its test.
    let _ = std::io::stdin().lines().next();
    std::process::exit(0);
}

/// Killed at the end, whatever happens.
struct Winner(Child);

impl Winner {
    fn start(path: &Path) -> (Self, Term) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "death::child_that_wins_and_waits", "--nocapture"])
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let winner = Self(child);
        for line in output.lines() {
            if let Some(term) = line.unwrap().strip_prefix("won ") {
                return (winner, Term::new(term.parse().unwrap()));
            }
        }
        panic!("the child ended without having won");
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Winner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn locks(path: &Path) -> usize {
    let folder = std::fs::read_dir(format!("{}-locks", path.display())).unwrap();
    folder.filter(|entry| entry.as_ref().unwrap().file_name() != "doorbell").count()
}

#[tokio::test]
async fn the_lease_of_a_killed_process_is_announced_and_free_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let mut follower = Party::join(&path, "follower").await.unwrap();
    let (mut child, term) = Winner::start(&path);
    match follower.acquire(LONG).await.unwrap() {
        Answer::Held(Held { holder, .. }) => assert_eq!(holder.as_str(), "child"),
        other => panic!("{other:?}"),
    }
    child.kill();
    assert_eq!(follower.hears().await.as_str(), "g");
    assert!(follower.win().await > term);
    // The dead one's lock file is gone, the follower's is there.
    assert_eq!(locks(&path), 1);
    follower.leave().await;
}

#[tokio::test]
async fn who_comes_after_the_death_finds_the_lease_free() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (mut child, term) = Winner::start(&path);
    child.kill();
    let late = Party::join(&path, "late").await.unwrap();
    assert!(late.win().await > term);
    assert_eq!(locks(&path), 1);
    late.leave().await;
}

#[tokio::test]
async fn a_living_process_keeps_its_lease_although_others_wait_for_its_death() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (_child, _) = Winner::start(&path);
    for _ in 0..3 {
        let follower = Party::join(&path, "follower").await.unwrap();
        for _ in 0..3 {
            assert!(matches!(follower.acquire(LONG).await, Ok(Answer::Held(_))));
        }
        follower.leave().await;
    }
}
