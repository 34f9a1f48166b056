//! One process of a soak: it leads groups, runs their jobs, takes locks, and does work once.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use leader_core::store::RedisStore;
use leader_core::testing::election::KnownBad;
use leader_core::testing::redis_script::{Flaw, LockFlaw};
use leader_core::{Config, Elector, FreshStore, RenewalFailure};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use super::settings::Variant;
use crate::chaos::log::{Log, now_ns};
use crate::chaos::member as locks;
use crate::command::member;
use crate::cron_chaos::Line;
use crate::cron_chaos::jobs::Jobs;
use crate::cron_chaos::member::{listen, schedule};
use crate::process::sampler;
use crate::sim::rng::Rng;

/// What a member is told besides [`FINISH`](member::FINISH): to give a group up, whose name follows.
pub(super) const STEP_DOWN: &str = "step down ";
/// To give all groups up.
pub(super) const DRAIN: &str = "drain";
/// To compete again.
pub(super) const RESUME: &str = "resume";
/// To write down all that came before; a number follows.
pub(super) const FLUSH: &str = "flush ";

/// How long running work has to end.
const GRACE: Duration = Duration::from_secs(5);
/// A kill shortens a view by no more than the second of these.
const LOOKS: sampler::Pace = sampler::Pace { period: Duration::from_millis(1), flush: Duration::from_millis(40) };
/// Tasks that take locks; there are more things to do.
const TASKS: usize = 2;
const KEYS: usize = 3;
const PACE: locks::Pace = locks::Pace { step: Duration::from_millis(4), pause: Duration::from_millis(160) };
/// Each so long there is something new to be done once.
pub(super) const ONCE_EACH: Duration = Duration::from_secs(5);
/// What it is called; a number follows.
pub(super) const ONCE: &str = "once-";
/// How long it takes.
const ONCE_TAKES: Duration = Duration::from_millis(40);
/// For so long it counts as done: nobody asks any more when that is over.
const ONCE_KEPT: Duration = Duration::from_secs(90);

/// What the keys of a store that is somebody else's begin with.
pub(super) const PREFIX: &str = "soak:";
const LOCK_PREFIX: &str = "_soak:";

/// The one argument of a member, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Options {
    /// Its name, which is its instance id.
    pub(super) label: String,
    /// The store's URL.
    pub(super) store: String,
    /// The store is somebody else's.
    pub(super) foreign: bool,
    /// The groups besides `default`.
    pub(super) groups: Vec<String>,
    /// How long a lease lasts, and a lock.
    pub(super) ttl: Duration,
    /// How long a call of the store may take.
    pub(super) operation_timeout: Duration,
    /// Time from a failure to the next attempt.
    pub(super) retry: Duration,
    /// A failed renewal does not end a view before its deadline.
    pub(super) hold: bool,
    /// Its jobs.
    pub(super) jobs: Jobs,
    /// Chooses what its tasks do.
    pub(super) seed: u64,
    /// A rule that it breaks.
    pub(super) variant: Option<Variant>,
    /// Where it writes down what its jobs did.
    pub(super) log: PathBuf,
    /// Where it writes down what it leads.
    pub(super) views: PathBuf,
    /// Where it writes down what its tasks did that take locks.
    pub(super) locks: PathBuf,
}

/// Runs the member that `options` describe, until it is told to finish.
///
/// # Errors
/// Says why it cannot run.
pub fn run(options: &str) -> Result<(), Box<dyn Error>> {
    let options: Options = member::options(options)?;
    let log = Log::open(&options.log)?;
    listen(&log);
    member::note_stalls(&log);
    member::runtime()?.block_on(take_part(options, log, member::orders()?))
}

/// The store as members see it, and who asks what it knows.
pub(super) fn store(url: &str, foreign: bool) -> Config {
    let config = Config::new(url);
    if foreign { config.prefix(PREFIX).lock_prefix(LOCK_PREFIX) } else { config }
}

fn config(options: &Options) -> Result<Config, Box<dyn Error>> {
    let broken = |with: &dyn Fn(RedisStore) -> RedisStore| -> Result<Config, Box<dyn Error>> {
        let mut store = RedisStore::new(&options.store)?.fresh_store(FreshStore::Wait);
        if options.foreign {
            store = store.prefix(PREFIX)?.lock_prefix(LOCK_PREFIX)?;
        }
        Ok(Config::with_store(with(store)))
    };
    let mut config = match options.variant {
        Some(Variant::NoQuarantine) => broken(&|store| store.with_script_flaw(Flaw::NoQuarantine))?,
        Some(Variant::LockOneToken) => broken(&|store| store.with_lock_flaw(LockFlaw::OneToken))?,
        _ => store(&options.store, options.foreign),
    };
    config = config.groups(&options.groups).instance_id(&options.label).ttl(options.ttl).grace(GRACE);
    config = config.operation_timeout(options.operation_timeout).retry(options.retry);
    let no_deadline = options.variant == Some(Variant::NoDeadline);
    if no_deadline {
        config = config.known_bad(KnownBad::NoDeadline);
    }
    // What is broken is not to be mended by a demotion.
    if options.hold || options.variant.is_some() {
        config = config.renewal_failure(RenewalFailure::HoldUntilDeadline);
    }
    Ok(config)
}

async fn take_part(options: Options, log: Log, mut orders: UnboundedReceiver<String>) -> Result<(), Box<dyn Error>> {
    let elector = Elector::start(config(&options)?).await?;
    let views = sampler::Log::open(&options.views)?;
    let sampler = sampler::start(elector.clone(), options.label.clone(), views, LOOKS)?;
    let without_ledger = options.variant == Some(Variant::WithoutLedger);
    let running = schedule(&elector, &options.label, &log, &options.jobs, without_ledger)?;
    let finishing = Arc::new(AtomicBool::new(false));
    let tasks = take_locks(&elector, &options, &finishing)?;
    log.add(&Line::Started { at_ns: now_ns(), own_us: crate::cron_chaos::member::true_us() });
    while let Some(order) = orders.recv().await {
        if let Some(group) = order.strip_prefix(STEP_DOWN) {
            let (elector, group) = (elector.clone(), group.to_owned());
            // Not waited for: what comes next may be the end.
            tokio::spawn(async move {
                if let Err(error) = elector.step_down(&group).await {
                    tracing::warn!("stepping down: {error}");
                }
            });
        } else if let Some(number) = order.strip_prefix(FLUSH) {
            flush(&sampler, &log, number.parse()?)?;
        } else if order == DRAIN {
            let elector = elector.clone();
            tokio::spawn(async move {
                if let Err(error) = elector.drain(GRACE).await {
                    tracing::warn!("draining: {error}");
                }
            });
        } else if order == RESUME {
            elector.resume();
        } else {
            break;
        }
    }
    finishing.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await?;
    }
    // The store may be away: then the lease ends by itself.
    if let Err(error) = elector.shutdown(GRACE).await {
        tracing::warn!("the shutdown: {error}");
    }
    drop(running);
    // The last views are over, and are to be in the log.
    flush(&sampler, &log, 0)?;
    Ok(())
}

fn flush(sampler: &mpsc::Sender<sampler::Flush>, log: &Log, order: u64) -> Result<(), Box<dyn Error>> {
    let at_ns = now_ns();
    let (done, is_done) = mpsc::channel();
    sampler.send(done)?;
    is_done.recv()?;
    log.add(&Line::Flushed { order, at_ns });
    Ok(())
}

/// Tasks that take locks, and one that does what is to be done once; they end when they are told.
fn take_locks(
    elector: &Elector,
    options: &Options,
    finishing: &Arc<AtomicBool>,
) -> Result<Vec<JoinHandle<()>>, Box<dyn Error>> {
    let log = Log::open(&options.locks)?;
    let of_locks = locks::Options {
        label: options.label.clone(),
        store: options.store.clone(),
        lock_prefix: String::new(),
        ttl: options.ttl,
        operation_timeout: options.operation_timeout,
        retry: options.retry,
        work: locks::Work::Locks { keys: KEYS, tasks: TASKS, seed: options.seed },
        bad: options.variant.and_then(Variant::of_locks),
        log: options.locks.clone(),
    };
    let member = Arc::new(locks::Member::new(elector, of_locks, log, Arc::clone(finishing), PACE));
    let mut tasks = locks::wander(&member, KEYS, TASKS, options.seed);
    let mut rng = Rng::new(!options.seed);
    tasks.push(tokio::spawn(async move {
        let each = ONCE_EACH.as_nanos() as u64;
        while !member.is_finishing() {
            // The boot clock is everybody's: all mean the same.
            let key = format!("{ONCE}{}", now_ns() / each);
            member.once(&key, ONCE_TAKES, ONCE_KEPT).await;
            tokio::time::sleep(Duration::from_nanos(rng.below(ONCE_EACH / 3))).await;
        }
    }));
    Ok(tasks)
}
