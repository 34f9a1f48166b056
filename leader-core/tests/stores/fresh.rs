//! A file that is new: whether it took the place of another.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use leader_core::FreshStore;
use leader_core::store::{Answer, SqliteStore};

use crate::party::{LONG, PATIENCE, Party};

fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", path.display())).unwrap();
    }
}

#[tokio::test]
async fn instances_that_start_together_on_a_new_file_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let starts: Vec<_> = (0..6)
        .map(|n| {
            let path = path.clone();
            tokio::spawn(async move { Party::join(&path, &format!("i{n}")).await.unwrap() })
        })
        .collect();
    let mut won = 0;
    let mut parties = Vec::new();
    for start in starts {
        let party = start.await.unwrap();
        match party.acquire(LONG).await.unwrap() {
            Answer::Won(_) => won += 1,
            Answer::Held(_) => {}
            other => panic!("{other:?}"),
        }
        parties.push(party);
    }
    assert_eq!(won, 1);
    for party in parties {
        party.leave().await;
    }
}

#[tokio::test]
async fn a_new_file_beside_living_instances_gives_no_lease_for_one_ttl() {
    const TTL: Duration = Duration::from_millis(800);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let old = Party::join(&path, "a").await.unwrap();
    old.win().await;
    remove(&path);
    let begin = Instant::now();
    let new = Party::join(&path, "b").await.unwrap();
    let mut waited = false;
    loop {
        match new.acquire(TTL).await.unwrap() {
            Answer::Won(won) => {
                assert!(!won.in_quarantine);
                break;
            }
            Answer::Quarantined { remaining, reason } => {
                waited = true;
                assert!(remaining <= TTL && reason.contains("file is new"), "{remaining:?}: {reason}");
                tokio::time::sleep(remaining).await;
            }
            other => panic!("{other:?}"),
        }
        assert!(begin.elapsed() < PATIENCE);
    }
    assert!(waited && begin.elapsed() >= TTL);
    old.leave().await;
    new.leave().await;
}

#[tokio::test]
async fn a_new_file_can_be_trusted_on_purpose() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let old = Party::join(&path, "a").await.unwrap();
    remove(&path);
    let new = Party::by(SqliteStore::new(&path).fresh_store(FreshStore::Trust), "b").await.unwrap();
    new.win().await;
    old.leave().await;
    new.leave().await;
}
