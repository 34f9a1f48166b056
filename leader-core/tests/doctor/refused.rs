//! What the store refuses for good reaches the status and the log once, and changes nobody's health.

use std::time::Duration;

use leader_core::store::{MemoryStore, Op};
use leader_core::testing::{Fault, FaultyStore, ManualClock};
use leader_core::{Config, Elector, StoreError};

use crate::TTL;
use crate::log::Log;

fn refused(cause: &str) -> StoreError {
    StoreError::Refused { attempted: "acquire".into(), cause: cause.into(), advice: "ask whoever runs it".into() }
}

/// Lets so many attempts fail, one after another.
async fn attempts(elector: &Elector, store: &FaultyStore, clock: &ManualClock, times: u64) {
    for _ in 0..times {
        let calls = store.calls();
        // The longest back-off is a ttl.
        clock.advance(TTL);
        store.called(calls + 1).await;
        // Answered after that attempt has been; the store refuses this, too.
        let _ = elector.leader_id("default").await;
    }
}

async fn until_leader(elector: &Elector, clock: &ManualClock) {
    clock.advance(TTL);
    while !elector.is_leader("default") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_lasting_error_is_logged_once_and_again_only_when_it_changes_or_has_been_gone() {
    let (log, clock) = (Log::of("refused"), ManualClock::new());
    let store = FaultyStore::new(MemoryStore::new());
    store.inject(Fault::FailCommands(refused("no permission")));
    let config = Config::with_store(store.clone()).ttl(TTL).instance_id("refused").manual_clock(clock.clone());
    let elector = Elector::start(config).await.unwrap();
    attempts(&elector, &store, &clock, 5).await;
    let problems = elector.status().problems;
    assert!(problems[0].text.contains("no permission; ask whoever runs it"), "{problems:?}");
    assert!(elector.live().is_ok() && elector.ready().is_ok(), "a restart would not help");
    // A passing error in between is no recovery.
    store.heal();
    store.inject_times(1, Fault::Fail(crate::away()));
    store.inject(Fault::FailCommands(refused("no permission")));
    attempts(&elector, &store, &clock, 3).await;
    store.heal();
    store.inject(Fault::Fail(refused("wrong type")));
    attempts(&elector, &store, &clock, 3).await;
    assert!(elector.status().problems[0].text.contains("wrong type"));
    store.heal();
    until_leader(&elector, &clock).await;
    assert!(elector.status().problems.is_empty());
    store.inject_when(Fault::FailCommands(refused("wrong type")), |c| !matches!(c.op, Op::Release { .. }));
    attempts(&elector, &store, &clock, 3).await;
    store.heal();
    elector.shutdown(Duration::ZERO).await.unwrap();
    let lines = log.at_the_end("was refused").await;
    let of = |part: &str| lines.iter().filter(|(level, line)| level == "ERROR" && line.contains(part)).count();
    assert_eq!((of("no permission"), of("wrong type")), (1, 2), "{lines:?}");
}

#[tokio::test]
async fn an_error_of_many_groups_is_one_line_and_stands_in_the_status_for_each() {
    let log = Log::of("batch");
    let store = FaultyStore::new(MemoryStore::new());
    store.inject_when(Fault::FailCommands(refused("no permission")), |c| c.group.as_str().starts_with("broken"));
    let config = Config::with_store(store).ttl(TTL).instance_id("batch");
    let elector = Elector::start(config.groups(["broken-1", "broken-2", "broken-3", "sound"])).await.unwrap();
    assert!(elector.is_leader("sound"));
    assert_eq!(elector.status().problems.len(), 3);
    elector.shutdown(Duration::ZERO).await.unwrap();
    let lines = log.at_the_end("was refused").await;
    assert!(lines.len() == 1 && lines[0].1.starts_with("group broken-1 and 2 more: "), "{lines:?}");
}
