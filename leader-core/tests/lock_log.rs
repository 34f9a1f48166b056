//! What the log says of locks. It is the whole process's, so it has a test program of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt::{Debug, Write};
use std::sync::{LazyLock, Once};
use std::thread::ThreadId;
use std::time::Duration;

use leader_core::store::{LockCommand, LockOp, MemoryStore};
use leader_core::testing::{Fault, FaultyStore, ManualClock};
use leader_core::{Config, Elector, LockError, StoreError};
use tokio::sync::watch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const TTL: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(60);

/// A line under the target `leader`.
#[derive(Debug, Clone, Default)]
struct Line {
    instance: String,
    text: String,
    thread: Option<(ThreadId, String)>,
}

static LINES: LazyLock<watch::Sender<Vec<Line>>> = LazyLock::new(|| watch::Sender::new(Vec::new()));

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "leader" && metadata.is_event()
    }

    fn event(&self, event: &Event<'_>) {
        let thread = std::thread::current();
        let thread = Some((thread.id(), thread.name().unwrap_or_default().to_owned()));
        let mut line = Line { text: format!("{} ", event.metadata().level()), thread, ..Line::default() };
        event.record(&mut line);
        LINES.send_modify(|lines| lines.push(line));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = match field.name() {
            "instance" => &mut self.instance,
            "message" => &mut self.text,
            _ => return,
        };
        write!(text, "{value:?}").unwrap();
    }
}

/// An elector whose lines are told apart by its id, on a store that fails on command; both by one clock.
async fn start(instance: &str, store: &FaultyStore, clock: &ManualClock) -> Elector {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Collector).unwrap());
    let config = Config::with_store(store.clone()).ttl(TTL).operation_timeout(Duration::from_secs(1));
    Elector::start(config.instance_id(instance).manual_clock(clock.clone())).await.unwrap()
}

fn stage() -> (FaultyStore, ManualClock) {
    let clock = ManualClock::new();
    (FaultyStore::new(MemoryStore::with_clock(clock.clone())), clock)
}

fn lines(instance: &str, part: &str) -> Vec<String> {
    let lines = LINES.borrow();
    let ours = lines.iter().filter(|line| line.instance == instance && line.text.contains(part));
    ours.map(|line| line.text.clone()).collect()
}

async fn until(instance: &str, part: &str) {
    let arrived = |lines: &Vec<Line>| lines.iter().any(|line| line.instance == instance && line.text.contains(part));
    let arrives = async { drop(LINES.subscribe().wait_for(arrived).await.unwrap()) };
    tokio::time::timeout(PATIENCE, arrives).await.expect("it was not logged");
}

/// Time passes, and whoever has something to do gets to it, until it has happened.
async fn pass_until(clock: &ManualClock, happened: impl Fn() -> bool) {
    let passes = async {
        while !happened() {
            clock.advance(Duration::from_millis(250));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, passes).await.expect("it did not happen");
}

fn plug_pulled(attempted: &str) -> StoreError {
    StoreError::Unavailable { attempted: attempted.to_owned(), cause: "somebody pulled the plug".to_owned() }
}

#[tokio::test]
async fn who_waits_for_long_says_so_once_and_for_whom() {
    let (store, clock) = stage();
    let (a, b) = (start("holds", &store, &clock).await, start("waits", &store, &clock).await);
    let guard = a.lock("k").acquire().await.unwrap();
    let begun = store.lock_calls();
    let waits = tokio::spawn({
        let b = b.clone();
        async move { b.lock("k").wait(TTL).acquire().await }
    });
    store.locks_called(begun + 1).await;
    assert!(lines("waits", "waiting for").is_empty(), "not before a while has passed");
    pass_until(&clock, || store.lock_calls() >= begun + 5).await;
    drop(guard);
    let guard = tokio::time::timeout(PATIENCE, waits).await.unwrap().unwrap().unwrap();
    guard.release().await.unwrap();
    until("waits", "gave back the lock k").await;
    assert_eq!(lines("waits", "waiting for"), ["INFO waiting for the lock k, held by holds, 0 ahead"]);
    assert_eq!(lines("waits", "DEBUG took the lock k after").len(), 1);
    until("holds", "DEBUG gave back the lock k").await;
    assert!(lines("holds", "waiting for").is_empty());
    for line in LINES.borrow().iter().filter(|line| line.text.contains("the lock k")) {
        let (thread, name) = line.thread.as_ref().unwrap();
        assert!(*thread != std::thread::current().id() && name == "leader-reporter", "{line:?}");
    }
}

#[tokio::test]
async fn who_waits_because_the_store_is_away_says_that() {
    let (store, clock) = stage();
    let elector = start("away", &store, &clock).await;
    store.inject_for_locks(Fault::Fail(plug_pulled("lock")), |_| true);
    let waits = tokio::spawn({
        let elector = elector.clone();
        async move { elector.once("r1").wait(TTL).run::<_, LockError, _>(|| async { Ok(()) }).await }
    });
    pass_until(&clock, || !lines("away", "waiting for").is_empty()).await;
    let said = "INFO waiting for the work r1: lock failed: somebody pulled the plug; trying again";
    assert_eq!(lines("away", "waiting for"), [said]);
    store.heal();
    pass_until(&clock, || waits.is_finished()).await;
    assert_eq!(waits.await.unwrap(), Ok(leader_core::Once::Ran(())));
    until("away", "DEBUG the work r1 was noted as done").await;
}

#[tokio::test]
async fn an_outage_is_told_of_when_it_begins_and_not_each_second() {
    fn renews(command: &LockCommand) -> bool {
        matches!(command.op, LockOp::Renew { .. })
    }
    let (store, clock) = stage();
    let elector = start("outage", &store, &clock).await;
    let guard = elector.lock("k").acquire().await.unwrap();
    // The same trouble, whatever is attempted; and then another one.
    let two = plug_pulled("two lock commands");
    for fault in [Fault::Fail(plug_pulled("renew")), Fault::Fail(two), Fault::LoseReply] {
        store.heal();
        store.inject_for_locks(fault, renews);
        let calls = store.lock_calls();
        pass_until(&clock, || store.lock_calls() >= calls + 3).await;
    }
    assert!(guard.is_held());
    store.heal();
    pass_until(&clock, || !lines("outage", "answers again for locks").is_empty()).await;
    let told = lines("outage", "WARN locks: ");
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], "WARN locks: renew failed: somebody pulled the plug; trying again");
    assert!(told[1].contains("got no answer within 1s; trying again"), "{told:?}");
}
