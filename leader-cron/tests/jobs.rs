//! Jobs that are made by hand: where they run, and what a bad one does to the others.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use common::{EVERY_SECOND, PATIENCE, elector, in_time, next, status, until};
use leader_core::leader_only;
use leader_core::store::MemoryStore;
use leader_core::testing::FixedElector;
use leader_cron::{Job, RunOutcome, Scheduler, Tick};
use tokio::sync::{Notify, mpsc};

/// A job that tells each of its ticks.
fn beat(name: &str, events: &mpsc::UnboundedSender<Tick>) -> Job {
    let events = events.clone();
    Job::new(name, EVERY_SECOND, move |tick| {
        let events = events.clone();
        async move {
            // The test may have seen enough.
            let _ = events.send(tick);
        }
    })
}

#[tokio::test]
async fn a_job_of_a_group_runs_on_the_leader_only_and_moves_with_it() {
    let store = MemoryStore::new();
    let (first, second) = (elector(&store, &["nightly"]).await, elector(&store, &["nightly"]).await);
    assert!(first.is_leader("nightly") && !second.is_leader("nightly"));
    let (on_first, mut of_first) = mpsc::unbounded_channel();
    let (on_second, mut of_second) = mpsc::unbounded_channel();
    let (beats, mut everywhere) = mpsc::unbounded_channel();
    let jobs_of_first = Scheduler::new(&first).job(beat("work", &on_first).group("nightly")).start().unwrap();
    let jobs_of_second = Scheduler::new(&second)
        .job(beat("beat", &beats))
        .job(beat("work", &on_second).group("nightly"))
        .start()
        .unwrap();

    let term = first.lease("nightly").unwrap().term();
    let ticks = [next(&mut of_first).await, next(&mut of_first).await];
    assert_eq!(ticks[1].unix_seconds(), ticks[0].unix_seconds() + 1);
    assert!(ticks.iter().all(|tick| tick.lease().map(leader_core::Lease::term) == Some(term)));
    for _ in 0..3 {
        assert!(next(&mut everywhere).await.lease().is_none(), "a job without a group is under no lease");
    }
    assert!(of_second.is_empty());
    assert!(status(&jobs_of_second, "work").skipped >= 2);

    in_time(first.shutdown(PATIENCE)).await.unwrap();
    let taken_over = next(&mut of_second).await;
    assert!(taken_over.lease().unwrap().term() > term);
    assert_eq!(status(&jobs_of_first, "work").skipped, 0);
    in_time(second.shutdown(PATIENCE)).await.unwrap();
}

#[leader_only(group = "nightly")]
fn gated() -> Option<()> {
    Some(())
}

#[tokio::test]
async fn a_body_knows_its_lease_and_what_it_calls_is_gated_by_the_same_elector() {
    let elector = FixedElector::leading(["nightly"]);
    let (sender, mut events) = mpsc::unbounded_channel();
    let job = Job::new("work", EVERY_SECOND, move |tick: Tick| {
        let events = sender.clone();
        async move {
            let lease = leader_core::lease().unwrap();
            assert_eq!(lease.term(), tick.lease().unwrap().term());
            let while_leading = gated();
            events.send("begun").unwrap();
            lease.lost().await;
            assert_eq!((while_leading, gated()), (Some(()), None));
            events.send("checked").unwrap();
        }
    });
    let running = Scheduler::new(&elector).job(job.group("nightly")).start().unwrap();
    assert_eq!(next(&mut events).await, "begun");
    elector.follow("nightly");
    assert_eq!(next(&mut events).await, "checked");
    assert_eq!(until(&running, "work", |status| status.last_run.is_some()).await.panics, 0);
}

fn fail(text: &str) {
    panic!("{text}");
}

#[tokio::test]
async fn a_job_that_panics_or_fails_runs_again_and_stops_no_other() {
    let elector = FixedElector::following(["none"]);
    let (began, mut begins) = mpsc::unbounded_channel();
    let told = |name: &'static str| {
        let began = began.clone();
        move || began.send(name).unwrap()
    };
    let (early, late, failing) = (told("early"), told("late"), told("failing"));
    // Panics while its future is made, and while it runs.
    let early = Job::new("early", EVERY_SECOND, move |_| {
        early();
        fail("no paper");
        async {}
    });
    let late = Job::new("late", EVERY_SECOND, move |_| {
        late();
        async { fail("no ink") }
    });
    let blocking = Job::blocking("blocking", EVERY_SECOND, |_| fail("no power"));
    let failing = Job::blocking("failing", EVERY_SECOND, move |_| {
        failing();
        Err::<(), _>("no network")
    });
    let running = Scheduler::new(&elector).job(early).job(late).job(blocking).job(failing).start().unwrap();
    let mut seen = [0; 3];
    while seen.iter().any(|times| *times < 2) {
        let name = next(&mut begins).await;
        seen[["early", "late", "failing"].iter().position(|known| *known == name).unwrap()] += 1;
    }
    for (job, message) in [("early", "no paper"), ("late", "no ink"), ("blocking", "no power")] {
        let status = until(&running, job, |status| status.panics >= 2).await;
        assert_eq!(status.last_run.unwrap().outcome, RunOutcome::Panicked(message.to_owned()));
    }
    let failing = until(&running, "failing", |status| status.failures >= 2).await;
    assert_eq!(failing.last_run.unwrap().outcome, RunOutcome::Failed("no network".to_owned()));
    assert!(failing.runs >= 2 && failing.panics == 0);
}

#[tokio::test(flavor = "current_thread")]
async fn a_blocking_body_does_not_block_the_workers() {
    let elector = FixedElector::following(["none"]);
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let (began, mut begins) = mpsc::unbounded_channel();
    let job = Job::blocking("blocking", EVERY_SECOND, move |_| {
        began.send(std::thread::current().id()).unwrap();
        released.lock().unwrap().recv_timeout(PATIENCE).unwrap();
    });
    let running = Scheduler::new(&elector).job(job).start().unwrap();
    // If it blocked this only worker, nobody could release it.
    assert_ne!(next(&mut begins).await, std::thread::current().id());
    release.send(()).unwrap();
    let done = until(&running, "blocking", |status| status.last_run.is_some()).await;
    assert_eq!(done.last_run.unwrap().outcome, RunOutcome::Ok);
    running.stop(Duration::ZERO).await.ok();
    release.send(()).ok();
}

#[tokio::test]
async fn runs_of_one_job_do_not_overlap_and_the_next_is_told_what_was_missed() {
    let elector = FixedElector::following(["none"]);
    let (beats, mut clock) = mpsc::unbounded_channel();
    let (began, mut begins) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let released = Arc::clone(&release);
    let slow = Job::new("slow", EVERY_SECOND, move |tick: Tick| {
        let (began, released) = (began.clone(), Arc::clone(&released));
        async move {
            began.send(tick).unwrap();
            released.notified().await;
        }
    });
    let running = Scheduler::new(&elector).job(beat("beat", &beats)).job(slow).start().unwrap();
    let first = next(&mut begins).await;
    assert_eq!(first.missed(), 0);
    until(&running, "slow", |status| status.overlapping >= 2).await;
    assert!(begins.is_empty());
    assert!(status(&running, "slow").running);
    release.notify_one();
    let second = next(&mut begins).await;
    assert_eq!(second.missed(), u64::try_from(second.unix_seconds() - first.unix_seconds()).unwrap() - 1);
    assert!(!clock.is_empty(), "{:?}", next(&mut clock).await);
    release.notify_one();
}

#[tokio::test]
async fn a_job_that_is_cancelled_on_loss_is_dropped_by_a_loss_and_by_a_drain() {
    let elector = FixedElector::leading(["nightly"]);
    let (began, mut begins) = mpsc::unbounded_channel();
    let job = Job::new("work", EVERY_SECOND, move |_| {
        began.send(()).unwrap();
        std::future::pending::<()>()
    });
    let running = Scheduler::new(&elector).job(job.group("nightly").cancel_on_loss()).start().unwrap();
    next(&mut begins).await;
    elector.follow("nightly");
    until(&running, "work", |status| status.cancelled == 1).await;
    elector.lead("nightly");
    next(&mut begins).await;
    in_time(elector.drain(Duration::ZERO)).await.unwrap();
    let status = until(&running, "work", |status| status.cancelled == 2).await;
    assert_eq!(status.last_run.unwrap().outcome, RunOutcome::Cancelled);
}
