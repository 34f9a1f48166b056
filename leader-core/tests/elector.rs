//! Electors against a store in memory: leading, giving back, and what a failing store does to them.
//!
//! Ttls are long, so that no lease ends because the machine is slow.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leader_core::store::{MemoryStore, Op};
use leader_core::testing::{Fault, FaultyStore, ManualClock};
use leader_core::{
    Config, DrainError, Elector, Event, LossReason, Reclaim, RenewalFailure, Role, Standing, StoreError, Subscription,
};
use tokio::sync::oneshot;

const TTL: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_secs(20);
const NO_GRACE: Duration = Duration::ZERO;

async fn start(store: &MemoryStore) -> Elector {
    Elector::start(Config::with_store(store.clone()).ttl(TTL)).await.unwrap()
}

/// Waits for an event; a hang is ended by the test runner.
async fn until(events: &mut Subscription, wanted: impl Fn(&Event) -> bool) -> Event {
    while let Some(event) = events.next().await {
        if wanted(&event) {
            return event;
        }
    }
    panic!("the elector ended before the event came");
}

async fn until_leader(elector: &Elector) {
    let mut events = elector.subscribe("default").unwrap();
    let leads = |e: &Event| matches!(e, Event::Acquired { .. } | Event::Now(Role::Leader { .. }));
    until(&mut events, leads).await;
    assert!(elector.is_leader("default"), "the view changes before it is told");
}

fn standing(elector: &Elector) -> Standing {
    elector.status().groups[0].standing
}

fn plug_pulled() -> StoreError {
    StoreError::Unavailable { attempted: "renew".into(), cause: "somebody pulled the plug".into() }
}

#[tokio::test]
async fn one_of_two_leads_and_a_shutdown_hands_over_at_once() {
    let store = MemoryStore::new();
    let (a, b) = (start(&store).await, start(&store).await);
    assert!(a.is_leader("default") && !b.is_leader("default"));
    assert_eq!(b.leader_id("default").await.unwrap().as_ref(), Some(a.instance_id()));
    let term = a.lease("default").unwrap().term();
    a.shutdown(GRACE).await.unwrap();
    assert!(!a.is_leader("default") && a.lease("default").is_none());
    until_leader(&b).await;
    assert!(b.lease("default").unwrap().term() > term);
    a.shutdown(GRACE).await.unwrap();
}

#[tokio::test]
async fn who_steps_down_abstains_for_a_ttl_and_a_follower_has_nothing_to_step_down_from() {
    let store = MemoryStore::new();
    let (a, b) = (start(&store).await, start(&store).await);
    assert_eq!(b.step_down("default").await, Ok(false));
    assert_eq!(standing(&b), Standing::Follower);
    assert_eq!(a.step_down("default").await, Ok(true));
    until_leader(&b).await;
    assert_eq!(standing(&a), Standing::Abstaining);
    // Its turn does not come, though the lease is free.
    b.shutdown(GRACE).await.unwrap();
    assert_eq!(a.leader_id("default").await, Ok(None));
    assert_eq!(standing(&a), Standing::Abstaining);
}

#[tokio::test]
async fn a_drained_instance_stays_out_until_it_is_resumed() {
    let store = MemoryStore::new();
    let (a, b) = (start(&store).await, start(&store).await);
    a.drain(GRACE).await.unwrap();
    until_leader(&b).await;
    b.drain(GRACE).await.unwrap();
    assert_eq!(a.leader_id("default").await, Ok(None));
    a.resume();
    until_leader(&a).await;
    assert_eq!(standing(&b), Standing::Abstaining);
}

#[tokio::test]
async fn a_drain_waits_for_work_and_starts_none() {
    let elector = start(&MemoryStore::new()).await;
    let mut events = elector.subscribe("default").unwrap();
    let (finish, finished) = oneshot::channel::<()>();
    let (asked, was_asked) = oneshot::channel::<()>();
    let worker = elector.clone();
    let work = tokio::spawn(async move {
        let job = |lease: leader_core::Lease| async move {
            lease.ending().await;
            asked.send(()).unwrap();
            finished.await.unwrap();
            lease.is_held()
        };
        worker.run_if_leader("default", job).await
    });
    while elector.status().running.is_empty() {
        tokio::task::yield_now().await;
    }
    let drainer = elector.clone();
    let drain = tokio::spawn(async move { drainer.drain(GRACE).await });
    was_asked.await.unwrap();
    assert_eq!(elector.run_if_leader("default", |_| async {}).await, None, "no new work");
    assert!(elector.is_leader("default"), "it leads while its work runs");
    finish.send(()).unwrap();
    assert_eq!(work.await.unwrap(), Some(true), "the lease was held to the end of the work");
    drain.await.unwrap().unwrap();
    let lost = |e: &Event| matches!(e, Event::Lost { reason: LossReason::SteppedDown, .. });
    until(&mut events, lost).await;
}

/// Work that ends when it is told to, and never by being cancelled.
fn stubborn(elector: &Elector) -> (oneshot::Sender<()>, tokio::task::JoinHandle<Option<()>>) {
    let (finish, finished) = oneshot::channel::<()>();
    let elector = elector.clone();
    let work =
        tokio::spawn(async move { elector.run_if_leader("default", |_| async { finished.await.unwrap() }).await });
    (finish, work)
}

async fn until_running(elector: &Elector) {
    while elector.status().running.is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_step_down_that_work_outlives_leaves_everything_as_it_was() {
    let elector = start(&MemoryStore::new()).await;
    let elector = Elector::clone(&elector);
    let (finish, work) = stubborn(&elector);
    until_running(&elector).await;
    // The grace of a step-down is the configured one: a drain with none shows the same.
    let Err(DrainError::StillRunning { running }) = elector.drain(NO_GRACE).await else { panic!("it was running") };
    assert!(running[0].what.contains("run_if_leader at") && running[0].what.contains("elector.rs"), "{running:?}");
    assert!(elector.is_leader("default"), "its lease is not given away under it");
    assert_eq!(elector.run_if_leader("default", |_| async {}).await, None, "a drain stays closed until resumed");
    elector.resume();
    while elector.run_if_leader("default", |_| async {}).await.is_none() {
        tokio::task::yield_now().await;
    }
    finish.send(()).unwrap();
    assert_eq!(work.await.unwrap(), Some(()));
}

#[tokio::test]
async fn a_drain_that_is_resumed_from_says_so() {
    let elector = start(&MemoryStore::new()).await;
    let (finish, work) = stubborn(&elector);
    until_running(&elector).await;
    let (drained, ()) = tokio::join!(elector.drain(TTL), async { elector.resume() });
    assert_eq!(drained, Err(DrainError::Resumed));
    assert!(elector.is_leader("default"));
    finish.send(()).unwrap();
    work.await.unwrap();
}

#[tokio::test]
async fn a_drain_that_work_outlived_is_completed_when_the_work_ends() {
    let store = MemoryStore::new();
    let (a, b) = (start(&store).await, start(&store).await);
    let (finish, work) = stubborn(&a);
    until_running(&a).await;
    a.drain(NO_GRACE).await.unwrap_err();
    finish.send(()).unwrap();
    work.await.unwrap();
    until_leader(&b).await;
    assert_eq!(standing(&a), Standing::Abstaining);
}

#[tokio::test]
async fn a_step_down_does_not_end_a_drain_that_waits_for_work() {
    let store = MemoryStore::new();
    let quick = || Config::with_store(store.clone()).ttl(TTL).groups(["other"]).grace(NO_GRACE);
    let a = Elector::start(quick()).await.unwrap();
    let (finish, work) = stubborn(&a);
    until_running(&a).await;
    a.drain(NO_GRACE).await.unwrap_err();
    assert_eq!(a.step_down("other").await, Ok(false));
    assert!(matches!(a.step_down("default").await, Err(DrainError::StillRunning { .. })));
    assert_eq!(a.run_if_leader("default", |_| async {}).await, None, "the drain starts no new work");
    finish.send(()).unwrap();
    work.await.unwrap();
    let b = Elector::start(quick()).await.unwrap();
    until_leader(&b).await;
    assert_eq!(standing(&a), Standing::Abstaining);
}

#[tokio::test]
async fn work_that_may_be_cancelled_is_dropped_after_the_grace() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let elector = start(&MemoryStore::new()).await;
    let dropped = Arc::new(AtomicBool::new(false));
    let (worker, flag) = (elector.clone(), Arc::clone(&dropped));
    let work = tokio::spawn(async move {
        let body = move |_| {
            let guard = Dropped(Arc::clone(&flag));
            async move {
                let _guard = guard;
                pending::<()>().await;
            }
        };
        worker.while_leader("default", body).await;
    });
    until_running(&elector).await;
    elector.shutdown(NO_GRACE).await.unwrap();
    assert!(dropped.load(Ordering::SeqCst));
    // It ends with the elector.
    work.await.unwrap();
}

#[tokio::test]
async fn a_shutdown_that_work_outlives_gives_nothing_back() {
    let store = MemoryStore::new();
    let a = start(&store).await;
    let (finish, work) = stubborn(&a);
    until_running(&a).await;
    let lease = a.lease("default").unwrap();
    assert!(matches!(a.shutdown(NO_GRACE).await, Err(DrainError::StillRunning { .. })));
    assert!(lease.is_held(), "the ttl is the last grace");
    assert!(!a.is_leader("default") && a.run_if_leader("default", |_| async {}).await.is_none());
    let b = start(&store).await;
    assert_eq!(b.leader_id("default").await.unwrap().as_ref(), Some(a.instance_id()));
    finish.send(()).unwrap();
    work.await.unwrap();
}

#[tokio::test]
async fn nobody_who_asks_during_a_shutdown_waits_for_the_leases_that_it_leaves() {
    let config = Config::with_store(MemoryStore::new()).ttl(TTL).manual_clock(ManualClock::new());
    let elector = Elector::start(config).await.unwrap();
    let (_finish, _work) = stubborn(&elector);
    until_running(&elector).await;
    // Time stands still, so the lease that is left never runs out.
    let (first, _, step_down) =
        tokio::join!(elector.shutdown(NO_GRACE), elector.shutdown(NO_GRACE), elector.step_down("default"));
    assert!(matches!(first, Err(DrainError::StillRunning { .. })));
    assert_eq!(step_down, Err(DrainError::Stopped));
}

#[tokio::test]
async fn a_lease_that_a_shutdown_left_is_lost_at_its_deadline() {
    let clock = ManualClock::new();
    let config = Config::with_store(MemoryStore::new()).ttl(TTL).manual_clock(clock.clone());
    let elector = Elector::start(config).await.unwrap();
    let (_finish, _work) = stubborn(&elector);
    until_running(&elector).await;
    let lease = elector.lease("default").unwrap();
    elector.shutdown(NO_GRACE).await.unwrap_err();
    clock.advance(TTL);
    assert!(!lease.is_held());
    lease.lost().await;
}

#[tokio::test]
async fn the_last_handle_that_goes_gives_the_lease_back() {
    let store = MemoryStore::new();
    let (a, b) = (start(&store).await, start(&store).await);
    drop(a);
    until_leader(&b).await;
}

#[tokio::test]
async fn a_start_that_is_dropped_leaves_nothing_behind() {
    let (memory, other) = (MemoryStore::new(), MemoryStore::new());
    let store = FaultyStore::new(memory.clone());
    // The acquire is executed, and its answer is lost: the worst moment to go.
    store.inject_when(Fault::LoseReply, |c| matches!(c.op, Op::Acquire { .. }));
    let starting = Elector::start(Config::with_store(store.clone()).ttl(TTL));
    let started = tokio::select! {
        started = starting => Some(started),
        () = store.called(1) => None,
    };
    assert!(started.is_none());
    let next = start(&memory).await;
    until_leader(&next).await;
    drop(other);
}

#[tokio::test]
async fn a_failed_renewal_demotes_at_once_and_the_own_lease_is_taken_back() {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::new());
    let config = Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone());
    let elector = Elector::start(config).await.unwrap();
    let first = elector.lease("default").unwrap();
    let mut events = elector.subscribe("default").unwrap();
    store.inject_when(Fault::Fail(plug_pulled()), |c| matches!(c.op, Op::Renew { .. }));
    clock.advance(TTL / 3);
    first.lost().await;
    assert!(!elector.is_leader("default"));
    let lost = |e: &Event| matches!(e, Event::Lost { reason: LossReason::RenewalFailed, .. });
    until(&mut events, lost).await;
    assert!(elector.status().problems[0].text.contains("somebody pulled the plug"));
    assert!(elector.live().is_ok() && elector.ready().is_ok(), "a store that is away is no reason to restart");
    store.heal();
    clock.advance(Duration::from_secs(1));
    until(&mut events, |e| matches!(e, Event::Acquired { .. })).await;
    assert!(elector.lease("default").unwrap().term() > first.term());
    assert!(elector.status().problems.is_empty());
}

#[tokio::test]
async fn a_leader_may_hold_until_its_deadline() {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::new());
    let config = Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone());
    let elector = Elector::start(config.renewal_failure(RenewalFailure::HoldUntilDeadline)).await.unwrap();
    let lease = elector.lease("default").unwrap();
    store.inject(Fault::Fail(plug_pulled()));
    let calls = store.calls();
    clock.advance(TTL / 3);
    store.called(calls + 1).await;
    assert!(lease.is_held() && elector.is_leader("default"));
    clock.advance(TTL);
    assert!(!lease.is_held(), "and not a moment longer");
    lease.lost().await;
}

#[tokio::test]
async fn a_renewal_without_an_answer_is_given_up_after_the_operation_timeout() {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::new());
    let config = Config::with_store(store.clone()).ttl(TTL).manual_clock(clock.clone());
    let elector = Elector::start(config.operation_timeout(Duration::from_secs(1))).await.unwrap();
    let lease = elector.lease("default").unwrap();
    store.inject_when(Fault::LoseReply, |c| matches!(c.op, Op::Renew { .. }));
    let calls = store.calls();
    clock.advance(TTL / 3);
    store.called(calls + 1).await;
    assert!(lease.is_held());
    clock.advance(Duration::from_secs(1));
    lease.lost().await;
}

#[tokio::test]
async fn a_store_that_refuses_fails_the_start_and_one_that_is_away_does_not() {
    let store = FaultyStore::new(MemoryStore::new());
    let refused = StoreError::Refused {
        attempted: "connect".into(),
        cause: "wrong password".into(),
        advice: "correct it".into(),
    };
    store.fail_connect(refused);
    let error = Elector::start(Config::with_store(store.clone()).ttl(TTL)).await.unwrap_err();
    assert!(format!("{error:?}").contains("wrong password; correct it"), "{error:?}");

    store.heal();
    store.fail_connect(plug_pulled());
    let quick = || Config::with_store(store.clone()).ttl(TTL).start_timeout(Duration::from_millis(50));
    let elector = Elector::start(quick()).await.unwrap();
    assert!(!elector.is_leader("default") && !elector.status().problems.is_empty());
    // Nothing is asked of a store that is not connected.
    let error = elector.leader_id("default").await.unwrap_err();
    assert!(error.to_string().contains("pulled the plug") && store.calls() == 0, "{error}");
    let error = Elector::start(quick().require_store(true)).await.unwrap_err();
    assert!(error.to_string().contains("was not reached") && error.to_string().contains("pulled the plug"), "{error}");
    store.heal();
    until_leader(&elector).await;
}

#[tokio::test]
async fn one_groups_trouble_is_not_its_neighbours() {
    let store = FaultyStore::new(MemoryStore::new());
    let refused = StoreError::Refused {
        attempted: "acquire".into(),
        cause: "wrong type".into(),
        advice: "delete the key".into(),
    };
    store.inject_when(Fault::FailCommands(refused), |c| c.group.as_str() == "broken");
    let elector = Elector::start(Config::with_store(store).ttl(TTL).groups(["broken", "sound"])).await.unwrap();
    assert!(elector.is_leader("sound") && !elector.is_leader("broken"));
    let problems = elector.status().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].group.as_ref().unwrap().as_str(), "broken");
    assert!(problems[0].text.contains("delete the key"));
}

#[tokio::test]
async fn a_stable_id_that_returns_leads_at_once_under_a_new_term() {
    let store = MemoryStore::new();
    let stable = || Config::with_store(store.clone()).ttl(TTL).instance_id("worker-1");
    let first = Elector::start(stable()).await.unwrap();
    let old = first.lease("default").unwrap();
    // As after a crash: nothing was given back.
    let second = Elector::start(stable()).await.unwrap();
    assert!(second.is_leader("default") && second.lease("default").unwrap().term() > old.term());
    // The older one is alive after all: it gives up for good.
    let mut events = first.subscribe("default").unwrap();
    drop(second.clone());
    assert!(matches!(until(&mut events, |_| true).await, Event::Now(_)));
}

#[tokio::test]
async fn the_older_of_two_with_one_id_stays_out() {
    let (store, clock) = (MemoryStore::new(), ManualClock::new());
    let stable = || Config::with_store(store.clone()).ttl(TTL).instance_id("worker-1");
    let first = Elector::start(stable().manual_clock(clock.clone())).await.unwrap();
    let mut events = first.subscribe("default").unwrap();
    let second = Elector::start(stable()).await.unwrap();
    clock.advance(TTL / 3);
    until(&mut events, |e| matches!(e, Event::DuplicateInstance)).await;
    assert_eq!(standing(&first), Standing::Duplicate);
    assert!(first.status().problems[0].text.contains("another process"));
    second.shutdown(GRACE).await.unwrap();
    assert_eq!(first.step_down("default").await, Ok(false));
    assert!(!first.is_leader("default") && standing(&first) == Standing::Duplicate, "it does not come back");
}

#[tokio::test]
async fn after_deadline_the_seat_is_taken_and_not_believed() {
    let store = MemoryStore::new();
    let stable = || Config::with_store(store.clone()).ttl(TTL).instance_id("worker-1");
    let _first = Elector::start(stable()).await.unwrap();
    let quick = stable().reclaim(Reclaim::AfterDeadline).start_timeout(Duration::from_millis(200));
    let second = Elector::start(quick).await.unwrap();
    assert!(!second.is_leader("default"));
}

#[tokio::test]
async fn after_deadline_nobody_leads_beside_the_older_one_though_an_answer_was_lost_or_the_seat_given_back() {
    let memory = MemoryStore::new();
    let first = Elector::start(Config::with_store(memory.clone()).ttl(TTL).instance_id("worker-1")).await.unwrap();
    let store = FaultyStore::new(memory.clone());
    store.inject_times(1, Fault::LoseReply);
    let short = Duration::from_millis(50);
    let config = Config::with_store(store.clone()).ttl(TTL).instance_id("worker-1").reclaim(Reclaim::AfterDeadline);
    let second = Elector::start(config.operation_timeout(short).retry(short).start_timeout(GRACE)).await.unwrap();
    assert!(store.calls() >= 2 && !second.is_leader("default"));
    second.drain(GRACE).await.unwrap();
    let other = start(&memory).await;
    assert!(first.is_leader("default") && !other.is_leader("default"));
}

#[tokio::test]
async fn an_observer_knows_who_leads_and_never_does() {
    let store = MemoryStore::new();
    let observer = Elector::start(Config::with_store(store.clone()).ttl(TTL).observe_only()).await.unwrap();
    assert!(!observer.is_leader("default"));
    assert_eq!(observer.leader_id("default").await, Ok(None));
    let leader = start(&store).await;
    assert!(leader.is_leader("default"));
    assert_eq!(observer.leader_id("default").await.unwrap().as_ref(), Some(leader.instance_id()));
    assert_eq!(standing(&observer), Standing::Observer);
}

#[tokio::test]
async fn while_leader_runs_once_for_each_lease() {
    let elector = leader_core::testing::FixedElector::following(["shift"]);
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let worker = Elector::clone(&elector);
    let work = tokio::spawn(async move {
        let body = |lease: leader_core::Lease| {
            let begun = begun.clone();
            async move {
                begun.send(lease.term()).unwrap();
                pending::<()>().await;
            }
        };
        worker.while_leader("shift", body).await;
    });
    let mut terms = Vec::new();
    for _ in 0..3 {
        elector.lead("shift");
        terms.push(begins.recv().await.unwrap());
        elector.follow("shift");
    }
    assert!(terms.is_sorted() && terms[0] < terms[1] && terms[1] < terms[2], "{terms:?}");
    elector.shutdown(GRACE).await.unwrap();
    work.await.unwrap();
    assert!(begins.try_recv().is_err());
}

#[tokio::test]
async fn while_leader_goes_on_when_what_would_have_ended_its_lease_is_taken_back() {
    let elector = Elector::start(Config::with_store(MemoryStore::new()).ttl(TTL).grace(NO_GRACE)).await.unwrap();
    let (finish, work) = stubborn(&elector);
    until_running(&elector).await;
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let worker = elector.clone();
    let shift = tokio::spawn(async move {
        let body = |lease: leader_core::Lease| {
            begun.send(lease.term()).unwrap();
            pending::<()>()
        };
        worker.while_leader("default", body).await;
    });
    let term = begins.recv().await.unwrap();
    assert!(matches!(elector.step_down("default").await, Err(DrainError::StillRunning { .. })));
    assert_eq!(elector.status().running.len(), 2, "not dropped for nothing");
    assert!(matches!(elector.drain(NO_GRACE).await, Err(DrainError::StillRunning { .. })));
    while elector.status().running.len() == 2 {
        tokio::task::yield_now().await;
    }
    elector.resume();
    assert_eq!(begins.recv().await, Some(term), "it leads on under the same lease");
    finish.send(()).unwrap();
    work.await.unwrap();
    elector.shutdown(NO_GRACE).await.unwrap();
    shift.await.unwrap();
    assert!(begins.try_recv().is_err());
}

#[tokio::test]
async fn what_an_elector_has_no_part_in_is_refused_with_what_it_has() {
    let elector = start(&MemoryStore::new()).await;
    assert!(!elector.is_leader("typo") && elector.lease("typo").is_none());
    let error = elector.step_down("typo").await.unwrap_err().to_string();
    assert!(error.contains("`typo`") && error.contains("default") && error.contains("Config::groups"), "{error}");
    assert!(elector.subscribe("typo").is_err() && elector.leader_id("typo").await.is_err());
}

#[test]
fn no_runtime_is_needed() {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let elector = leader_core::testing::FixedElector::leading(["default"]);
        tell.send(elector.is_leader("default")).unwrap();
    });
    assert!(told.recv().unwrap());
}

#[tokio::test]
async fn every_caller_of_a_shutdown_is_told_how_it_ended() {
    let elector = start(&MemoryStore::new()).await;
    let (finish, work) = stubborn(&elector);
    until_running(&elector).await;
    let (first, second) = tokio::join!(elector.shutdown(NO_GRACE), elector.shutdown(GRACE));
    assert!(matches!(first, Err(DrainError::StillRunning { .. })) && first == second, "{first:?} {second:?}");
    finish.send(()).unwrap();
    work.await.unwrap();
}

#[tokio::test]
async fn who_does_not_lead_has_nothing_to_step_down_from_though_old_work_runs() {
    let elector = leader_core::testing::FixedElector::leading(["default"]);
    let (finish, work) = stubborn(&elector);
    until_running(&elector).await;
    elector.follow("default");
    assert_eq!(elector.step_down("default").await, Ok(false));
    finish.send(()).unwrap();
    assert_eq!(work.await.unwrap(), Some(()));
}
