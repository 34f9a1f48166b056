//! The ledger in an SQLite file: what only a file can show.

use std::path::Path;
use std::time::Duration;

use leader_core::Term;
use leader_core::store::{
    Answer, JobName, JobRecord, LeaseStore, Op, RunEnd, RunOutcome, TickAnswers, TickBatch, TickClaim, TickCommand,
    TickOp, TickReply,
};
use rusqlite::Connection;

use crate::party::{LONG, PATIENCE, Party, group};

const SHORT: Duration = Duration::from_millis(300);

impl Party {
    async fn ticks(&self, asked: Vec<(&str, TickOp)>) -> TickAnswers {
        let command = |(job, op): (&str, TickOp)| TickCommand {
            group: group("g"),
            job: JobName::new(job).unwrap(),
            candidate: self.candidate.clone(),
            op,
        };
        let commands = asked.into_iter().map(command).collect();
        let call = self.store.execute_ticks(TickBatch { commands, timeout: PATIENCE });
        tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap()
    }

    async fn tick(&self, op: TickOp) -> TickReply {
        self.ticks(vec![("j", op)]).await.remove(0).unwrap().reply
    }

    async fn record(&self) -> JobRecord {
        match self.tick(TickOp::Load).await {
            TickReply::Loaded(record) => record,
            other => panic!("{other:?}"),
        }
    }

    /// The store's clock, in seconds.
    async fn now(&self) -> i64 {
        (self.ticks(vec![("nobody", TickOp::Load)]).await.remove(0).unwrap().now_us / 1_000_000) as i64
    }

    /// Wins the lease, and claims the tick of a minute ago, so that the record is exact.
    async fn begin(&self) -> (Term, i64) {
        let (term, tick) = (self.win().await, self.now().await - 60);
        self.tick(TickOp::Register { schedule: "s".to_owned(), known: Some(tick - 1) }).await;
        assert_eq!(self.tick(ask(&claim(term, tick))).await, run(tick));
        (term, tick)
    }
}

/// By one who knows of all ticks before.
fn claim(term: Term, tick: i64) -> TickClaim {
    TickClaim {
        term,
        tick,
        expect: tick - 1,
        floor: 0,
        nonce: tick as u128,
        not_after_us: u64::MAX,
        slot: LONG,
        forbid: true,
        at_least_once: false,
        max_attempts: 3,
        retry_within: LONG,
        schedule: "s".to_owned(),
        missed: None,
        vouch: true,
        renamed_from: None,
    }
}

fn ask(claim: &TickClaim) -> TickOp {
    TickOp::Claim(Box::new(claim.clone()))
}

fn run(tick: i64) -> TickReply {
    TickReply::Run { tick, attempt: 1 }
}

fn end(tick: i64) -> TickOp {
    let end = RunEnd { outcome: RunOutcome::Succeeded, message: String::new(), began_us: 1, took: SHORT };
    TickOp::End { nonce: tick as u128, end }
}

/// By hand, as anybody may.
fn meddle(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn the_ledger_outlives_its_processes_and_another_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let first = Party::join(&path, "first").await.unwrap();
    let (_, tick) = first.begin().await;
    first.tick(end(tick)).await;
    let record = first.record().await;
    assert_eq!((record.last, record.floor), (tick, 0));
    first.leave().await;
    let moved = folder.path().join("moved.db");
    std::fs::rename(&path, &moved).unwrap();
    let second = Party::join(&moved, "second").await.unwrap();
    assert_eq!(second.record().await, record);
    second.leave().await;
}

#[tokio::test]
async fn a_backup_that_was_put_in_place_runs_nothing_that_it_may_have_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let (path, backup) = (folder.path().join("leader.db"), folder.path().join("backup.db"));
    let party = Party::join(&path, "a").await.unwrap();
    let (term, tick) = party.begin().await;
    party.tick(end(tick)).await;
    meddle(&path, &format!("VACUUM INTO '{}'", backup.display()));
    assert_eq!(party.tick(ask(&claim(term, tick + 1))).await, run(tick + 1));
    // Or leases of the old file might be believed in, and the new one would give none.
    assert_eq!(party.ask(LONG, Op::Release { term: None }).await, Ok(Answer::Released));
    party.leave().await;
    std::fs::rename(&backup, &path).unwrap();

    let party = Party::join(&path, "a").await.unwrap();
    // The backup holds the lease, too.
    meddle(&path, "UPDATE lease SET released = 1");
    let (term, record) = (party.win().await, party.record().await);
    assert_eq!(record.last, tick);
    assert!(record.floor > tick + 1, "{record:?}");
    let stranger = TickClaim { vouch: false, nonce: 1, ..claim(term, tick + 1) };
    let floor = record.floor;
    assert_eq!(party.tick(ask(&stranger)).await, TickReply::Already { last: tick, floor });
    // Who has led all the time knows better.
    let vouches = TickClaim { expect: tick + 1, nonce: 2, ..claim(term, tick + 2) };
    assert_eq!(party.tick(ask(&vouches)).await, run(tick + 2));
    party.leave().await;
}

#[tokio::test]
async fn a_slot_of_another_clock_is_over_once_it_stood_unchanged_for_its_whole_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let (term, tick) = party.begin().await;
    party.tick(end(tick)).await;
    let first = TickClaim { slot: SHORT, ..claim(term, tick + 1) };
    assert_eq!(party.tick(ask(&first)).await, run(tick + 1));
    // As after a start of the host: its own instants say nothing, be they past or far ahead.
    meddle(&path, "UPDATE job SET clock = 'another', slot_end_ns = 1");
    let mut waits = 0;
    let answer = loop {
        match party.tick(ask(&claim(term, tick + 2))).await {
            TickReply::Busy { left, .. } => {
                assert!(left <= SHORT, "{left:?}");
                waits += 1;
                tokio::time::sleep(left).await;
            }
            other => break other,
        }
    };
    assert_eq!((answer, waits > 0), (run(tick + 2), true));
    party.leave().await;
}

#[tokio::test]
async fn a_file_of_a_version_without_a_ledger_gets_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let term = party.win().await;
    party.leave().await;
    meddle(&path, "DROP TABLE job; DROP TABLE job_history; DROP TABLE job_file");
    let party = Party::join(&path, "a").await.unwrap();
    meddle(&path, "UPDATE lease SET released = 1");
    let (next, _) = party.begin().await;
    assert!(next > term);
    party.leave().await;
}

#[tokio::test]
async fn a_row_that_somebody_else_has_written_is_named_and_its_neighbours_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leader.db");
    let party = Party::join(&path, "a").await.unwrap();
    let (term, tick) = party.begin().await;
    party.ticks(vec![("good", TickOp::Register { schedule: "s".to_owned(), known: Some(tick) })]).await;
    for (number, (sql, corrupt)) in [
        ("UPDATE job SET \"last\" = 'x' WHERE name = 'j'", true),
        ("UPDATE job SET \"last\" = '5', slot_end_ns = -1 WHERE name = 'j'", false),
    ]
    .into_iter()
    .enumerate()
    {
        meddle(&path, sql);
        let next = TickClaim { forbid: false, ..claim(term, tick + 1 + number as i64) };
        let mut answers = party.ticks(vec![("j", ask(&next)), ("good", ask(&next)), ("j", TickOp::Load)]).await;
        assert_eq!(answers.remove(1).unwrap().reply, run(next.tick));
        for answer in answers {
            match answer {
                Ok(answer) => assert_eq!((answer.reply, corrupt), (TickReply::Corrupt { field: "last" }, true)),
                Err(error) => {
                    assert!(!corrupt && error.is_permanent() && error.to_string().contains("job `j`"), "{error}")
                }
            }
        }
    }
    party.leave().await;
}
