//! Replicas that are waited for, on real servers: what is, on which connection, and what is not.

use std::time::Duration;

use super::super::RedisStore;
use super::super::connection::Reply;
use super::super::keys::Keys;
use super::AMPLE;
use super::server::Server;
use crate::config::FreshStore;
use crate::doctor::{Finding, Severity};
use crate::error::StoreError;
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::{
    Answer, Answers, Batch, Command, Examination, LeaseStore, LockAnswer, LockBatch, LockCommand, LockKey, LockOp,
    LockOwner, Op, SameId,
};
use crate::testing::Listener;

const TTL: Duration = Duration::from_secs(60);
/// In which a replica that stands still does not confirm.
const BRIEF: Duration = Duration::from_millis(800);

/// A primary, and a replica in step with it.
struct Pair {
    primary: Server,
    replica: Server,
}

impl Pair {
    async fn start() -> Option<Self> {
        let primary = Server::start(&["--repl-diskless-sync-delay", "0"])?;
        let port = primary.port.to_string();
        let replica = Server::start(&["--replicaof", "127.0.0.1", &port])?;
        let pair = Self { primary, replica };
        pair.until_followed().await;
        Some(pair)
    }

    async fn until_followed(&self) {
        let replication = || match self.primary.ask(&["INFO", "replication"]) {
            Reply::Text(info) => info,
            other => panic!("{other:?}"),
        };
        let followed = async {
            while !replication().contains("state=online") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(AMPLE, followed).await.unwrap();
    }

    fn store(&self, replicas: u8) -> RedisStore {
        RedisStore::new(&self.primary.url()).unwrap().fresh_store(FreshStore::Trust).replicas(replicas)
    }

    /// How often the primary was told to wait.
    fn waits(&self) -> u64 {
        let Reply::Text(stats) = self.primary.ask(&["INFO", "commandstats"]) else { panic!("INFO is no text") };
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_wait:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    }

    /// How many connections wait now.
    fn waits_under_way(&self) -> usize {
        let Reply::Text(list) = self.primary.ask(&["CLIENT", "LIST"]) else { panic!("CLIENT LIST is no text") };
        // A blocked client.
        list.lines().filter(|line| line.contains(" flags=b ") && line.contains(" cmd=wait ")).count()
    }

    /// Connections to the primary, but the replica's and the one that asks.
    fn connections(&self) -> usize {
        let lists = ["normal", "pubsub"].map(|kind| self.primary.ask(&["CLIENT", "LIST", "TYPE", kind]));
        lists.map(|list| if let Reply::Text(list) = list { list.lines().count() } else { 0 }).iter().sum::<usize>() - 1
    }
}

/// One elector.
struct Party {
    store: RedisStore,
    candidate: Candidate,
}

impl Party {
    async fn join(store: RedisStore, id: &str) -> Self {
        let candidate = Candidate { id: InstanceId::new(id).unwrap(), incarnation: Incarnation::random() };
        let (session, _) = Listener::new(candidate.clone(), []);
        store.connect(session).await.unwrap();
        Self { store, candidate }
    }

    fn command(&self, (group, op): (&str, Op)) -> Command {
        Command { group: GroupName::new(group).unwrap(), candidate: self.candidate.clone(), ttl: TTL, op }
    }

    async fn batch<const N: usize>(&self, asked: [(&str, Op); N], timeout: Duration) -> Result<Answers, StoreError> {
        let commands = asked.map(|asked| self.command(asked)).into();
        LeaseStore::execute(&self.store, Batch { commands, timeout }).await
    }

    async fn ask(&self, op: Op, timeout: Duration) -> Result<Answer, StoreError> {
        self.batch([("g", op)], timeout).await?.remove(0)
    }

    async fn win(&self) -> Term {
        match self.ask(acquire(), AMPLE).await {
            Ok(Answer::Won(won)) => won.term,
            other => panic!("{other:?}"),
        }
    }

    async fn lock(&self, owner: &LockOwner, op: LockOp, timeout: Duration) -> Result<LockAnswer, StoreError> {
        let command = LockCommand { key: LockKey::new("k").unwrap(), owner: owner.clone(), ttl: TTL, op };
        self.store.execute_locks(LockBatch { commands: vec![command], timeout }).await?.remove(0)
    }

    async fn win_lock(&self, owner: &LockOwner) -> Term {
        match self.lock(owner, acquire_lock(), AMPLE).await {
            Ok(LockAnswer::Won { token }) => token,
            other => panic!("{other:?}"),
        }
    }

    async fn examined(&self) -> Vec<Finding> {
        let examination = Examination {
            candidate: self.candidate.clone(),
            groups: [(GroupName::new("g").unwrap(), Vec::new())].into(),
            program: "billing".to_owned(),
            ttl: TTL,
            timeout: AMPLE,
        };
        self.store.examine(examination).await.unwrap()
    }
}

fn acquire() -> Op {
    Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Leave }
}

fn acquire_lock() -> LockOp {
    LockOp::Acquire { floor: Term::default(), queue: None, once: true }
}

/// What is told of a command that no replica confirms.
fn assert_unconfirmed<T: std::fmt::Debug>(answer: Result<T, StoreError>, attempted: &str) {
    let error = answer.unwrap_err();
    let text = error.to_string();
    assert!(!error.is_permanent() && text.starts_with(attempted), "{text}");
    assert!(text.contains("0 of the 1 replicas") && text.contains("lower Config::replicas"), "{text}");
}

#[tokio::test]
async fn what_gives_a_right_is_waited_for_and_nothing_else() {
    let Some(pair) = Pair::start().await else { return };
    let (me, other) = (Party::join(pair.store(1), "me").await, Party::join(pair.store(1), "other").await);
    let mut seen = pair.waits();
    let mut waited = || {
        let now = pair.waits();
        now - std::mem::replace(&mut seen, now)
    };
    let term = me.win().await;
    assert_eq!(waited(), 1);
    assert_eq!(me.ask(Op::Renew { term }, AMPLE).await, Ok(Answer::Renewed));
    assert_eq!(waited(), 1);
    assert!(matches!(other.ask(acquire(), AMPLE).await, Ok(Answer::Held(_))));
    assert!(matches!(other.ask(Op::Inspect, AMPLE).await, Ok(Answer::Inspected(Some(_)))));
    assert!(matches!(me.ask(Op::Renew { term: Term::new(1) }, AMPLE).await, Ok(Answer::Lost { .. })));
    assert_eq!(me.ask(Op::Release { term: Some(term) }, AMPLE).await, Ok(Answer::Released));
    assert_eq!(waited(), 0);
    // All of a batch at once.
    let answers = me.batch([("a", acquire()), ("b", acquire()), ("c", acquire())], AMPLE).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Answer::Won(_)))), "{answers:?}");
    assert_eq!(waited(), 1);

    let [owner, late] = [(); 2].map(|()| LockOwner::new(me.candidate.clone()));
    let token = me.win_lock(&owner).await;
    assert_eq!(waited(), 1);
    assert_eq!(me.lock(&owner, LockOp::Renew { token }, AMPLE).await, Ok(LockAnswer::Renewed));
    assert_eq!(waited(), 1);
    assert!(matches!(me.lock(&late, acquire_lock(), AMPLE).await, Ok(LockAnswer::Busy(_))));
    assert_eq!(me.lock(&late, LockOp::Renew { token }, AMPLE).await, Ok(LockAnswer::Lost));
    assert_eq!(waited(), 0);
    assert_eq!(me.lock(&owner, LockOp::Complete { token, keep: None }, AMPLE).await, Ok(LockAnswer::Completed));
    assert_eq!(waited(), 1);
    assert_eq!(me.lock(&late, acquire_lock(), AMPLE).await, Ok(LockAnswer::Done));
    assert_eq!(me.lock(&late, LockOp::Forget, AMPLE).await, Ok(LockAnswer::Forgotten(true)));
    let token = me.win_lock(&late).await;
    assert_eq!(waited(), 1);
    assert_eq!(me.lock(&late, LockOp::Release { token: Some(token) }, AMPLE).await, Ok(LockAnswer::Released));
    assert_eq!(waited(), 0);
}

#[tokio::test]
async fn without_replicas_nothing_is_waited_for_and_there_is_no_connection_for_it() {
    let Some(pair) = Pair::start().await else { return };
    let me = Party::join(pair.store(0), "me").await;
    let term = me.win().await;
    assert_eq!(me.ask(Op::Renew { term }, AMPLE).await, Ok(Answer::Renewed));
    me.ask(Op::Inspect, AMPLE).await.unwrap();
    let owner = LockOwner::new(me.candidate.clone());
    let token = me.win_lock(&owner).await;
    assert_eq!(me.lock(&owner, LockOp::Release { token: Some(token) }, AMPLE).await, Ok(LockAnswer::Released));
    assert_eq!(pair.waits(), 0);
    let without = pair.connections();
    me.store.disconnect(me.candidate.incarnation).await.unwrap();
    let gone = async {
        while pair.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(AMPLE, gone).await.unwrap();
    let me = Party::join(pair.store(1), "me").await;
    me.ask(Op::Inspect, AMPLE).await.unwrap();
    me.win_lock(&LockOwner::new(me.candidate.clone())).await;
    assert_eq!(pair.connections(), without + 1);
}

#[tokio::test]
async fn what_no_replica_confirms_is_an_error_that_says_so_and_holds_up_no_release_and_no_question() {
    let Some(pair) = Pair::start().await else { return };
    let me = Party::join(pair.store(1), "me").await;
    let term = me.win().await;
    let owner = LockOwner::new(me.candidate.clone());
    let token = me.win_lock(&owner).await;
    pair.replica.stop();
    let renews = async {
        let renewed = me.ask(Op::Renew { term }, AMPLE).await;
        assert_unconfirmed(renewed, "renew of g on redis://");
    };
    let questions = async {
        // The server waits by then: whatever comes on that connection waits with it.
        while pair.waits_under_way() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(matches!(me.ask(Op::Inspect, AMPLE).await, Ok(Answer::Inspected(Some(_)))));
        assert_eq!(me.ask(Op::Release { term: Some(term) }, AMPLE).await, Ok(Answer::Released));
        assert_eq!(pair.waits_under_way(), 1, "they were answered while it waits");
    };
    tokio::join!(renews, questions);
    // In one batch each is answered for itself.
    let answers = me.batch([("g", acquire()), ("h", Op::Inspect)], BRIEF).await.unwrap();
    let [won, inspected] = <[_; 2]>::try_from(answers).unwrap();
    assert_unconfirmed(won, "acquire of g on redis://");
    assert_eq!(inspected, Ok(Answer::Inspected(None)));
    assert_unconfirmed(me.lock(&owner, LockOp::Renew { token }, BRIEF).await, "renew of `k` on redis://");
    let complete = LockOp::Complete { token, keep: None };
    assert_unconfirmed(me.lock(&owner, complete.clone(), BRIEF).await, "complete of `k` on redis://");

    pair.replica.resume();
    // The lease was written though nobody may believe in it: it is taken back under a new term.
    assert!(me.win().await > term);
    assert_eq!(me.lock(&owner, complete, AMPLE).await, Ok(LockAnswer::Completed), "it says so again, and it is so");
}

#[tokio::test]
async fn a_script_that_the_server_has_forgotten_is_executed_before_it_is_waited_for() {
    let Some(pair) = Pair::start().await else { return };
    let me = Party::join(pair.store(1), "me").await;
    let term = me.win().await;
    let waits = pair.waits();
    pair.primary.ask(&["SCRIPT", "FLUSH"]);
    assert_eq!(me.ask(Op::Renew { term }, AMPLE).await, Ok(Answer::Renewed));
    assert_eq!(pair.waits(), waits + 1);
    pair.replica.stop();
    pair.primary.ask(&["SCRIPT", "FLUSH"]);
    assert_unconfirmed(me.ask(Op::Renew { term }, BRIEF).await, "renew of g");
    pair.replica.resume();
}

#[tokio::test]
async fn a_primary_that_is_made_a_replica_while_it_waits_confirms_nothing() {
    let Some(pair) = Pair::start().await else { return };
    let me = Party::join(pair.store(1), "me").await;
    let term = me.win().await;
    pair.replica.stop();
    let renews = me.ask(Op::Renew { term }, AMPLE);
    let demotes = async {
        while pair.waits_under_way() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Nobody listens at that address.
        pair.primary.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    };
    let (renewed, ()) = tokio::join!(renews, demotes);
    let error = renewed.unwrap_err();
    assert!(!error.is_permanent(), "{error}");
    pair.replica.resume();
}

#[tokio::test]
async fn the_doctor_says_when_replicas_are_missing_when_they_are_not_all_and_when_they_may_not_be_waited_for() {
    let Some(pair) = Pair::start().await else { return };
    let one = |found: Vec<Finding>| match <[_; 1]>::try_from(found) {
        Ok([finding]) => (finding.severity, finding.to_string()),
        Err(found) => panic!("{found:#?}"),
    };
    let examined = async |store: RedisStore| Party::join(store, "me").await.examined().await;
    let (severity, text) = one(examined(pair.store(0)).await);
    assert!(severity == Severity::Warning && text.contains("Config::replicas"), "{text}");
    assert_eq!(examined(pair.store(1)).await, []);
    let (severity, text) = one(examined(pair.store(2)).await);
    assert!(severity == Severity::Error && text.contains("1 replicas in step, and 2 have to"), "{text}");

    let port = pair.primary.port.to_string();
    let Some(_second) = Server::start(&["--replicaof", "127.0.0.1", &port]) else { return };
    let (severity, text) = loop {
        // Until it is in step.
        if let [finding] = &examined(pair.store(1)).await[..] {
            break (finding.severity, finding.to_string());
        }
    };
    assert!(severity == Severity::Warning && text.contains("Config::replicas(2)"), "{text}");

    let rules = Keys::new("leader:").rights().rules();
    let mut user = vec!["ACL", "SETUSER", "app", "reset", "on", ">secret"];
    user.extend(rules.split(' '));
    pair.primary.ask(&user);
    let url = pair.primary.url().replace("redis://", "redis://app:secret@");
    let store = || RedisStore::new(&url).unwrap().fresh_store(FreshStore::Trust).replicas(2);
    let (severity, text) = one(examined(store()).await);
    assert!(severity == Severity::Error && text.ends_with("ACL SETUSER <user> +wait"), "{text}");
    let me = Party::join(store(), "me").await;
    let error = me.ask(acquire(), AMPLE).await.unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("+subscribe +wait"), "{error}");
    pair.primary.ask(&["ACL", "SETUSER", "app", "+wait"]);
    assert_eq!(me.examined().await, []);
    assert!(matches!(me.ask(acquire(), AMPLE).await, Ok(Answer::Won(_))));
}
