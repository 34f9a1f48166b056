//! The worker: what it does with commands that come late, and with electors that leave.

use std::time::{Duration, Instant};

use leader_core::store::{Answer, LeaseStore, Op};
use rusqlite::Connection;

use crate::party::{LONG, PATIENCE, Party, acquire};

#[tokio::test]
async fn a_command_that_comes_too_late_is_not_executed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let short = Duration::from_millis(50);
    // The first waits for the writer's lock until its time is over; the second is not begun at all.
    let (first, second) = tokio::join!(
        party.batch(vec![party.command("g", LONG, acquire())], short),
        party.batch(vec![party.command("h", LONG, acquire())], short),
    );
    assert!(!first.unwrap_err().is_permanent());
    assert!(!second.unwrap_err().is_permanent());
    other.execute_batch("ROLLBACK").unwrap();
    for group in ["g", "h"] {
        let answers = party.batch(vec![party.command(group, LONG, Op::Inspect)], PATIENCE).await.unwrap();
        assert_eq!(answers, [Ok(Answer::Inspected(None))]);
    }
    party.leave().await;
}

#[tokio::test]
async fn a_follower_is_answered_while_somebody_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    a.win().await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(b.acquire(LONG).await, Ok(Answer::Held(_))));
    assert!(matches!(b.ask(LONG, Op::Inspect).await, Ok(Answer::Inspected(Some(_)))));
    other.execute_batch("ROLLBACK").unwrap();
    a.leave().await;
    b.leave().await;
}

#[tokio::test]
async fn an_elector_that_leaves_without_a_release_keeps_its_lease_to_the_end() {
    const TTL: Duration = Duration::from_millis(800);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    let begin = Instant::now();
    assert!(matches!(a.acquire(TTL).await, Ok(Answer::Won(_))));
    // From here on `b` waits for the end of `a`, too.
    assert!(matches!(b.ask(LONG, Op::Inspect).await, Ok(Answer::Inspected(_))));
    a.leave().await;
    // Asks more often than it is told to: an end that is seen too early must show.
    while let Answer::Held(_) = b.acquire(LONG).await.unwrap() {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(begin.elapsed() >= TTL, "{:?}", begin.elapsed());
    b.leave().await;
}

#[tokio::test]
async fn a_handle_that_is_dropped_keeps_the_leases_of_its_electors_to_the_end() {
    const TTL: Duration = Duration::from_millis(800);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let (a, b) = (Party::join(&path, "a").await.unwrap(), Party::join(&path, "b").await.unwrap());
    let begin = Instant::now();
    assert!(matches!(a.acquire(TTL).await, Ok(Answer::Won(_))));
    // From here on `b` waits for the end of `a`, too.
    assert!(matches!(b.ask(LONG, Op::Inspect).await, Ok(Answer::Inspected(_))));
    drop(a);
    // Asks more often than it is told to: an end that is seen too early must show.
    while let Answer::Held(_) = b.acquire(LONG).await.unwrap() {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(begin.elapsed() >= TTL, "{:?}", begin.elapsed());
    b.leave().await;
}

#[tokio::test]
async fn an_elector_that_is_not_connected_gets_no_lease() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let a = Party::join(&path, "a").await.unwrap();
    a.store.disconnect(a.candidate.incarnation).await.unwrap();
    let text = crate::party::refused(a.acquire(LONG).await);
    assert!(text.contains("connect"), "{text}");
}
