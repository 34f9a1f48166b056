//! Two hundred jobs beside bodies that block: where tokio-cron-scheduler alone doubles runs.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use leader_cron::{Job, Missed, Tick};
use tokio::runtime::{Builder, Runtime};
use tokio_cron_scheduler::{Job as Plain, JobScheduler};

use super::{GRACE, GROUP, leading, now};

const JOBS: usize = 200;
const PERIOD: i64 = 5;
const SCHEDULE: &str = "*/5 * * * * *";
const BLOCKING: usize = 3;
const BLOCK: Duration = Duration::from_millis(900);
/// So long after the last tick is a run of it waited for.
const SETTLE: Duration = Duration::from_secs(60);

/// How many ticks each job has: 12 are the minute in which the figures were first found.
fn rounds() -> i64 {
    std::env::var("LEADER_TEST_ROUNDS").map_or(3, |rounds| rounds.parse().expect("a number"))
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// What keeps the workers busy: plain jobs of the same `JobScheduler`.
async fn block(scheduler: &JobScheduler) {
    for _ in 0..BLOCKING {
        let block = Plain::new_async("* * * * * *", |_, _| Box::pin(async { std::thread::sleep(BLOCK) }));
        scheduler.add(block.unwrap()).await.unwrap();
    }
}

/// How often each job ran for each tick.
#[derive(Debug, Default)]
struct Tally(BTreeMap<(usize, i64), usize>);

impl Tally {
    fn add(&mut self, (job, tick): (usize, i64)) {
        *self.0.entry((job, tick)).or_default() += 1;
    }

    /// What is expected, ran, was doubled, and lost.
    fn figures(&self, ticks: &[i64]) -> [usize; 4] {
        let ran = |job, tick: &i64| self.0.get(&(job, *tick)).copied().unwrap_or_default();
        let runs: Vec<_> = (0..JOBS).flat_map(|job| ticks.iter().map(move |tick| ran(job, tick))).collect();
        let doubled = runs.iter().map(|runs| runs.saturating_sub(1)).sum();
        [runs.len(), runs.iter().sum(), doubled, runs.iter().filter(|runs| **runs == 0).count()]
    }
}

/// The ticks that count: those after now.
fn ticks() -> Vec<i64> {
    let first = (now() as i64).div_euclid(PERIOD) + 1;
    (0..rounds()).map(|round| (first + round) * PERIOD).collect()
}

/// Takes runs in until all ticks have run, or the time is over.
fn collect(runs: &Receiver<(usize, i64)>, tally: &mut Tally, ticks: &[i64], until: f64) {
    let end = Instant::now() + Duration::from_secs_f64((until - now()).max(0.0));
    while tally.figures(ticks)[3] > 0 {
        match runs.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(run) => tally.add(run),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// tokio-cron-scheduler alone. It knows no intended tick, so each run counts for the tick before it.
fn theirs() -> [usize; 4] {
    let runtime = runtime();
    let (sender, runs) = channel();
    let job = |number, sender: Sender<_>| {
        Plain::new_async(SCHEDULE, move |_, _| {
            let _ = sender.send((number, (now() as i64).div_euclid(PERIOD) * PERIOD));
            Box::pin(async {})
        })
    };
    let ticks = runtime.block_on(async {
        let scheduler = JobScheduler::new().await.unwrap();
        for number in 0..JOBS {
            scheduler.add(job(number, sender.clone()).unwrap()).await.unwrap();
        }
        block(&scheduler).await;
        scheduler.start().await.unwrap();
        ticks()
    });
    // All runs of the last tick, those that are doubled too, begin before the next.
    std::thread::sleep(Duration::from_secs_f64((ticks[ticks.len() - 1] + PERIOD) as f64 - now()));
    let mut tally = Tally::default();
    runs.try_iter().for_each(|run| tally.add(run));
    runtime.shutdown_background();
    tally.figures(&ticks)
}

/// The same jobs by the ledger, woken by the same `JobScheduler` under the same load.
fn ours() -> [usize; 4] {
    let runtime = runtime();
    let (sender, runs) = channel();
    let job = |number, sender: Sender<_>| {
        let job = Job::new(format!("job-{number}"), SCHEDULE, move |tick: Tick| {
            let _ = sender.send((number, tick.unix_seconds()));
            async {}
        });
        // By default, of two ticks that are due at a time the newer would run for both.
        job.group(GROUP).missed(Missed::All)
    };
    let (elector, jobs, mut scheduler, ticks) = runtime.block_on(async {
        let (elector, jobs) = leading().await;
        let scheduler = JobScheduler::new().await.unwrap();
        for number in 0..JOBS {
            scheduler.add(jobs.tokio_cron(job(number, sender.clone())).unwrap()).await.unwrap();
        }
        block(&scheduler).await;
        scheduler.start().await.unwrap();
        (elector, jobs, scheduler, ticks())
    });
    let mut tally = Tally::default();
    let end = (ticks[ticks.len() - 1] + PERIOD) as f64;
    collect(&runs, &mut tally, &ticks, end);
    let behind = tally.figures(&ticks)[3];
    // What is late by now is not late for ever.
    runtime.block_on(scheduler.shutdown()).unwrap();
    collect(&runs, &mut tally, &ticks, end + SETTLE.as_secs_f64());
    runtime.block_on(async {
        jobs.stop(GRACE).await.unwrap();
        elector.shutdown(GRACE).await.unwrap();
    });
    // Nothing runs any more.
    runs.try_iter().for_each(|run| tally.add(run));
    runtime.shutdown_background();
    eprintln!("woken by it: {behind} runs were still to come at the end of the load");
    tally.figures(&ticks)
}

#[test]
fn no_tick_is_lost_or_doubled_where_the_job_scheduler_alone_does() {
    // What theirs is depends on the machine: it is shown, and nothing is asked of it.
    let [expected, ran, doubled, lost] = theirs();
    eprintln!("tokio-cron-scheduler alone: expected {expected} runs, got {ran}: {doubled} doubled, {lost} lost");
    let [expected, ran, doubled, lost] = ours();
    eprintln!("woken by it: expected {expected} runs, got {ran}: {doubled} doubled, {lost} lost");
    assert_eq!((ran, doubled, lost), (expected, 0, 0));
}
