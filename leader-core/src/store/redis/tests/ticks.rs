//! The ledger on a real server: what only a server can show. The contract itself is checked with that of the locks.

mod memory;

use std::time::Duration;

use super::super::connection::Reply;
use super::super::keys::Keys;
use super::super::{RedisStore, ticks};
use super::server::Server;
use super::{AMPLE, store_at};
use crate::error::StoreError;
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::{
    Answer, Batch, Command, HistoryEvent, JobName, JobRecord, LeaseStore, Op, RunEnd, RunOutcome, SameId, TickAnswers,
    TickBatch, TickClaim, TickCommand, TickOp, TickReply,
};
use crate::testing::Listener;

const TTL: Duration = Duration::from_secs(60);
const RECORD: &str = "{leader:g}:job:j";
const RUNS: &str = "{leader:g}:runs:j";

/// One elector, which asks about jobs of group `g`.
struct Party {
    store: RedisStore,
    candidate: Candidate,
}

impl Party {
    async fn join(server: &Server, id: &str) -> Self {
        Self::by(store_at(&server.url()), id).await
    }

    async fn by(store: RedisStore, id: &str) -> Self {
        let candidate = Candidate { id: InstanceId::new(id).unwrap(), incarnation: Incarnation::random() };
        let (session, _) = Listener::new(candidate.clone(), []);
        store.connect(session).await.unwrap();
        Self { store, candidate }
    }

    async fn lease(&self, op: Op) -> Answer {
        let command = Command { group: GroupName::new("g").unwrap(), candidate: self.candidate.clone(), ttl: TTL, op };
        LeaseStore::execute(&self.store, Batch { commands: vec![command], timeout: AMPLE })
            .await
            .unwrap()
            .remove(0)
            .unwrap()
    }

    /// Whatever quarantine there is: these tests are about ticks.
    async fn win(&self) -> Term {
        match self.lease(Op::Acquire { floor: Term::default(), continues: true, same_id: SameId::Leave }).await {
            Answer::Won(won) => won.term,
            other => panic!("{other:?}"),
        }
    }

    async fn ask_all(&self, asked: Vec<(&str, TickOp)>) -> Result<TickAnswers, StoreError> {
        let command = |(job, op): (&str, TickOp)| TickCommand {
            group: GroupName::new("g").unwrap(),
            job: JobName::new(job).unwrap(),
            candidate: self.candidate.clone(),
            op,
        };
        let commands = asked.into_iter().map(command).collect();
        self.store.execute_ticks(TickBatch { commands, timeout: AMPLE }).await
    }

    async fn try_ask(&self, job: &str, op: TickOp) -> Result<TickReply, StoreError> {
        self.ask_all(vec![(job, op)]).await?.remove(0).map(|answer| answer.reply)
    }

    async fn ask(&self, op: TickOp) -> TickReply {
        self.try_ask("j", op).await.unwrap()
    }

    /// The store's clock, in seconds.
    async fn now(&self) -> i64 {
        let answer = self.ask_all(vec![("nobody", TickOp::Load)]).await.unwrap().remove(0).unwrap();
        (answer.now_us / 1_000_000) as i64
    }

    /// Registers the job with this last tick, wins the lease, and claims the next one, so that the record is exact.
    async fn begin(&self, last: i64) -> Term {
        self.ask(TickOp::Register { schedule: "s".to_owned(), known: Some(last) }).await;
        let term = self.win().await;
        assert_eq!(self.ask(ask(&claim(term, last + 1))).await, run(last + 1));
        self.ask(end(1)).await;
        term
    }

    async fn record(&self) -> JobRecord {
        match self.ask(TickOp::Load).await {
            TickReply::Loaded(record) => record,
            other => panic!("{other:?}"),
        }
    }

    async fn history(&self) -> Vec<HistoryEvent> {
        match self.ask(TickOp::History { limit: 999 }).await {
            TickReply::History(entries) => entries.into_iter().map(|entry| entry.event).collect(),
            other => panic!("{other:?}"),
        }
    }
}

/// By one who knows of all ticks before.
fn claim(term: Term, tick: i64) -> TickClaim {
    TickClaim {
        term,
        tick,
        expect: tick - 1,
        floor: 0,
        nonce: 1,
        not_after_us: u64::MAX,
        slot: TTL,
        forbid: true,
        at_least_once: false,
        max_attempts: 3,
        retry_within: TTL,
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

fn end(nonce: u128) -> TickOp {
    let end = RunEnd { outcome: RunOutcome::Succeeded, message: String::new(), began_us: 1, took: TTL };
    TickOp::End { nonce, end }
}

fn give_back(nonce: u128) -> TickOp {
    TickOp::GiveBack { nonce, begun: false, keep: false }
}

#[tokio::test]
async fn a_job_is_a_hash_and_a_list_without_an_end_beside_its_groups_lease() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let now = party.now().await;
    party.begin(now - 100).await;
    let Reply::List(mut names) = server.ask(&["KEYS", "*"]) else { panic!() };
    names.sort_by_key(|name| format!("{name:?}"));
    assert_eq!(names, ["leader:g", RECORD, RUNS, "{leader:g}:term"].map(super::text));
    for key in [RECORD, RUNS] {
        assert_eq!(server.ask(&["PTTL", key]), Reply::Integer(-1));
    }
    assert_eq!(server.ask(&["HGET", RECORD, "last"]), super::text(&(now - 99).to_string()));
    for _ in 0..2 {
        let note = HistoryEvent::GaveUp { tick: 1, attempts: 1 };
        party.ask_all((0..100).map(|_| ("j", TickOp::Note(note.clone()))).collect()).await.unwrap();
    }
    assert_eq!(server.ask(&["LLEN", RUNS]), Reply::Integer(120));
    server.ask(&["RPUSH", RUNS, "somebody else's"]);
    assert_eq!(party.history().await.len(), 119, "what is none of ours is left out");
}

#[tokio::test]
async fn a_key_of_a_wrong_type_fails_alone_and_is_named() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let now = party.now().await;
    let term = party.begin(now - 100).await;
    server.ask(&["LPUSH", "{leader:g}:job:bad", "x"]);
    let next = TickClaim { nonce: 2, ..claim(term, now - 50) };
    let answers = party.ask_all(vec![("bad", ask(&next)), ("j", ask(&next))]).await.unwrap();
    let error = answers[0].clone().unwrap_err();
    assert!(error.is_permanent(), "{error}");
    for part in ["claim of job `bad` of group `g`", "WRONGTYPE", "LEADER_PREFIX"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(answers[1].as_ref().unwrap().reply, run(now - 50));
    // A history that cannot be written keeps nobody from running.
    server.ask(&["SET", RUNS, "x"]);
    assert_eq!(party.ask(end(2)).await, TickReply::Ended);
    assert_eq!(party.ask(ask(&TickClaim { nonce: 3, ..claim(term, now - 40) })).await, run(now - 40));
    assert!(party.try_ask("j", TickOp::History { limit: 1 }).await.unwrap_err().is_permanent());
    let note = TickOp::Note(HistoryEvent::GaveUp { tick: 1, attempts: 1 });
    assert!(party.try_ask("j", note).await.unwrap_err().to_string().contains("WRONGTYPE"));
}

#[tokio::test]
async fn a_field_that_somebody_else_has_written_is_named_and_its_neighbours_go_on() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let now = party.now().await;
    let term = party.begin(now - 100).await;
    party.try_ask("good", TickOp::Register { schedule: "s".to_owned(), known: Some(now - 100) }).await.unwrap();
    let open = "1:00000000000000000000000000000001:1:1:1:00000000000000000000000000000001:a";
    for (number, (field, value)) in [
        ("since", ""),
        ("since", "253402300800"),
        ("last", "1e9"),
        ("open", "x"),
        ("slot", "1"),
        ("others", "1:2:3"),
        ("returned", "1:1,"),
        ("done", "x"),
        ("paused", "tomorrow"),
    ]
    .into_iter()
    .enumerate()
    {
        let Reply::List(before) = server.ask(&["HGETALL", RECORD]) else { panic!() };
        if field == "slot" {
            server.ask(&["HSET", RECORD, "open", open]);
        }
        server.ask(&["HSET", RECORD, field, value]);
        let tick = now - 90 + number as i64;
        let beside = TickClaim { forbid: false, nonce: 9 + number as u128, ..claim(term, tick) };
        let asked = vec![("j", ask(&beside)), ("good", ask(&beside)), ("j", TickOp::Load), ("j", end(1))];
        let answers = party.ask_all(asked).await.unwrap();
        let replies: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().reply).collect();
        let corrupt = TickReply::Corrupt { field };
        assert_eq!(replies, [corrupt.clone(), run(tick), corrupt.clone(), corrupt], "{field} {value}");
        server.ask(&["DEL", RECORD]);
        let mut restore = vec!["HSET", RECORD];
        restore.extend(before.iter().map(|part| match part {
            Reply::Text(text) => text.as_str(),
            other => panic!("{other:?}"),
        }));
        server.ask(&restore);
    }
    assert_eq!(party.ask(ask(&claim(term, now - 50))).await, TickReply::Done, "it is whole again");
}

#[tokio::test]
async fn a_full_memory_lets_ticks_be_claimed_kept_ended_and_given_back() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let now = party.now().await;
    let term = party.begin(now - 100).await;
    server.ask(&["CONFIG", "SET", "maxmemory", "1mb"]);
    assert!(matches!(server.ask(&["SET", "x", "y"]), Reply::Text(error) if error.contains("OOM")));
    let next = |nonce, tick| ask(&TickClaim { nonce, ..claim(term, tick) });
    assert_eq!(party.ask(next(2, now - 90)).await, run(now - 90));
    assert_eq!(party.ask(TickOp::KeepSlot { nonce: 2, slot: TTL }).await, TickReply::Kept);
    assert_eq!(party.ask(give_back(2)).await, TickReply::Returned);
    assert_eq!(party.ask(next(3, now - 90)).await, run(now - 90));
    assert_eq!(party.ask(end(3)).await, TickReply::Ended);
    assert_eq!(party.ask(TickOp::Pause { until: now + 60, note: String::new() }).await, TickReply::Changed);
    assert_eq!(party.ask(TickOp::Resume).await, TickReply::Changed);
    assert_eq!(party.history().await.len(), 5, "and the history is written");
}

#[tokio::test]
async fn the_least_rights_are_enough_and_who_lacks_them_is_told() {
    let keys = Keys::new("leader:");
    let user = format!("--user worker on >s3cret! {} {}", keys.rights().rules(), ticks::COMMANDS);
    let Some(server) = Server::start(&user.split(' ').collect::<Vec<_>>()) else { return };
    let url = server.url().replace("redis://", "redis://worker:s3cret!@");
    let party = Party::by(store_at(&url), "us").await;
    let now = party.now().await;
    // All that a job can come to; an error, if anything is not permitted.
    let everything = async |tick: i64| -> Result<Vec<HistoryEvent>, StoreError> {
        let term = party.win().await;
        let register = TickOp::Register { schedule: "s".to_owned(), known: Some(now - 100) };
        party.try_ask("j", register).await?;
        let (first, second) = (2 * tick as u128, 2 * tick as u128 + 1);
        let renamed = TickClaim { nonce: first, renamed_from: Some(JobName::new("old").unwrap()), ..claim(term, tick) };
        party.try_ask("j", ask(&renamed)).await?;
        for op in [
            TickOp::Load,
            TickOp::KeepSlot { nonce: first, slot: TTL },
            give_back(first),
            ask(&TickClaim { nonce: second, ..claim(term, tick) }),
            end(second),
            TickOp::Pause { until: 1, note: String::new() },
            TickOp::Resume,
        ] {
            party.try_ask("j", op).await?;
        }
        party.try_ask("j", TickOp::Note(HistoryEvent::GaveUp { tick, attempts: 1 })).await?;
        match party.try_ask("j", TickOp::History { limit: 9 }).await? {
            TickReply::History(entries) => Ok(entries.into_iter().map(|entry| entry.event).collect()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(everything(now - 90).await.unwrap().len(), 4);
    assert_eq!(server.ask(&["ACL", "LOG"]), Reply::List(vec![]));
    for (number, right) in ticks::COMMANDS.split(' ').enumerate() {
        server.ask(&["ACL", "SETUSER", "worker", &right.replace('+', "-")]);
        let tick = now - 80 + number as i64;
        let error = everything(tick).await.expect_err(right);
        assert!(error.is_permanent() && error.to_string().contains(right), "{error}");
        assert_eq!(party.record().await.last, tick, "the ticks go on without {right}");
        server.allow("worker", &error.to_string());
    }
    everything(now - 70).await.unwrap();
    server.ask(&["ACL", "SETUSER", "worker", "resetkeys", "~leader:*", "~{leader:g}:term", "~{leader:g}:*:mine"]);
    let answers = party.ask_all(vec![("mine", TickOp::Load), ("other", TickOp::Load)]).await.unwrap();
    assert!(answers[0].is_ok() && answers[1].as_ref().unwrap_err().is_permanent(), "{answers:?}");
}

#[tokio::test]
async fn a_thousand_to_a_call_are_answered_in_order() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(&server, "us").await;
    let term = party.win().await;
    let now = party.now().await;
    let names: Vec<String> = (0..1000).map(|n| format!("job-{n}")).collect();
    let all =
        |op: &dyn Fn(i64) -> TickOp| names.iter().enumerate().map(|(n, name)| (name.as_str(), op(n as i64))).collect();
    let register = |n: i64| TickOp::Register { schedule: "s".to_owned(), known: Some(now - 2000 + n) };
    party.ask_all(all(&register)).await.unwrap();
    let answers = party.ask_all(all(&|n| ask(&claim(term, now - 1999 + n)))).await.unwrap();
    let ran = |(n, answer): (usize, &Result<_, StoreError>)| matches!(answer, Ok(crate::store::TickAnswer { reply: TickReply::Run { tick, .. }, .. }) if *tick == now - 1999 + n as i64);
    assert!(answers.iter().enumerate().all(ran), "{answers:?}");
}
