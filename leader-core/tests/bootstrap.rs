//! The process's own elector, annotated functions, and scopes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use leader_core::store::MemoryStore;
use leader_core::testing::{Fault, FaultyStore, FixedElector, ManualClock};
use leader_core::{Config, Elector, StartError, bootstrap, current, leader_only};
use tokio::sync::Mutex;

/// There is one process-wide elector, and `cargo test` runs these in threads.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

const TTL: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_secs(20);

#[leader_only(group = "annotated")]
fn annotated() -> Option<&'static str> {
    Some("ran")
}

#[leader_only(group = "annotated", on_loss = "cancel")]
async fn cancellable() -> Option<()> {
    std::future::pending().await
}

#[leader_only]
async fn of_the_default_group() -> Result<(), String> {
    Err("ran".to_owned())
}

fn memory() -> Config {
    Config::with_store(MemoryStore::new()).ttl(TTL)
}

#[tokio::test]
async fn annotated_functions_ask_the_elector_that_was_bootstrapped() {
    let _one = ONE_AT_A_TIME.lock().await;
    assert_eq!(annotated(), None, "before");
    let elector = bootstrap(memory()).await.unwrap();
    assert!(elector.groups().iter().any(|g| g.as_str() == "annotated"), "declared at link time");
    assert_eq!((annotated(), of_the_default_group().await), (Some("ran"), Err("ran".to_owned())));
    assert_eq!(current().unwrap().instance_id(), elector.instance_id());
    elector.shutdown(GRACE).await.unwrap();
    assert_eq!((annotated(), of_the_default_group().await), (None, Ok(())), "after");
    assert!(current().is_none());
}

#[tokio::test]
async fn a_process_has_one_elector_and_may_have_another_after_its_shutdown() {
    let _one = ONE_AT_A_TIME.lock().await;
    let line = line!() + 1;
    let first = bootstrap(memory()).await.unwrap();
    let second = bootstrap(memory()).await.unwrap_err();
    let StartError::AlreadyRunning { place } = &second else { panic!("{second:?}") };
    assert_eq!((place.file(), place.line()), (file!(), line));
    assert!(first.is_leader("default"));
    first.shutdown(GRACE).await.unwrap();
    let third = bootstrap(memory()).await.unwrap();
    assert_eq!(annotated(), Some("ran"));
    // The first one's handle has no say any more.
    first.shutdown(GRACE).await.unwrap();
    assert_eq!(annotated(), Some("ran"));
    third.shutdown(GRACE).await.unwrap();
}

#[tokio::test]
async fn a_bootstrap_that_is_dropped_or_fails_leaves_the_place_free() {
    let _one = ONE_AT_A_TIME.lock().await;
    let store = FaultyStore::new(MemoryStore::new());
    store.inject(Fault::LoseRequest);
    let starting = bootstrap(Config::with_store(store.clone()).ttl(TTL));
    tokio::select! {
        started = starting => panic!("{started:?}"),
        () = store.called(1) => {}
    }
    let error = bootstrap(memory().ttl(Duration::ZERO)).await.unwrap_err();
    assert!(matches!(error, StartError::Config(_)), "{error:?}");
    let elector = bootstrap(memory()).await.unwrap();
    assert_eq!(annotated(), Some("ran"), "the one that was dropped writes no view any more");
    elector.shutdown(GRACE).await.unwrap();
}

#[tokio::test]
async fn wrong_input_is_refused_before_anything_starts_and_says_what_would_do() {
    let _one = ONE_AT_A_TIME.lock().await;
    let long = "x".repeat(65);
    let second = Duration::from_secs(1);
    let cases: Vec<(Config, &[&str])> = vec![
        (Config::new("http://localhost"), &["http", "sqlite:", "memory:"]),
        (Config::new("no url at all"), &["sqlite:", "memory:"]),
        (Config::new("redis://user:secret@"), &["host", "redis://"]),
        (memory().groups([""]), &["empty", "1 to 64"]),
        (memory().groups([long.as_str()]), &["65 characters"]),
        (memory().groups(["a:b"]), &["`a:b`", "contains `:`"]),
        (memory().groups(["{x}"]), &["contains `{`"]),
        (memory().observe(["a b"]), &["contains ` `"]),
        (memory().heartbeat(TTL), &["heartbeat + operation timeout < ttl - guard", "instead"]),
        (memory().ttl(Duration::from_millis(1)), &["100ms <= ttl <= 1h", "ttl 100ms"]),
        (memory().ttl(second).operation_timeout(second), &["instead"]),
        (memory().instance_id("a b"), &["`a b`", "instance id"]),
        (memory().expect_groups(["from-a-library"]), &["from-a-library", "use the_library as _;", "annotated"]),
        (memory().manual_clock(ManualClock::new()), &["Elector::start"]),
        (Config::new("sqlite:///nonexistent-folder/x/leader.db"), &["/nonexistent-folder/x"]),
    ];
    for (config, parts) in cases {
        let error = bootstrap(config).await.unwrap_err();
        let text = format!("{error:?}");
        assert_eq!(text, error.to_string(), "what a main that returns it prints");
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
        assert!(!text.contains("secret"), "{text}");
        assert!(current().is_none());
    }
}

#[tokio::test]
async fn no_debug_shows_a_password() {
    let config = format!("{:?}", Config::new("redis://user:secret@localhost:6379/1"));
    assert!(!config.contains("secret") && config.contains("localhost"), "{config}");
}

#[tokio::test]
async fn in_a_scope_functions_ask_its_elector_and_no_other() {
    let _one = ONE_AT_A_TIME.lock().await;
    let own = bootstrap(memory()).await.unwrap();
    let (leader, follower) = (FixedElector::leading(["annotated"]), FixedElector::following(["annotated"]));
    assert_eq!(follower.scope(async { annotated() }).await, None);
    let inner = leader.scope(async {
        tokio::task::yield_now().await;
        annotated()
    });
    let outer = follower.scope(async { (annotated(), inner.await, annotated()) });
    assert_eq!(outer.await, (None, Some("ran"), None));
    {
        let _follower = follower.enter();
        assert_eq!(annotated(), None);
        let leader_guard = leader.enter();
        assert_eq!(annotated(), Some("ran"));
        drop(leader_guard);
        assert_eq!(annotated(), None);
    }
    assert_eq!(annotated(), Some("ran"), "outside, the process's own is asked");
    own.shutdown(GRACE).await.unwrap();
    assert_eq!(leader.scope(async { annotated() }).await, Some("ran"), "a scope needs no other elector");
}

#[tokio::test]
#[should_panic(expected = "takes no part in group `late`")]
async fn a_scope_whose_elector_lacks_the_group_panics() {
    // Declared by no attribute: only the call site names it.
    static SITE: leader_core::__private::CallSite = leader_core::__private::CallSite::new(
        "late",
        leader_core::Site { module: "", function: "", file: "", line: 0, column: 0 },
    );
    let elector = FixedElector::leading(["annotated"]);
    let _current = elector.enter();
    let _ = SITE.enter(leader_core::__private::OnLoss::Finish);
}

#[tokio::test]
async fn work_that_may_be_cancelled_is_dropped_when_the_lease_is_lost() {
    let elector = FixedElector::leading(["annotated"]);
    let work = tokio::spawn(elector.scope(cancellable()));
    while elector.status().running.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(elector.status().running[0].what.contains("cancellable"), "{:?}", elector.status().running);
    elector.follow("annotated");
    assert_eq!(work.await.unwrap(), None);
    assert!(elector.status().running.is_empty());
}

#[leader_only(group = "annotated")]
async fn its_lease() -> Option<leader_core::Lease> {
    leader_core::lease()
}

#[tokio::test]
async fn gated_work_knows_its_lease_and_a_spawned_task_does_not() {
    let elector = FixedElector::leading(["annotated"]);
    let lease = elector.scope(its_lease()).await.unwrap();
    assert_eq!(lease.group().as_str(), "annotated");
    assert_eq!(lease.term(), elector.lease("annotated").unwrap().term());
    assert!(lease.is_held() && leader_core::lease().is_none());
    elector.follow("annotated");
    lease.lost().await;
    lease.ending().await;
    assert!(!lease.is_held() && lease.remaining().is_zero());
}

#[tokio::test]
async fn an_environment_is_a_configuration() {
    // The environment of this process has no LEADER_STORE, or the test that sets one would be another.
    if std::env::var_os("LEADER_STORE").is_none() {
        assert!(Config::from_env().unwrap_err().to_string().contains("LEADER_STORE"));
    }
    let _ = Elector::start(memory()).await.unwrap();
}
