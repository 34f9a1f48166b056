//! What the ledger gives to jobs of a group: no tick lost or doubled in a hand-over, pauses, histories, explanations.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::time::{Duration, SystemTime};

use common::{EVERY_SECOND, PATIENCE, elector, in_time, next};
use leader_core::store::{HistoryEvent, MemoryStore, TickOp};
use leader_core::testing::{Fault, FaultyStore};
use leader_core::{Config, Elector};
use leader_cron::{CronError, Explanation, Job, LedgerError, Missed, Scheduler, Tick};
use tokio::sync::mpsc;

fn beat(name: &str, ticks: &mpsc::UnboundedSender<(u8, Tick)>, instance: u8) -> Job {
    let ticks = ticks.clone();
    let job = Job::new(name, EVERY_SECOND, move |tick| {
        let ticks = ticks.clone();
        async move {
            // The test may have seen enough.
            let _ = ticks.send((instance, tick));
        }
    });
    job.group("nightly")
}

#[tokio::test]
async fn each_tick_runs_once_whoever_leads() {
    let store = MemoryStore::new();
    let (ran, mut runs) = mpsc::unbounded_channel();
    let mut seen: Vec<i64> = Vec::new();
    let mut before = None;
    let mut instances = Vec::new();
    for instance in 0..4 {
        let elector = elector(&store, &["nightly"]).await;
        let jobs = Scheduler::new(&elector).job(beat("work", &ran, instance).missed(Missed::All)).start().unwrap();
        if let Some((elector, jobs)) = before.replace((elector, jobs)) {
            in_time(elector.shutdown(PATIENCE)).await.unwrap();
            drop(jobs);
        }
        for _ in 0..2 {
            let (instance, tick) = next(&mut runs).await;
            instances.push(instance);
            seen.push(tick.unix_seconds());
        }
    }
    assert!(seen.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seen:?}");
    instances.dedup();
    assert_eq!(instances, [0, 1, 2, 3], "each has led");
}

/// Nobody else gives it back, and at most once nobody may run it: a shutdown that did not wait would lose it.
#[tokio::test]
async fn a_shutdown_gives_back_a_tick_whose_claim_was_not_answered() {
    let memory = MemoryStore::new();
    let store = FaultyStore::new(memory.clone());
    let config = Config::with_store(store.clone()).groups(["nightly"]).ttl(PATIENCE);
    let leader = Elector::start(config.operation_timeout(Duration::from_millis(300))).await.unwrap();
    let (ran, mut runs) = mpsc::unbounded_channel();
    let jobs = Scheduler::new(&leader).job(beat("work", &ran, 0).missed(Missed::All)).start().unwrap();
    next(&mut runs).await;
    let (claims, mut claimed) = mpsc::unbounded_channel();
    store.inject_for_ticks(Fault::LoseReply, move |command| match &command.op {
        TickOp::Claim(claim) => claims.send(claim.tick).is_ok(),
        _ => false,
    });
    let tick = next(&mut claimed).await;
    // A shutdown while nobody knows whether it was claimed.
    in_time(leader.shutdown(PATIENCE)).await.unwrap();
    drop(jobs);
    while runs.try_recv().is_ok() {}

    let other = elector(&memory, &["nightly"]).await;
    let jobs = Scheduler::new(&other).job(beat("work", &ran, 1).missed(Missed::All)).start().unwrap();
    let (instance, first) = next(&mut runs).await;
    assert_eq!((instance, first.unix_seconds(), first.attempt()), (1, tick, 1));
    drop(jobs);
}

#[tokio::test]
async fn a_paused_job_does_not_run_and_says_so() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (ran, mut runs) = mpsc::unbounded_channel();
    let jobs = Scheduler::new(&elector).job(beat("work", &ran, 0)).start().unwrap();
    let (_, tick) = next(&mut runs).await;

    let until = SystemTime::now() + Duration::from_secs(3600);
    jobs.pause("work", until, "stocktaking").await.unwrap();
    let last = std::iter::from_fn(|| runs.try_recv().ok()).map(|(_, tick)| tick).last().unwrap_or(tick);
    // A run that had been claimed before may still have begun.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let late: Vec<_> = std::iter::from_fn(|| runs.try_recv().ok()).collect();
    assert!(late.len() <= 1, "{late:?}");
    let next_tick = last.intended() + Duration::from_secs(late.len() as u64 + 1);
    let why = jobs.explain("work", next_tick).await.unwrap();
    assert!(matches!(&why, Explanation::Paused { note, .. } if note == "stocktaking"), "{why:?}");

    jobs.resume("work").await.unwrap();
    assert!(next(&mut runs).await.1.intended() > next_tick);
}

#[tokio::test]
async fn a_history_and_an_explanation_tell_where_a_tick_ran() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (ran, mut runs) = mpsc::unbounded_channel();
    let jobs = Scheduler::new(&elector).job(beat("work", &ran, 0)).start().unwrap();
    let (_, tick) = next(&mut runs).await;
    next(&mut runs).await;
    let history = jobs.history("work").await.unwrap();
    let claimed = history
        .iter()
        .any(|entry| matches!(entry.event, HistoryEvent::Claimed { tick: of, .. } if of == tick.unix_seconds()));
    assert!(claimed, "{history:?}");
    let why = jobs.explain("work", tick.intended()).await.unwrap();
    assert!(
        matches!(&why, Explanation::Ran { instance, attempt: 1, end: Some(_), .. } if instance == elector.instance_id()),
        "{why:?}"
    );
    let ticks = jobs.next_ticks("work", 3).unwrap();
    assert!(ticks.windows(2).all(|pair| pair[1] == pair[0] + Duration::from_secs(1)), "{ticks:?}");
    let why = jobs.explain("work", ticks[2] + Duration::from_secs(60)).await.unwrap();
    assert!(matches!(why, Explanation::NotDue { .. }), "{why:?}");
}

#[tokio::test]
async fn a_job_that_is_added_runs_and_one_that_was_removed_does_not() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (ran, mut runs) = mpsc::unbounded_channel();
    let jobs = Scheduler::new(&elector).start().unwrap();
    jobs.add(beat("work", &ran, 7)).unwrap();
    let (_, tick) = next(&mut runs).await;

    let twice = jobs.add(beat("work", &ran, 8)).unwrap_err();
    assert!(matches!(twice, CronError::Invalid { .. }), "{twice}");
    jobs.remove("work").unwrap();
    assert!(matches!(jobs.remove("work"), Err(LedgerError::Unknown { .. })));

    // It goes on from what the ledger knows.
    jobs.add(beat("work", &ran, 9).missed(Missed::All)).unwrap();
    let mut last = tick.unix_seconds();
    loop {
        let (instance, tick) = next(&mut runs).await;
        assert_eq!(tick.unix_seconds(), last + 1);
        last += 1;
        if instance == 9 {
            return;
        }
    }
}

#[tokio::test]
async fn what_has_no_record_says_why() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let everywhere = Job::new("everywhere", EVERY_SECOND, |_| async {});
    let jobs = Scheduler::new(&elector).job(everywhere).start().unwrap();
    let error = jobs.history("everywhere").await.unwrap_err();
    assert!(error.to_string().contains("give it a group"), "{error}");
    let error = jobs.history("nothing").await.unwrap_err();
    assert!(error.to_string().contains("there are [\"everywhere\"]"), "{error}");
}
