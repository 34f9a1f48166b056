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

/// Acquires with this ttl until it is won, and returns how long it was made to wait.
async fn sit_out(party: &Party, ttl: Duration) -> Duration {
    let begin = Instant::now();
    let mut waited = Duration::ZERO;
    loop {
        match party.acquire(ttl).await.unwrap() {
            Answer::Won(won) => {
                assert!(!won.in_quarantine);
                return waited;
            }
            Answer::Quarantined { remaining, reason } => {
                assert!(remaining <= ttl && reason.contains("taken the place of another"), "{remaining:?}: {reason}");
                tokio::time::sleep(remaining).await;
                waited = begin.elapsed();
            }
            other => panic!("{other:?}"),
        }
        assert!(begin.elapsed() < PATIENCE);
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
    assert!(!sit_out(&new, TTL).await.is_zero() && begin.elapsed() >= TTL);
    old.leave().await;
    new.leave().await;
}

#[tokio::test]
async fn an_old_copy_beside_living_instances_gives_no_lease_for_one_ttl() {
    const TTL: Duration = Duration::from_millis(800);
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("leader.db"), folder.path().join("copy.db"));
    Party::join(&path, "first").await.unwrap().leave().await;
    fs::copy(&path, &copy).unwrap();
    let old = Party::join(&path, "a").await.unwrap();
    old.win().await;
    remove(&path);
    fs::rename(&copy, &path).unwrap();
    let begin = Instant::now();
    let new = Party::join(&path, "b").await.unwrap();
    assert!(!sit_out(&new, TTL).await.is_zero() && begin.elapsed() >= TTL);
    old.leave().await;
    new.leave().await;
}

#[tokio::test]
async fn who_noticed_that_its_file_is_lost_makes_nobody_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let old = Party::join(&path, "a").await.unwrap();
    remove(&path);
    assert!(old.acquire(LONG).await.is_err());
    let new = Party::join(&path, "b").await.unwrap();
    new.win().await;
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
