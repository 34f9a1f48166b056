//! A `JobScheduler` of tokio-cron-scheduler wakes the jobs: what it loses, doubles or is too late for changes no run.

#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]
#![allow(clippy::print_stderr, reason = "the figures are part of the result")]

mod load;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use leader_core::store::MemoryStore;
use leader_core::{Config, Elector};
use leader_cron::{Job, Running, Scheduler, Tick};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio_cron_scheduler::{Job as Plain, JobScheduler};

const GROUP: &str = "work";
const GRACE: Duration = Duration::from_secs(20);
/// What is waited for comes within this, or never.
const PATIENCE: Duration = Duration::from_secs(20);

/// An instance that leads [`GROUP`], without jobs.
async fn leading() -> (Elector, Running) {
    let elector = Elector::start(Config::with_store(MemoryStore::new()).groups([GROUP])).await.unwrap();
    let mut changes = elector.subscribe(GROUP).unwrap();
    while !elector.is_leader(GROUP) {
        changes.next().await.unwrap();
    }
    let running = Scheduler::new(&elector).start().unwrap();
    (elector, running)
}

/// A `JobScheduler` that runs, with these jobs.
async fn started(jobs: impl IntoIterator<Item = Plain>) -> JobScheduler {
    let scheduler = JobScheduler::new().await.unwrap();
    for job in jobs {
        scheduler.add(job).await.unwrap();
    }
    scheduler.start().await.unwrap();
    scheduler
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The tick of each run, and by how much it is late.
type Runs = UnboundedReceiver<(i64, f64)>;

/// A job that tells of its runs.
fn told(name: &str, schedule: &str) -> (Job, Runs) {
    let (sender, runs) = unbounded_channel();
    let job = Job::new(name, schedule, move |tick: Tick| {
        // Who listens may have gone.
        let _ = sender.send((tick.unix_seconds(), now() - tick.unix_seconds() as f64));
        async {}
    });
    (job, runs)
}

async fn next(runs: &mut Runs) -> (i64, f64) {
    tokio::time::timeout(PATIENCE, runs.recv()).await.expect("a tick runs").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_scheduler_that_is_shut_down_delays_one_tick_and_loses_none() {
    let (elector, jobs) = leading().await;
    let (group, mut of_group) = told("of-a-group", "*/4 * * * * *");
    let (none, mut of_none) = told("of-none", "*/4 * * * * *");
    let wakers = [jobs.tokio_cron(group.group(GROUP)).unwrap(), jobs.tokio_cron(none).unwrap()];
    let mut scheduler = started(wakers).await;
    let mut seen = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        seen[0].push(next(&mut of_group).await);
        seen[1].push(next(&mut of_none).await);
    }
    // Long before the next tick.
    scheduler.shutdown().await.unwrap();
    for _ in 0..3 {
        seen[0].push(next(&mut of_group).await);
        seen[1].push(next(&mut of_none).await);
    }
    for runs in seen {
        eprintln!("ticks, and by how many seconds they were late: {runs:?}");
        let ticks: Vec<_> = runs.iter().map(|(tick, _)| tick - runs[0].0).collect();
        assert_eq!(ticks, [0, 4, 8, 12, 16, 20]);
        let late: Vec<_> = runs.iter().map(|(_, late)| *late).collect();
        assert!(late.iter().all(|late| *late >= 0.0), "none began early");
        // By rings; then without one, when a ring had been there before; then by the job's own timer.
        assert!(late[1].min(late[2]) < 1.9 && late[3] >= 1.9 && late[4].min(late[5]) < 1.9, "{late:?}");
    }
    jobs.stop(GRACE).await.unwrap();
    elector.shutdown(GRACE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_jobs_are_woken_and_none_needs_it() {
    let (elector, jobs) = leading().await;
    let (job, mut runs) = told("late", "*/2 * * * * *");
    jobs.add(job.group(GROUP)).unwrap();
    let scheduler = JobScheduler::new().await.unwrap();
    assert_eq!(jobs.wake_by(&scheduler).await.unwrap().len(), 1);
    // Added twice, and not started: it does not ring.
    assert_eq!(jobs.wake_by(&scheduler).await.unwrap().len(), 1);
    let (first, _) = next(&mut runs).await;
    // From here on it rings, twice for each tick.
    scheduler.start().await.unwrap();
    for after in 1..4 {
        assert_eq!(next(&mut runs).await.0, first + 2 * after);
    }
    // Its wakers ring on, for nobody.
    jobs.remove("late").unwrap();
    let (job, mut later) = told("later", "*/2 * * * * *");
    jobs.add(job.group(GROUP)).unwrap();
    for _ in 0..2 {
        next(&mut later).await;
    }
    assert!(runs.try_recv().is_err(), "it is out");
    jobs.stop(GRACE).await.unwrap();
    elector.shutdown(GRACE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_blocks_its_worker_holds_no_lock_of_the_job_scheduler() {
    // On a runtime of its own: a worker that is blocked may keep the timers of its runtime from going on.
    let theirs = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (elector, jobs) = leading().await;
    let (told_begun, mut begun) = unbounded_channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let blocks = Job::new("blocks", "* * * * * *", move |_: Tick| {
        let _ = told_begun.send(());
        // It blocks until the test is done with it.
        let _ = released.lock().unwrap().recv();
        async {}
    });
    let (ring, mut rings) = unbounded_channel();
    let plain = Plain::new("* * * * * *", move |_, _| ring.send(()).unwrap_or_default()).unwrap();
    let wakers = [jobs.tokio_cron(blocks.group(GROUP)).unwrap(), plain];
    let scheduler = theirs.spawn(started(wakers)).await.unwrap();
    begun.recv().await.unwrap();
    let goes_on = theirs.spawn(async move {
        while rings.try_recv().is_ok() {}
        for _ in 0..3 {
            tokio::time::timeout(PATIENCE, rings.recv()).await.expect("a job that is none of ours runs").unwrap();
            let code = &scheduler.context().job_code;
            drop(tokio::time::timeout(PATIENCE, code.write()).await.expect("nobody keeps the lock"));
        }
    });
    goes_on.await.unwrap();
    assert!(begun.try_recv().is_err(), "it was rung at each second, and begun once");
    drop(release);
    elector.shutdown(GRACE).await.unwrap();
    theirs.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_panics_is_woken_for_the_next_tick() {
    let (elector, jobs) = leading().await;
    let (sender, mut ticks) = unbounded_channel();
    let job = |name: &str, inside: bool| {
        let (name, sender) = (name.to_owned(), sender.clone());
        Job::new(name.clone(), "*/2 * * * * *", move |tick: Tick| {
            let _ = sender.send((name.clone(), tick.unix_seconds()));
            assert!(inside, "before there is a future");
            async move { assert!(!inside, "in it") }
        })
    };
    let panicking = [job("before", false), job("inside", true)];
    let scheduler = started(panicking.map(|job| jobs.tokio_cron(job.group(GROUP)).unwrap())).await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(tokio::time::timeout(PATIENCE, ticks.recv()).await.expect("a tick runs").unwrap());
    }
    for name in ["before", "inside"] {
        let ticks: Vec<_> = seen.iter().filter(|(of, _)| of == name).map(|(_, tick)| *tick).collect();
        assert!(ticks.len() >= 2 && ticks.windows(2).all(|pair| pair[1] == pair[0] + 2), "{name}: {seen:?}");
    }
    drop(scheduler);
    elector.shutdown(GRACE).await.unwrap();
    assert!(jobs.jobs().iter().all(|job| job.panics == job.runs && job.runs >= 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_waits_for_bodies_whatever_the_job_scheduler_does() {
    for by_elector in [false, true] {
        let (elector, jobs) = leading().await;
        let (begin, mut begun) = unbounded_channel();
        let ended = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ended);
        let job = Job::new("long", "* * * * * *", move |_: Tick| {
            let (release, released) = oneshot::channel::<()>();
            let _ = begin.send(release);
            let count = Arc::clone(&count);
            async move {
                // The test goes on, or has gone.
                let _ = released.await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut scheduler = started([jobs.tokio_cron(job.group(GROUP)).unwrap()]).await;
        let release = begun.recv().await.unwrap();
        scheduler.shutdown().await.unwrap();
        assert_eq!(ended.load(Ordering::SeqCst), 0, "it waits for nothing");
        let mut end = Box::pin(async {
            if by_elector { elector.shutdown(GRACE).await.unwrap() } else { jobs.stop(GRACE).await.unwrap() }
        });
        let waits = tokio::time::timeout(Duration::from_millis(1_500), &mut end).await;
        assert!(waits.is_err() && ended.load(Ordering::SeqCst) == 0, "the body is on");
        release.send(()).unwrap();
        end.await;
        assert_eq!(ended.load(Ordering::SeqCst), 1);
        assert!(begun.try_recv().is_err(), "no body began meanwhile");
        elector.shutdown(GRACE).await.unwrap();
    }
}
