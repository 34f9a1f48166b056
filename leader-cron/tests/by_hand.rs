//! Runs by hand: outside of the ticks, beside no other run, on the leader alone.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use common::{EVERY_SECOND, PATIENCE, elector, in_time, next, status, until};
use leader_core::store::{HistoryEvent, MemoryStore, RunOutcome as Ending, TickOp};
use leader_core::testing::{Fault, FaultyStore, FixedElector};
use leader_core::{Config, Elector, Event, StoreError, leader_only};
use leader_cron::{Explanation, Job, LedgerError, Overlap, RunOutcome, Running, Scheduler, Tick, TriggerError, cron};
use tokio::sync::{Notify, mpsc};

/// No test lives to see a second tick of it, nor, but for a second in a year, the first.
const NEVER: &str = "@yearly";

/// A job that tells its tick when it begins, and ends when it is let.
fn held(name: &str, schedule: &str, begins: &mpsc::UnboundedSender<Tick>, release: &Arc<Notify>) -> Job {
    let (begins, release) = (begins.clone(), Arc::clone(release));
    Job::new(name, schedule, move |tick| {
        let (begins, release) = (begins.clone(), Arc::clone(&release));
        async move {
            begins.send(tick).unwrap();
            release.notified().await;
        }
    })
}

fn events(history: &[leader_core::store::HistoryEntry]) -> Vec<&HistoryEvent> {
    history.iter().map(|entry| &entry.event).collect()
}

async fn triggered(
    jobs: &Arc<Running>,
    job: &'static str,
) -> tokio::task::JoinHandle<Result<leader_cron::LastRun, TriggerError>> {
    let jobs = Arc::clone(jobs);
    tokio::spawn(async move { jobs.trigger(job).await })
}

#[tokio::test]
async fn a_run_by_hand_is_told_written_down_and_consumes_no_tick() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let outcome = Arc::new(Mutex::new("fine"));
    let said = Arc::clone(&outcome);
    let job = Job::new("work", NEVER, move |tick: Tick| {
        let how = *said.lock().unwrap();
        async move {
            assert!(tick.is_manual() && tick.lease().is_some() && tick.missed() == 0 && tick.attempt() == 1);
            match how {
                "panics" => panic!("no toner"),
                "fails" => Err("no paper"),
                _ => Ok(()),
            }
        }
    });
    let jobs = Scheduler::new(&elector).job(job.group("nightly")).start().unwrap();
    for (how, expected, ending) in [
        ("fine", RunOutcome::Ok, Ending::Succeeded),
        ("fails", RunOutcome::Failed("no paper".to_owned()), Ending::Failed),
        ("panics", RunOutcome::Panicked("no toner".to_owned()), Ending::Panicked),
    ] {
        *outcome.lock().unwrap() = how;
        let before = SystemTime::now() - Duration::from_secs(1);
        let run = in_time(jobs.trigger("work")).await.unwrap();
        assert_eq!((&run.outcome, run.manual), (&expected, true));
        assert!(before <= run.tick && run.tick <= SystemTime::now());
        let history = jobs.history("work").await.unwrap();
        assert!(
            matches!(events(&history).last(), Some(HistoryEvent::Manual { instance, end })
                if instance == elector.instance_id() && end.outcome == ending),
            "{history:?}"
        );
        let why = jobs.explain("work", run.tick).await.unwrap();
        assert!(matches!(why, Explanation::Manual { .. }), "{why:?}");
    }
    assert_eq!(jobs.history("work").await.unwrap().len(), 3, "no tick was claimed");
    let status = status(&jobs, "work");
    assert_eq!((status.runs, status.failures, status.panics), (3, 1, 1));
}

#[tokio::test]
async fn a_follower_names_the_leader() {
    let store = MemoryStore::new();
    let (leader, follower) = (elector(&store, &["nightly"]).await, elector(&store, &["nightly"]).await);
    let job = || Job::new("work", NEVER, |_| async {}).group("nightly");
    let _of_leader = Scheduler::new(&leader).job(job()).start().unwrap();
    let jobs = Scheduler::new(&follower).job(job()).start().unwrap();
    let error = in_time(jobs.trigger("work")).await.unwrap_err();
    assert!(error.to_string().contains(&format!("trigger it on instance {}", leader.instance_id())), "{error}");
    assert!(matches!(error, TriggerError::NotLeading { .. }));
    assert_eq!(status(&jobs, "work").runs, 0);
}

#[tokio::test]
async fn ticks_wait_for_a_run_by_hand_and_are_then_missed_as_usual() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (begins, mut begun) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let jobs =
        Scheduler::new(&elector).job(held("work", EVERY_SECOND, &begins, &release).group("nightly")).start().unwrap();
    let jobs = Arc::new(jobs);
    // Beside a tick's run it does not begin.
    assert!(!next(&mut begun).await.is_manual());
    let error = in_time(jobs.trigger("work")).await.unwrap_err();
    assert!(matches!(&error, TriggerError::Busy { instance, .. } if instance == elector.instance_id()), "{error}");
    let first = loop {
        // In the moment after the run before it, until the next tick is claimed.
        release.notify_one();
        let run = triggered(&jobs, "work").await;
        let tick = next(&mut begun).await;
        if tick.is_manual() {
            break run;
        }
        assert!(matches!(in_time(run).await.unwrap(), Err(TriggerError::Busy { .. })));
    };
    let error = in_time(jobs.trigger("work")).await.unwrap_err();
    assert!(matches!(error, TriggerError::Busy { .. }), "{error}");
    // As time passes: no tick of these seconds is run.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(begun.is_empty());
    release.notify_one();
    assert_eq!(in_time(first).await.unwrap().unwrap().outcome, RunOutcome::Ok);
    let tick = next(&mut begun).await;
    assert!(!tick.is_manual() && tick.missed() >= 1, "{tick:?}");
    release.notify_one();
}

#[tokio::test]
async fn a_run_by_hand_does_not_begin_beside_one_that_is_on_elsewhere() {
    let store = MemoryStore::new();
    let faulty = FaultyStore::new(store.clone());
    let start = |config: Config| Elector::start(config.groups(["nightly"]).ttl(Duration::from_secs(3)));
    let first = start(Config::with_store(faulty.clone())).await.unwrap();
    let second = start(Config::with_store(store)).await.unwrap();
    let (begins, mut begun) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let job = |schedule: &str| held("work", schedule, &begins, &release).group("nightly");
    let _of_first = Scheduler::new(&first).job(job(EVERY_SECOND)).start().unwrap();
    let jobs = Scheduler::new(&second).job(job(NEVER)).start().unwrap();
    next(&mut begun).await;
    // The first can no longer renew its lease; what it says of its run still arrives.
    let cause = StoreError::Unavailable { attempted: "a test".to_owned(), cause: "a fault".to_owned() };
    faulty.inject_when(Fault::Fail(cause), |_| true);
    let mut news = second.subscribe("nightly").unwrap();
    in_time(async { while !matches!(news.next().await, Some(Event::Acquired { .. })) {} }).await;
    let error = in_time(jobs.trigger("work")).await.unwrap_err();
    assert!(matches!(&error, TriggerError::Busy { instance, .. } if instance == first.instance_id()), "{error}");
    release.notify_one();
    let run = in_time(async {
        loop {
            match jobs.trigger("work").await {
                // Until the first has told the end of its run.
                Err(TriggerError::Busy { .. }) => release.notify_one(),
                run => return run,
            }
        }
    });
    let (run, ()) = tokio::join!(run, async {
        while !next(&mut begun).await.is_manual() {}
        release.notify_one();
    });
    assert_eq!(run.unwrap().outcome, RunOutcome::Ok);
}

static BEGINS: OnceLock<mpsc::UnboundedSender<Tick>> = OnceLock::new();

/// Its lease being lost is nothing to it.
#[cron("@yearly")]
#[leader_only(group = "declared")]
async fn declared(tick: Tick) {
    BEGINS.get().unwrap().send(tick.clone()).unwrap();
    tick.lease().unwrap().lost().await;
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_run_by_hand_ends_with_its_lease_whatever_the_job_says_of_that() {
    let elector = FixedElector::leading(["nightly", "declared"]);
    let (begins, mut begun) = mpsc::unbounded_channel();
    BEGINS.set(begins.clone()).unwrap();
    let job = held("work", NEVER, &begins, &Arc::default()).group("nightly");
    let jobs = Arc::new(Scheduler::new(&elector).job(job).start().unwrap());
    for (job, group) in [("work", "nightly"), ("declared", "declared")] {
        let run = triggered(&jobs, job).await;
        assert!(next(&mut begun).await.is_manual());
        elector.follow(group);
        assert_eq!(in_time(run).await.unwrap().unwrap().outcome, RunOutcome::Cancelled);
        let history = jobs.history(job).await.unwrap();
        assert!(
            matches!(events(&history)[..], [HistoryEvent::Manual { end, .. }] if end.outcome == Ending::Cancelled),
            "{history:?}"
        );
        let error = in_time(jobs.trigger(job)).await.unwrap_err();
        assert!(matches!(error, TriggerError::NotLeading { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_run_by_hand_outlives_its_job_and_its_scheduler_and_is_still_alone() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (begins, mut begun) = mpsc::unbounded_channel();
    let (release, freely) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let by_hand = || held("work", NEVER, &begins, &release).group("nightly");
    let by_tick = |name| held(name, EVERY_SECOND, &begins, &freely).group("nightly");
    for (case, renamed) in [("added again", false), ("added by a new name", true), ("another scheduler", false)] {
        let jobs = Arc::new(Scheduler::new(&elector).job(by_hand()).start().unwrap());
        let run = triggered(&jobs, "work").await;
        assert!(next(&mut begun).await.is_manual(), "{case}");
        let job = if renamed { by_tick("new").renamed_from("work") } else { by_tick("work") };
        let others = if case == "another scheduler" {
            assert!(jobs.stop(Duration::ZERO).await.is_err(), "the run goes on");
            Arc::new(Scheduler::new(&elector).job(job).start().unwrap())
        } else {
            jobs.remove("work").unwrap();
            jobs.add(job).unwrap();
            Arc::clone(&jobs)
        };
        let name = if renamed { "new" } else { "work" };
        let error = in_time(others.trigger(name)).await.unwrap_err();
        assert!(matches!(error, TriggerError::Busy { .. }), "{case}: {error}");
        // As time passes: ticks wait.
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        assert!(begun.is_empty(), "{case}");
        release.notify_one();
        assert_eq!(in_time(run).await.unwrap().unwrap().outcome, RunOutcome::Ok);
        assert!(!next(&mut begun).await.is_manual(), "{case}");
        freely.notify_one();
        in_time(others.stop(PATIENCE)).await.unwrap();
        in_time(jobs.stop(PATIENCE)).await.unwrap();
        while begun.try_recv().is_ok() {}
    }
}

#[tokio::test]
async fn a_shutdown_waits_for_a_run_by_hand_and_none_begins_after_it() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (begins, mut begun) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let jobs = Scheduler::new(&elector)
        .job(held("work", NEVER, &begins, &release).group("nightly"))
        .job(held("everywhere", NEVER, &begins, &release))
        .start()
        .unwrap();
    let jobs = Arc::new(jobs);
    let run = triggered(&jobs, "work").await;
    let lease = next(&mut begun).await.lease().unwrap().clone();
    let ended = Arc::new(AtomicBool::new(false));
    let shutdown = {
        let (elector, ended) = (elector.clone(), Arc::clone(&ended));
        tokio::spawn(async move {
            elector.shutdown(PATIENCE).await.unwrap();
            assert!(ended.load(Ordering::SeqCst));
        })
    };
    in_time(lease.ending()).await;
    assert!(lease.is_held());
    ended.store(true, Ordering::SeqCst);
    release.notify_one();
    assert_eq!(in_time(run).await.unwrap().unwrap().outcome, RunOutcome::Ok);
    in_time(shutdown).await.unwrap();
    for job in ["work", "everywhere"] {
        let error = in_time(jobs.trigger(job)).await.unwrap_err();
        assert!(matches!(error, TriggerError::Stopped { .. }), "{error}");
    }
    assert!(begun.is_empty());
}

#[tokio::test]
async fn a_job_without_a_group_runs_here_and_not_twice_at_a_time() {
    let elector = FixedElector::following(["none"]);
    let (begins, mut begun) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let jobs = Scheduler::new(&elector).job(held("work", NEVER, &begins, &release)).start().unwrap();
    let jobs = Arc::new(jobs);
    let run = triggered(&jobs, "work").await;
    let tick = next(&mut begun).await;
    assert!(tick.is_manual() && tick.lease().is_none());
    let error = in_time(jobs.trigger("work")).await.unwrap_err();
    assert!(matches!(&error, TriggerError::Busy { .. }), "{error}");
    release.notify_one();
    assert!(in_time(run).await.unwrap().unwrap().manual);
    // As soon as it is told, another one may begin.
    release.notify_one();
    in_time(jobs.trigger("work")).await.unwrap();
    let error = in_time(jobs.trigger("nothing")).await.unwrap_err();
    assert!(matches!(error, TriggerError::Ledger(LedgerError::Unknown { .. })), "{error}");
}

#[tokio::test]
async fn who_no_longer_waits_does_not_stop_the_run() {
    let elector = FixedElector::leading(["nightly"]);
    let (begins, mut begun) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let job = held("work", NEVER, &begins, &release).group("nightly");
    let jobs = Arc::new(Scheduler::new(&elector).job(job).start().unwrap());
    let run = triggered(&jobs, "work").await;
    next(&mut begun).await;
    run.abort();
    release.notify_one();
    let status = until(&jobs, "work", |status| status.last_run.is_some()).await;
    assert_eq!(status.last_run.unwrap().outcome, RunOutcome::Ok);
}

#[tokio::test]
async fn a_paused_job_runs_by_hand_and_where_runs_overlap_beside_itself() {
    let elector = elector(&MemoryStore::new(), &["nightly"]).await;
    let (begins, mut begun) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let job = held("work", NEVER, &begins, &release).overlap(Overlap::Allow).group("nightly");
    let blocking = Job::blocking("blocking", NEVER, |tick: Tick| assert!(tick.is_manual())).group("nightly");
    let jobs = Scheduler::new(&elector).job(job).job(blocking).start().unwrap();
    let jobs = Arc::new(jobs);
    assert_eq!(in_time(jobs.trigger("blocking")).await.unwrap().outcome, RunOutcome::Ok);
    jobs.pause("blocking", SystemTime::now() + PATIENCE, "stocktaking").await.unwrap();
    assert_eq!(in_time(jobs.trigger("blocking")).await.unwrap().outcome, RunOutcome::Ok);
    let runs = [triggered(&jobs, "work").await, triggered(&jobs, "work").await];
    for _ in 0..2 {
        next(&mut begun).await;
    }
    release.notify_waiters();
    for run in runs {
        assert_eq!(in_time(run).await.unwrap().unwrap().outcome, RunOutcome::Ok);
    }
    assert_eq!(jobs.history("work").await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_ledger_that_cannot_be_read_is_told_at_once() {
    let faulty = FaultyStore::new(MemoryStore::new());
    let config = Config::with_store(faulty.clone()).groups(["nightly"]).ttl(Duration::from_secs(60));
    let elector = Elector::start(config).await.unwrap();
    let job = Job::new("work", NEVER, |_| async {}).group("nightly");
    let jobs = Scheduler::new(&elector).job(job).start().unwrap();
    in_time(jobs.trigger("work")).await.unwrap();
    let cause =
        StoreError::Refused { attempted: "a load".to_owned(), cause: "a fault".to_owned(), advice: "none".to_owned() };
    faulty.inject_for_ticks(Fault::FailCommands(cause), |command| command.op == TickOp::Load);
    let error = in_time(jobs.trigger("work")).await.unwrap_err();
    assert!(matches!(error, TriggerError::Ledger(LedgerError::Store { .. })), "{error}");
    assert_eq!(status(&jobs, "work").runs, 1);
    faulty.heal();
    assert_eq!(in_time(jobs.trigger("work")).await.unwrap().outcome, RunOutcome::Ok);
}
