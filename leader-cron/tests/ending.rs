//! Stop and shutdown: what runs is waited for, and nothing begins afterwards.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{EVERY_SECOND, PATIENCE, elector, in_time, next, status};
use leader_core::store::MemoryStore;
use leader_core::testing::FixedElector;
use leader_core::{DrainError, Event};
use leader_cron::{CronError, Job, Running, Scheduler, Tick};
use tokio::sync::{Notify, mpsc};

/// A job that counts its runs, and tells each.
fn counted(name: &str, count: &Arc<AtomicUsize>, ran: &mpsc::UnboundedSender<()>) -> Job {
    let (count, ran) = (Arc::clone(count), ran.clone());
    Job::new(name, EVERY_SECOND, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        // The test may have seen enough.
        let _ = ran.send(());
        async {}
    })
}

/// Some ticks of the wall clock, as other jobs see them.
async fn seconds_pass() {
    let elector = FixedElector::following(["none"]);
    let (ran, mut runs) = mpsc::unbounded_channel();
    let _running = Scheduler::new(&elector).job(counted("clock", &Arc::default(), &ran)).start().unwrap();
    for _ in 0..3 {
        next(&mut runs).await;
    }
}

/// A job that runs until it is released.
fn held(name: &str, began: &mpsc::UnboundedSender<Tick>, release: &Arc<Notify>) -> Job {
    let (began, release) = (began.clone(), Arc::clone(release));
    Job::new(name, EVERY_SECOND, move |tick: Tick| {
        let (began, release) = (began.clone(), Arc::clone(&release));
        async move {
            began.send(tick).unwrap();
            release.notified().await;
        }
    })
}

#[tokio::test]
async fn a_shutdown_waits_for_the_body_before_leadership_is_given_up() {
    let store = MemoryStore::new();
    let (leader, standby) = (elector(&store, &["nightly"]).await, elector(&store, &["nightly"]).await);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (began, mut begins) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let job = {
        let (order, release) = (Arc::clone(&order), Arc::clone(&release));
        Job::new("work", EVERY_SECOND, move |tick: Tick| {
            let (order, release, began) = (Arc::clone(&order), Arc::clone(&release), began.clone());
            async move {
                began.send("begun").unwrap();
                let lease = tick.lease().unwrap();
                lease.ending().await;
                began.send("asked to end").unwrap();
                release.notified().await;
                order.lock().unwrap().push(if lease.is_held() {
                    "ended while leading"
                } else {
                    "ended after the loss"
                });
            }
        })
    };
    let running = Scheduler::new(&leader).job(job.group("nightly")).start().unwrap();
    assert_eq!(next(&mut begins).await, "begun");

    let successor = {
        let (order, mut events) = (Arc::clone(&order), standby.subscribe("nightly").unwrap());
        tokio::spawn(async move {
            while !matches!(events.next().await, Some(Event::Acquired { .. })) {}
            order.lock().unwrap().push("taken over");
        })
    };
    let shutdown = {
        let leader = leader.clone();
        tokio::spawn(async move { leader.shutdown(PATIENCE).await })
    };
    assert_eq!(next(&mut begins).await, "asked to end");
    assert_eq!(standby.leader_id("nightly").await.unwrap().as_ref(), Some(leader.instance_id()));
    release.notify_one();
    in_time(shutdown).await.unwrap().unwrap();
    in_time(successor).await.unwrap();
    assert_eq!(*order.lock().unwrap(), ["ended while leading", "taken over"]);
    assert_eq!(status(&running, "work").next_tick, None);
    in_time(standby.shutdown(PATIENCE)).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_counts_ungated_bodies_among_what_runs() {
    let elector = FixedElector::following(["none"]);
    let (began, mut begins) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let _running = Scheduler::new(&elector).job(held("report", &began, &release)).start().unwrap();
    next(&mut begins).await;
    match in_time(elector.shutdown(Duration::ZERO)).await {
        Err(DrainError::StillRunning { running }) => assert_eq!(running[0].what, "report"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_body_begins_after_a_shutdown_has_returned() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (count, (ran, mut runs)) = (Arc::default(), mpsc::unbounded_channel());
    let running = Scheduler::new(&elector)
        .job(counted("gated", &count, &ran).group("nightly"))
        .job(counted("ungated", &count, &ran))
        .start()
        .unwrap();
    for _ in 0..4 {
        next(&mut runs).await;
    }
    in_time(elector.shutdown(PATIENCE)).await.unwrap();
    let at_return = count.load(Ordering::SeqCst);
    seconds_pass().await;
    assert_eq!(count.load(Ordering::SeqCst), at_return);
    drop(running);
}

/// A body that waits in the queue of the blocking pool has not begun; when its turn comes, it is too late.
#[test]
fn a_body_that_was_queued_does_not_begin_after_a_shutdown_has_returned() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    let elector = FixedElector::leading(["nightly"]);
    let begun_late = Arc::new(AtomicBool::new(false));
    let (release, released) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let (began, mut begins) = mpsc::unbounded_channel();
        let released = Mutex::new(released);
        let first = Job::blocking("a-first", EVERY_SECOND, move |_| {
            began.send(()).unwrap();
            released.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        });
        let late = Arc::clone(&begun_late);
        let second = Job::blocking("b-second", EVERY_SECOND, move |_| late.store(true, Ordering::SeqCst));
        let running =
            Scheduler::new(&elector).job(first.group("nightly")).job(second.group("nightly")).start().unwrap();
        next(&mut begins).await;
        common::until(&running, "b-second", |status| status.running).await;
        let ended = in_time(elector.shutdown(Duration::ZERO)).await;
        assert!(matches!(ended, Err(DrainError::StillRunning { .. })), "{ended:?}");
        release.send(()).unwrap();
        common::until(&running, "b-second", |status| !status.running).await;
    });
    assert!(!begun_late.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_stop_waits_for_what_runs_says_what_outlived_it_and_keeps_leadership() {
    let elector = FixedElector::leading(["nightly"]);
    let (began, mut begins) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let running = Scheduler::new(&elector).job(held("work", &began, &release).group("nightly")).start().unwrap();
    next(&mut begins).await;
    let outlived = running.stop(Duration::ZERO).await.unwrap_err();
    assert_eq!(outlived.running.len(), 1);
    assert!(outlived.to_string().contains("work (") && outlived.to_string().contains("group nightly"), "{outlived}");
    release.notify_one();
    in_time(running.stop(PATIENCE)).await.unwrap();
    assert!(elector.is_leader("nightly"));
    seconds_pass().await;
    assert!(begins.is_empty());
}

#[tokio::test]
async fn dropping_the_handle_stops_the_jobs() {
    let elector = FixedElector::following(["none"]);
    let (count, (ran, mut runs)) = (Arc::default(), mpsc::unbounded_channel());
    let running: Running = Scheduler::new(&elector).job(counted("work", &count, &ran)).start().unwrap();
    next(&mut runs).await;
    drop(running);
    let at_drop = count.load(Ordering::SeqCst);
    seconds_pass().await;
    assert_eq!(count.load(Ordering::SeqCst), at_drop);
}

#[tokio::test]
async fn a_drain_silences_the_jobs_of_groups_until_it_is_resumed() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (gated, (ran, mut runs)) = (Arc::default(), mpsc::unbounded_channel());
    let _running = Scheduler::new(&elector).job(counted("gated", &gated, &ran).group("nightly")).start().unwrap();
    next(&mut runs).await;
    in_time(elector.drain(PATIENCE)).await.unwrap();
    let at_drain = gated.load(Ordering::SeqCst);
    seconds_pass().await;
    assert_eq!(gated.load(Ordering::SeqCst), at_drain);
    while runs.try_recv().is_ok() {}
    elector.resume();
    next(&mut runs).await;
    in_time(elector.shutdown(PATIENCE)).await.unwrap();
}

#[tokio::test]
async fn jobs_of_an_elector_that_has_ended_are_not_started() {
    let elector = FixedElector::following(["none"]);
    in_time(elector.shutdown(Duration::ZERO)).await.unwrap();
    let refused = Scheduler::new(&elector).start().unwrap_err();
    assert!(matches!(refused, CronError::ElectorEnded), "{refused}");
}

#[tokio::test]
async fn a_job_is_scheduled_once_on_an_elector() {
    let elector = FixedElector::leading(["twice"]);
    let job = || Job::new("twice", EVERY_SECOND, |_| async {}).group("twice");
    let first = Scheduler::new(&elector).job(job()).start().unwrap();
    let error = Scheduler::new(&elector).job(job()).start().unwrap_err().to_string();
    assert!(error.contains("`twice`") && error.contains("is scheduled on this elector already"), "{error}");
    first.stop(Duration::ZERO).await.unwrap();
    let second = Scheduler::new(&elector).job(job()).start().unwrap();
    drop(second);
    drop(Scheduler::new(&elector).job(job()).start().unwrap());
}
