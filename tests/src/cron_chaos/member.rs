//! One process of a chaos of jobs: an elector and a scheduler, whose bodies write down when they begin and end.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leader_core::{Config, Elector, Event, Role};
use leader_cron::{CronError, Job, Running, Scheduler, Tick};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::jobs::{Facts, GROUP, Jobs};
use super::line::Line;
use crate::chaos::log::{Log, now_ns};
use crate::command::member;

/// What a member is told besides [`FINISH`](crate::command::member::FINISH): to give leadership up.
pub const STEP_DOWN: &str = "step down";
/// How long bodies have to end.
const GRACE: Duration = Duration::from_secs(5);

/// The one argument of a member, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// Its name, which is its instance id.
    pub label: String,
    /// The store's URL.
    pub store: String,
    /// How long a lease lasts.
    pub ttl: Duration,
    /// How long a call of the store may take.
    pub operation_timeout: Duration,
    /// Time from a failure to the next attempt.
    pub retry: Duration,
    /// Its jobs.
    pub jobs: Jobs,
    /// They have no ledger: each member wakes by its own clock, and asks who leads.
    pub without_ledger: bool,
    /// Where it logs.
    pub log: PathBuf,
}

/// Runs the member that `options` describe, until it is told to finish.
///
/// # Errors
/// Says why it cannot run.
pub fn run(options: &str) -> Result<(), Box<dyn std::error::Error>> {
    let options: Options = member::options(options)?;
    let log = Log::open(&options.log)?;
    listen(&log);
    member::note_stalls(&log);
    member::runtime()?.block_on(take_part(options, log, member::orders()?))
}

/// Prints what is logged, and writes down what it tells of ticks.
pub(crate) fn listen(log: &Log) {
    let printed = tracing_subscriber::fmt::layer().with_ansi(false);
    let level = tracing_subscriber::filter::LevelFilter::INFO;
    tracing_subscriber::registry().with(printed).with(Listener(log.clone())).with(level).init();
}

async fn take_part(
    options: Options,
    log: Log,
    mut orders: UnboundedReceiver<String>,
) -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::new(&options.store).groups([GROUP]).instance_id(&options.label).ttl(options.ttl).grace(GRACE);
    let config = config.operation_timeout(options.operation_timeout).retry(options.retry);
    let elector = Elector::start(config).await?;
    let mut events = elector.subscribe(GROUP)?;
    let leads = log.clone();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let Event::Now(Role::Leader { term }) | Event::Acquired { term } = event {
                leads.add(&Line::Leads { term: term.get(), at_ns: now_ns() });
            }
        }
    });
    let running = schedule(&elector, &options.label, &log, &options.jobs, options.without_ledger)?;
    log.add(&Line::Started { at_ns: now_ns(), own_us: own_us() });
    while let Some(order) = orders.recv().await {
        match order.as_str() {
            STEP_DOWN => {
                let elector = elector.clone();
                // Not waited for: what comes next may be the end.
                tokio::spawn(async move {
                    if let Err(error) = elector.step_down(GROUP).await {
                        tracing::warn!("stepping down: {error}");
                    }
                });
            }
            _ => break,
        }
    }
    // The store may be away: then the lease ends by itself.
    if let Err(error) = elector.shutdown(GRACE).await {
        tracing::warn!("the shutdown: {error}");
    }
    drop(running);
    Ok(())
}

/// Begins the jobs, whose bodies write to the log.
pub(crate) fn schedule(
    elector: &Elector,
    instance: &str,
    log: &Log,
    jobs: &Jobs,
    without_ledger: bool,
) -> Result<Running, CronError> {
    let bodies = Arc::new(Bodies { log: log.clone(), instance: instance.to_owned(), runs: AtomicU64::new(0) });
    let jobs = jobs.list().into_iter().enumerate();
    let jobs = jobs.map(
        |(index, facts)| {
            if without_ledger { bodies.ungated(index, facts, elector) } else { bodies.job(index, facts) }
        },
    );
    jobs.fold(Scheduler::new(elector), Scheduler::job).start()
}

/// What this host's wall clock shows, in microseconds since 1970; read past the C library, whose clock may be a fake.
#[must_use]
pub fn true_us() -> i64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

/// What this process takes it for.
fn own_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

struct Bodies {
    log: Log,
    instance: String,
    runs: AtomicU64,
}

impl Bodies {
    /// The job as it should be.
    fn job(self: &Arc<Self>, index: usize, facts: Facts) -> Job {
        let (bodies, kind, name, group) = (Arc::clone(self), facts.kind, facts.name.clone(), facts.group.clone());
        let work = move |tick: Tick| {
            let term = tick.lease().map_or(0, |lease| lease.term().get());
            Arc::clone(&bodies).run(index, facts.clone(), tick, term)
        };
        let job = Job::new(name, kind.schedule, work).group(&group);
        job.missed(kind.missed).delivery(kind.delivery).overlap(kind.overlap)
    }

    /// The job as many write it: woken on every instance, by a clock of its own.
    fn ungated(self: &Arc<Self>, index: usize, facts: Facts, elector: &Elector) -> Job {
        let (bodies, elector, kind, name) = (Arc::clone(self), elector.clone(), facts.kind, facts.name.clone());
        let work = move |tick: Tick| {
            let (bodies, elector, facts) = (Arc::clone(&bodies), elector.clone(), facts.clone());
            let group = facts.group.clone();
            async move {
                let body = |lease: leader_core::Lease| bodies.run(index, facts, tick, lease.term().get());
                // A follower leaves it to the leader.
                let _ = elector.run_if_leader(&group, body).await;
            }
        };
        Job::new(name, kind.schedule, work)
    }

    async fn run(self: Arc<Self>, index: usize, facts: Facts, tick: Tick, term: u64) {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let length = facts.length(index, tick.unix_seconds());
        self.log.add(&Line::Began {
            run,
            job: facts.name,
            tick: tick.unix_seconds(),
            attempt: tick.attempt(),
            missed: tick.missed(),
            term,
            instance: self.instance.clone(),
            at_ns: now_ns(),
            true_us: true_us(),
            own_us: own_us(),
        });
        let mut end = End { log: &self.log, run, reached: false };
        tokio::time::sleep(length).await;
        end.reached = true;
    }
}

/// Written when a body is over, also if it was dropped half-way.
struct End<'a> {
    log: &'a Log,
    run: u64,
    reached: bool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let (run, at_ns) = (self.run, now_ns());
        self.log.add(&if self.reached { Line::Ended { run, at_ns } } else { Line::Cut { run, at_ns } });
    }
}

/// Writes down, at once, what the library tells its log of ticks that are not run.
struct Listener(Log);

impl<S: tracing::Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        if let (Some(job), Some(tick), Some(count)) = (said.job, said.tick, said.missed) {
            self.0.add(&Line::Told { job, tick, count, text: said.text });
        }
    }
}

#[derive(Default)]
struct Said {
    job: Option<String>,
    tick: Option<i64>,
    missed: Option<u64>,
    text: String,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "job" {
            self.job = Some(value.to_owned());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "tick" {
            self.tick = Some(value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "missed" {
            self.missed = Some(value);
        }
    }
}
