//! Disks that are full or read-only. Needs the right to mount; without it these tests say so and check nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use leader_core::store::Answer;

use crate::party::{Party, refused};

/// A small file system of its own, unmounted at the end whatever happens.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(size: &str) -> Option<Self> {
        let mount = Self(tempfile::tempdir().unwrap());
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "leader-test"], mount.path()).then_some(mount)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["-l"], self.0.path());
    }
}

#[allow(clippy::print_stderr)]
fn run(program: &str, options: &[&str], path: &Path) -> bool {
    let done = Command::new(program).args(options).arg(path).output();
    let ok = done.as_ref().is_ok_and(|output| output.status.success());
    if !ok {
        eprintln!("{program} {options:?} {} is not possible here: {done:?}", path.display());
    }
    ok
}

#[tokio::test]
async fn a_full_disk_fails_for_as_long_as_it_is_full_and_loses_nothing() {
    let Some(mount) = Mount::new("256k") else { return };
    let party = Party::join(&mount.path().join("leader.db"), "a").await.unwrap();
    let mut term = party.win().await;
    let filler = mount.path().join("filler");
    // As much as fits.
    assert!(fs::write(&filler, vec![0; 1 << 20]).is_err());
    let mut renews = 0;
    let error = loop {
        match party.renew(term).await {
            Ok(answer) => assert_eq!(answer, Answer::Renewed),
            Err(error) => break error,
        }
        renews += 1;
        assert!(renews < 10_000);
    };
    assert!(!error.is_permanent(), "{error}");
    assert!(error.to_string().contains("make room") || error.to_string().contains("may be full"), "{error}");
    fs::remove_file(&filler).unwrap();
    assert_eq!(party.renew(term).await, Ok(Answer::Renewed));
    let next = party.win().await;
    assert!(next > term);
    term = next;
    assert_eq!(party.renew(term).await, Ok(Answer::Renewed));
    party.leave().await;
}

#[tokio::test]
async fn a_disk_too_small_for_the_file_is_a_passing_error() {
    let Some(mount) = Mount::new("16k") else { return };
    match Party::join(&mount.path().join("leader.db"), "a").await.map(|party| party.candidate) {
        Err(error) if !error.is_permanent() => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_read_only_file_is_refused() {
    let Some(mount) = Mount::new("1m") else { return };
    let path = mount.path().join("leader.db");
    Party::join(&path, "a").await.unwrap().leave().await;
    // Possible because nobody has the file open any more.
    assert!(run("mount", &["-o", "remount,ro"], mount.path()));
    let text = refused(Party::join(&path, "a").await.map(|party| party.candidate));
    assert!(text.contains("read-only") && text.contains("right to write"), "{text}");
    let text = refused(Party::join(&mount.path().join("new.db"), "a").await.map(|party| party.candidate));
    assert!(text.contains("right to write"), "{text}");
}
