//! Locks on a real server: the contract, and what only a server can show.

mod beside_memory;
mod electors;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use super::super::connection::Reply;
use super::super::{RedisStore, locks};
use super::server::Server;
use super::{AMPLE, chosen, store_at};
use crate::config::FreshStore;
use crate::error::StoreError;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::{
    Announcement, Busy, LeaseStore, LockAnswer, LockAnswers, LockBatch, LockCommand, LockKey, LockOp, LockOwner,
};
use crate::testing::{Listener, conformance};

const TTL: Duration = Duration::from_secs(60);
const PLACE: Duration = Duration::from_secs(4);

fn store(server: &Server) -> RedisStore {
    store_at(&server.url())
}

/// One elector, which asks for locks.
struct Party {
    store: RedisStore,
    candidate: Candidate,
    listener: Listener,
}

impl Party {
    async fn join(store: RedisStore, id: &str) -> Self {
        let candidate = Candidate { id: InstanceId::new(id).unwrap(), incarnation: Incarnation::random() };
        let (session, listener) = Listener::new(candidate.clone(), []);
        store.connect(session).await.unwrap();
        Self { store, candidate, listener }
    }

    fn owner(&self) -> LockOwner {
        LockOwner::new(self.candidate.clone())
    }

    async fn ask_all(&self, asked: Vec<(&LockOwner, &str, LockOp)>) -> Result<LockAnswers, StoreError> {
        let command = |(owner, key, op): (&LockOwner, &str, LockOp)| LockCommand {
            key: LockKey::new(key).unwrap(),
            owner: owner.clone(),
            ttl: TTL,
            op,
        };
        let commands = asked.into_iter().map(command).collect();
        self.store.execute_locks(LockBatch { commands, timeout: AMPLE }).await
    }

    async fn try_ask(&self, owner: &LockOwner, key: &str, op: LockOp) -> Result<LockAnswer, StoreError> {
        self.ask_all(vec![(owner, key, op)]).await?.remove(0)
    }

    async fn ask(&self, owner: &LockOwner, key: &str, op: LockOp) -> LockAnswer {
        self.try_ask(owner, key, op).await.unwrap()
    }

    async fn win(&self, owner: &LockOwner, key: &str) -> Term {
        match self.ask(owner, key, acquire(None)).await {
            LockAnswer::Won { token } => token,
            other => panic!("{other:?}"),
        }
    }

    async fn busy(&self, owner: &LockOwner, key: &str, queue: Option<Duration>) -> Busy {
        match self.ask(owner, key, acquire(queue)).await {
            LockAnswer::Busy(busy) => busy,
            other => panic!("{other:?}"),
        }
    }

    async fn told(&mut self) -> u128 {
        match tokio::time::timeout(AMPLE, self.listener.heard()).await.unwrap() {
            Some(Announcement::LockFree { nonce }) => nonce,
            other => panic!("{other:?}"),
        }
    }
}

fn acquire(queue: Option<Duration>) -> LockOp {
    LockOp::Acquire { floor: Term::default(), queue, once: false }
}

fn keys(server: &Server) -> usize {
    match server.ask(&["DBSIZE"]) {
        Reply::Integer(keys) => usize::try_from(keys).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn pttl(server: &Server, key: &str) -> i64 {
    match server.ask(&["PTTL", key]) {
        Reply::Integer(left) => left,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_contract_is_kept_and_nothing_is_left() {
    let Some(server) = Server::start(&[]) else { return };
    conformance(|| Arc::new(store(&server))).await;
    // Only what is kept on purpose: the records of leases, and leases of two minutes.
    let Reply::List(names) = server.ask(&["KEYS", "*lock*"]) else { panic!() };
    assert_eq!(names, [], "{names:?}");
}

#[tokio::test]
async fn a_lock_is_a_key_that_other_implementations_see_and_theirs_is_seen() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "us").await;
    let owner = party.owner();
    let token = party.win(&owner, "billing:charge-run").await;
    let Reply::Text(value) = server.ask(&["GET", "_lock:billing:charge-run"]) else { panic!() };
    assert_eq!(value, format!("{token}:{:032x}:{}:us", owner.nonce, TTL.as_millis()));
    assert_eq!(server.ask(&["SET", "_lock:billing:charge-run", "theirs", "NX", "PX", "1000"]), Reply::Nil);
    party.ask(&owner, "billing:charge-run", LockOp::Release { token: Some(token) }).await;
    assert_eq!(keys(&server), 0);

    server.ask(&["SET", "_lock:billing:charge-run", "theirs", "NX", "PX", "50000"]);
    let busy = party.busy(&owner, "billing:charge-run", Some(PLACE)).await;
    assert_eq!((busy.holder, busy.token, busy.ahead), (None, None, 0));
    assert!(busy.remaining > Duration::from_secs(40) && busy.remaining <= Duration::from_secs(50));
    // Nothing of ours touches theirs.
    for op in [LockOp::Renew { token }, LockOp::Release { token: None }, LockOp::Complete { token, keep: None }] {
        assert!(matches!(party.ask(&owner, "billing:charge-run", op).await, LockAnswer::Lost | LockAnswer::NotHeld));
    }
    assert_eq!(server.ask(&["GET", "_lock:billing:charge-run"]), super::text("theirs"));
    let own_prefix = Party::join(store(&server).lock_prefix("app-lock:").unwrap(), "us").await;
    own_prefix.win(&own_prefix.owner(), "billing:charge-run").await;
}

#[tokio::test]
async fn nothing_is_kept_of_locks_and_queues_that_nobody_ends() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "us").await;
    party.win(&party.owner(), "k").await;
    party.busy(&party.owner(), "k", Some(PLACE)).await;
    party.busy(&party.owner(), "k", Some(PLACE / 4)).await;
    assert!(pttl(&server, "_lock:k") <= 60_000);
    for key in ["{_lock:k}:queue", "{_lock:k}:waiting"] {
        let left = pttl(&server, key);
        assert!(left > 1_000 && left <= 4_000, "{key}: {left}");
    }
}

#[tokio::test]
async fn what_is_not_to_be_told_is_released_all_the_same() {
    let rules = ["--user", "default", "on", "nopass", "~*", "+@all", "-publish", "resetchannels", "&leader:*"];
    let Some(server) = Server::start(&rules) else { return };
    let party = Party::join(store(&server), "a").await;
    let (holder, waits) = (party.owner(), party.owner());
    party.win(&holder, "k").await;
    party.busy(&waits, "k", Some(PLACE)).await;
    assert_eq!(party.ask(&holder, "k", LockOp::Release { token: None }).await, LockAnswer::Released);
    party.win(&waits, "k").await;
}

#[tokio::test]
async fn a_full_memory_lets_locks_be_renewed_completed_and_released_and_gives_no_new_one() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "a").await;
    let (held, waits, once) = (party.owner(), party.owner(), party.owner());
    let token = party.win(&held, "held").await;
    let done = party.win(&once, "once").await;
    party.busy(&waits, "held", Some(PLACE)).await;
    server.ask(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let error = party.try_ask(&party.owner(), "new", acquire(None)).await.unwrap_err();
    assert!(error.is_permanent() && error.to_string().contains("maxmemory"), "{error}");
    let error = party.try_ask(&party.owner(), "held", acquire(Some(PLACE))).await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "a new place is one more key: {error}");
    assert_eq!(party.ask(&held, "held", LockOp::Renew { token }).await, LockAnswer::Renewed);
    assert_eq!(party.win(&held, "held").await, token, "an answer that was lost");
    party.busy(&waits, "held", Some(PLACE)).await;
    assert_eq!(party.ask(&once, "once", LockOp::Complete { token: done, keep: None }).await, LockAnswer::Completed);
    assert_eq!(party.ask(&held, "held", LockOp::Release { token: Some(token) }).await, LockAnswer::Released);
}

#[tokio::test]
async fn a_key_of_a_wrong_type_fails_alone_and_is_named() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "a").await;
    server.ask(&["LPUSH", "_lock:bad", "x"]);
    let (bad, good) = (party.owner(), party.owner());
    let answers = party.ask_all(vec![(&bad, "bad", acquire(None)), (&good, "good", acquire(None))]).await.unwrap();
    let error = answers[0].clone().unwrap_err();
    assert!(error.is_permanent(), "{error}");
    for part in ["`bad`", "WRONGTYPE", "LEADER_LOCK_PREFIX"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(matches!(answers[1], Ok(LockAnswer::Won { .. })));
    // A queue that cannot be read keeps nobody from giving back.
    server.ask(&["LPUSH", "{_lock:good}:queue", "x"]);
    assert_eq!(party.ask(&good, "good", LockOp::Release { token: None }).await, LockAnswer::Released);
    assert_eq!(server.ask(&["EXISTS", "_lock:good"]), Reply::Integer(0));
}

#[tokio::test]
async fn a_lock_without_an_end_gets_one_if_it_is_ours() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "a").await;
    let held = party.owner();
    let token = party.win(&held, "k").await;
    for by_renewal in [true, false] {
        server.ask(&["PERSIST", "_lock:k"]);
        if by_renewal {
            party.ask(&held, "k", LockOp::Renew { token }).await;
        } else {
            assert!(party.busy(&party.owner(), "k", None).await.remaining <= TTL);
        }
        assert!((1..=60_000).contains(&pttl(&server, "_lock:k")));
    }
    // As after the server's clock was set back.
    server.ask(&["PEXPIRE", "_lock:k", "9000000"]);
    assert!(party.busy(&party.owner(), "k", None).await.remaining <= TTL);
    assert!(pttl(&server, "_lock:k") <= 60_000);
    // Another implementation's is not ours to end; it is only not believed to end now.
    server.ask(&["SET", "_lock:other", "theirs"]);
    assert_eq!(party.busy(&party.owner(), "other", None).await.remaining, TTL);
    assert_eq!(pttl(&server, "_lock:other"), -1);
}

#[tokio::test]
async fn a_lock_that_the_server_forgot_is_lost_and_tokens_rise_all_the_same() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "a").await;
    let (held, next) = (party.owner(), party.owner());
    let token = party.win(&held, "k").await;
    server.ask(&["FLUSHALL"]);
    let later = party.win(&next, "k").await;
    assert!(later > token);
    assert_eq!(party.ask(&held, "k", LockOp::Renew { token }).await, LockAnswer::Lost);
    assert_eq!(party.ask(&held, "k", LockOp::Release { token: None }).await, LockAnswer::NotHeld);
    // A floor from before the server's clock was set back.
    let floor = Term::new(later.get() + 1_000_000_000);
    let acquire = LockOp::Acquire { floor, queue: None, once: false };
    let answer = party.ask(&party.owner(), "another", acquire).await;
    assert_eq!(answer, LockAnswer::Won { token: Term::new(floor.get() + 1) });
    let beyond = LockOp::Acquire { floor: Term::new(1 << 53), queue: None, once: false };
    let error = party.try_ask(&party.owner(), "third", beyond).await.unwrap_err();
    assert!(error.is_permanent(), "{error}");
}

#[tokio::test]
async fn a_lock_that_is_kept_with_another_ttl_is_cut_by_that_one() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "a").await;
    let held = party.owner();
    let token = party.win(&held, "k").await;
    let command =
        LockCommand { key: LockKey::new("k").unwrap(), owner: held, ttl: TTL / 2, op: LockOp::Renew { token } };
    party.store.execute_locks(LockBatch { commands: vec![command], timeout: AMPLE }).await.unwrap();
    server.ask(&["PERSIST", "_lock:k"]);
    assert!(party.busy(&party.owner(), "k", None).await.remaining <= TTL / 2);
}

#[tokio::test]
async fn the_least_rights_are_enough_and_who_lacks_them_is_told() {
    let keys = locks::LockKeys::new("_lock:");
    let leases = super::super::keys::Keys::new("leader:").rights().rules();
    let rights = format!("{leases} {} {}", keys.patterns(), locks::COMMANDS);
    let user = format!("--user worker on >s3cret! {rights}");
    let Some(server) = Server::start(&user.split(' ').collect::<Vec<_>>()) else { return };
    let url = server.url().replace("redis://", "redis://worker:s3cret!@");
    let party = Party::join(store_at(&url), "a").await;
    // All that a lock can come to; an error, if anything is not permitted.
    let everything = async |key: &str| -> Result<(), StoreError> {
        let (held, waits, late) = (party.owner(), party.owner(), party.owner());
        let LockAnswer::Won { token } = party.try_ask(&held, key, acquire(None)).await? else { panic!("{key}") };
        for owner in [&waits, &late] {
            party.try_ask(owner, key, acquire(Some(PLACE))).await?;
        }
        party.try_ask(&held, key, LockOp::Renew { token }).await?;
        party.try_ask(&held, key, LockOp::Complete { token, keep: Some(TTL) }).await?;
        party.try_ask(&late, key, acquire(Some(PLACE))).await?;
        server.ask(&["DEL", &locks::LockKeys::new("_lock:").names(&LockKey::new(key).unwrap()).waiting]);
        let once = LockOp::Acquire { floor: Term::default(), queue: None, once: true };
        party.try_ask(&held, key, once).await?;
        party.try_ask(&held, key, LockOp::Forget).await?;
        for owner in [&waits, &late] {
            party.try_ask(owner, key, LockOp::Release { token: None }).await?;
        }
        Ok(())
    };
    for key in ["k", "a{b}c", "}{"] {
        everything(key).await.unwrap();
    }
    assert_eq!(server.ask(&["ACL", "LOG"]), Reply::List(vec![]));
    for right in locks::COMMANDS.split(' ') {
        server.ask(&["ACL", "SETUSER", "worker", &right.replace('+', "-")]);
        let error = everything("k").await.expect_err(right);
        assert!(error.is_permanent() && error.to_string().contains(right), "{error}");
        server.allow("worker", &error.to_string());
        server.ask(&["FLUSHALL"]);
        everything("k").await.unwrap();
    }
    server.ask(&["ACL", "SETUSER", "worker", "resetkeys", "~leader:*", "~_lock:mine", "~{_lock:mine}*"]);
    let (mine, other) = (party.owner(), party.owner());
    let answers = party.ask_all(vec![(&mine, "mine", acquire(None)), (&other, "other", acquire(None))]).await.unwrap();
    assert!(matches!(answers[..], [Ok(LockAnswer::Won { .. }), Err(_)]), "{answers:?}");
}

#[tokio::test]
async fn a_hundred_to_a_call_are_answered_in_order() {
    let Some(server) = Server::start(&[]) else { return };
    let party = Party::join(store(&server), "a").await;
    let owners: Vec<LockOwner> = (0..100).map(|_| party.owner()).collect();
    let names: Vec<String> = (0..100).map(|n| format!("account:{n}")).collect();
    let each = |op: LockOp| owners.iter().zip(&names).map(|(owner, name)| (owner, name.as_str(), op.clone())).collect();
    let taken = party.ask_all(each(acquire(None))).await.unwrap();
    assert!(taken.iter().all(|answer| matches!(answer, Ok(LockAnswer::Won { .. }))));
    assert_eq!(keys(&server), 100);
    let released = party.ask_all(each(LockOp::Release { token: None })).await.unwrap();
    assert!(released.iter().all(|answer| *answer == Ok(LockAnswer::Released)));
    assert_eq!(keys(&server), 0);
}
