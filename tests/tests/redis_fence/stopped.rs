//! Real processes, one of which stands still between its check and its write, for longer than its lease or lock lasts.

use std::time::Duration;

use leader_tests::process::{Command, Fleet};
use leader_tests::redis::RedisServer;
use serde_json::Value;

use crate::{KEY, marked, value};

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");
const TTL: Duration = Duration::from_millis(1500);

/// What both processes write under.
#[derive(Clone, Copy)]
enum Under {
    Lease,
    Lock,
}

/// When something happens to the server's memory, if it does.
#[derive(Clone, Copy, PartialEq)]
enum When {
    BeforeTheSecondWrite,
    AfterIt,
}

type Loss = fn(&mut RedisServer);

struct Scene {
    // First: nodes go before what they need.
    fleet: Fleet,
    redis: RedisServer,
    under: Under,
}

impl Scene {
    fn new(under: Under) -> Option<Self> {
        let redis = RedisServer::start(&[])?;
        let mut fleet = Fleet::on_store(PROGRAM, &redis.url());
        for label in ["a", "b"] {
            let mut plan = fleet.plan(label, TTL);
            plan.options.trust_fresh_store = true;
            fleet.start(&plan);
        }
        Some(Self { fleet, redis, under })
    }

    /// The process has checked that it may write; returns its token. `None`: it may not, for now.
    fn check(&mut self, label: &str) -> Option<u64> {
        let command = match self.under {
            Under::Lease => Command::KeepLease,
            Under::Lock => Command::KeepLock { key: "account:7".to_owned(), ttl: TTL },
        };
        self.fleet.ask(label, &command).ok()?.as_u64()
    }

    /// After a restart the first calls may find the connection of before.
    fn write(&mut self, label: &str) -> Result<Value, String> {
        let command = Command::Write { key: KEY.to_owned(), value: label.to_owned() };
        loop {
            let outcome = self.fleet.ask(label, &command);
            if !outcome.as_ref().is_err_and(|error| error.contains("is not tried again")) {
                return outcome;
            }
        }
    }

    /// Checks and writes until that goes well; returns the token.
    fn goes_on(&mut self, label: &str) -> u64 {
        let begin = std::time::Instant::now();
        loop {
            let token = self.check(label);
            if let Some(token) = token.filter(|_| self.write(label).is_ok()) {
                return token;
            }
            assert!(begin.elapsed() < leader_tests::process::PATIENCE, "{label} never wrote");
        }
    }

    /// The newest token has written since, or the server does not know the writer any more: it was refused.
    #[track_caller]
    fn assert_refused(outcome: &Result<Value, String>, newest: Option<u64>) {
        let error = outcome.as_ref().unwrap_err();
        let reason = newest.map_or_else(|| "present holder".to_owned(), |newest| format!("token {newest} has written"));
        assert!(error.contains("was refused") && error.contains(&reason), "{error}");
    }
}

/// `a` is stopped between its check and its write, `b` writes, `a` goes on; and the server loses its memory meanwhile.
fn a_stopped_writer(under: Under, lose: Option<(When, Loss)>) {
    let Some(mut scene) = Scene::new(under) else { return };
    let first = scene.goes_on("a");
    scene.redis.snapshot();
    scene.fleet.stop("a");
    let token = scene.goes_on("b");
    assert!(token > first);
    let mut newest = Some(token);
    if let Some((when, lose)) = lose {
        lose(&mut scene.redis);
        newest = (when == When::AfterIt).then(|| scene.goes_on("b"));
    }
    if newest.is_none() {
        // Rolled back, it may be in there for a moment yet.
        let (key, first) = match under {
            Under::Lease => ("leader:default", "a-".to_owned()),
            Under::Lock => ("_lock:account:7", format!("{first}:")),
        };
        scene.fleet.until("the time of a is over", |_| {
            let holder: Option<String> = scene.redis.command(&["GET", key]);
            (!holder.is_some_and(|holder| holder.starts_with(&first))).then_some(())
        });
    }
    let before = value(&scene.redis);
    scene.fleet.cont("a");
    Scene::assert_refused(&scene.write("a"), newest);
    assert_eq!(value(&scene.redis), before);
    assert!(newest.is_none() || before.as_deref() == Some("b"), "{before:?}");
    // It takes part again, and may win.
    scene.fleet.kill("a");
    let last = scene.goes_on("b");
    assert_eq!((value(&scene.redis).as_deref(), marked(&scene.redis)), (Some("b"), Some(last)));
}

fn forget(redis: &mut RedisServer) {
    redis.flush_all();
}

macro_rules! stopped {
    ($($name:ident: $under:ident, $lose:expr;)*) => {$(
        #[test]
        fn $name() {
            a_stopped_writer(Under::$under, $lose);
        }
    )*};
}

stopped! {
    a_stopped_leader_is_refused: Lease, None;
    a_stopped_owner_of_a_lock_is_refused: Lock, None;
    a_stopped_leader_is_refused_after_flushall: Lease, Some((When::BeforeTheSecondWrite, forget));
    a_stopped_leader_is_refused_after_flushall_and_a_write: Lease, Some((When::AfterIt, forget));
    a_stopped_owner_is_refused_after_flushall: Lock, Some((When::BeforeTheSecondWrite, forget));
    a_stopped_owner_is_refused_after_flushall_and_a_write: Lock, Some((When::AfterIt, forget));
    a_stopped_leader_is_refused_after_a_restart_without_data:
        Lease, Some((When::BeforeTheSecondWrite, RedisServer::restart_empty));
    a_stopped_leader_is_refused_after_a_restart_without_data_and_a_write:
        Lease, Some((When::AfterIt, RedisServer::restart_empty));
    a_stopped_owner_is_refused_after_a_restart_without_data:
        Lock, Some((When::BeforeTheSecondWrite, RedisServer::restart_empty));
    a_stopped_leader_is_refused_after_a_roll_back: Lease, Some((When::BeforeTheSecondWrite, RedisServer::roll_back));
    a_stopped_leader_is_refused_after_a_roll_back_and_a_write: Lease, Some((When::AfterIt, RedisServer::roll_back));
    a_stopped_owner_is_refused_after_a_roll_back: Lock, Some((When::BeforeTheSecondWrite, RedisServer::roll_back));
    a_stopped_owner_is_refused_after_a_roll_back_and_a_write: Lock, Some((When::AfterIt, RedisServer::roll_back));
}
