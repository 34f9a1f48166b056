//! One process of a chaos: an elector whose tasks take locks, work under them, and give them back.
//!
//! A body counts as running at an instant only if that is certain. Each step notes when the library was given the processor
//! before it let the step begin: the library has looked at the lock since then, so the process that was stopped in between
//! is not accused of what no lock can prevent. A body that begins notes the time itself, later than all that let it.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use leader_core::store::RedisStore;
use leader_core::testing::election::KnownBad;
use leader_core::{Config, Elector, LockError};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::log::{How, Line, Log, nanos, now_ns};
use super::once;
use super::settings::Bad;
use crate::command::member;
use crate::sim::rng::Rng;

/// How long one waits who must get the lock: far longer than it takes.
pub const PATIENT: Duration = Duration::from_secs(60);
/// The elector's own ttl: its lease is not what is tested.
const ELECTOR_TTL: Duration = Duration::from_secs(5);
/// How fast tasks work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Between two steps of a body.
    pub(crate) step: Duration,
    /// Between two attempts, at the most.
    pub(crate) pause: Duration,
}

/// Nearly always at it.
const BUSY: Pace = Pace { step: Duration::from_micros(700), pause: Duration::from_millis(8) };

/// The one argument of a member, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// Its name.
    pub label: String,
    /// The store's URL.
    pub store: String,
    /// What the keys of locks begin with in a Redis server.
    pub lock_prefix: String,
    /// How long a lock outlives its holder.
    pub ttl: Duration,
    /// How long a call of the store may take.
    pub operation_timeout: Duration,
    /// Time from a failure to the next attempt.
    pub retry: Duration,
    /// What it does.
    pub work: Work,
    /// A rule that it breaks.
    pub bad: Option<Bad>,
    /// Where it logs.
    pub log: PathBuf,
}

/// What a member does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Takes locks, until it is told to finish.
    Locks {
        /// So many different ones.
        keys: usize,
        /// In so many tasks.
        tasks: usize,
        /// Chooses which, and how long.
        seed: u64,
    },
    /// Does what is to be done once, and ends.
    Once(once::Errand),
}

/// Runs the member that `options` describe. It finishes when its standard input says so, or ends.
///
/// # Errors
/// Says why it cannot run.
pub fn run(options: &str) -> Result<(), Box<dyn std::error::Error>> {
    let options: Options = member::options(options)?;
    tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_ansi(false).init();
    let log = Log::open(&options.log)?;
    member::note_stalls(&log);
    let finishing = Arc::new(AtomicBool::new(false));
    let (told, mut orders) = (Arc::clone(&finishing), member::orders()?);
    member::runtime()?.block_on(async {
        tokio::spawn(async move {
            // Whatever it says.
            let _ = orders.recv().await;
            told.store(true, Ordering::SeqCst);
        });
        let elector = start(&options).await?;
        log.add(&Line::Started { at_ns: now_ns() });
        match options.work.clone() {
            Work::Locks { keys, tasks, seed } => {
                let member = Arc::new(Member::new(&elector, options, log, finishing, BUSY));
                lock_and_unlock(&member, keys, tasks, seed).await?;
            }
            Work::Once(errand) => {
                // All begin at once, when all are there.
                while !finishing.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                once::run(&elector, &options, errand, &log).await?;
            }
        }
        elector.shutdown(ELECTOR_TTL).await?;
        Ok(())
    })
}

async fn start(options: &Options) -> Result<Elector, Box<dyn std::error::Error>> {
    let mut config = match options.bad.and_then(Bad::flaw) {
        // A flaw is of the script for Redis.
        Some(flaw) if options.store.starts_with("redis") => {
            let store = RedisStore::new(&options.store)?.lock_prefix(&options.lock_prefix)?;
            Config::with_store(store.with_lock_flaw(flaw))
        }
        _ => Config::new(&options.store).lock_prefix(&options.lock_prefix),
    };
    // No lease of a group is taken: nothing is left in the server.
    config = config.instance_id(format!("{}-{}", options.label, std::process::id())).ttl(ELECTOR_TTL).observe_only();
    config = config.operation_timeout(options.operation_timeout).retry(options.retry);
    Ok(Elector::start(config).await?)
}

pub(crate) struct Member {
    elector: Elector,
    options: Options,
    log: Log,
    finishing: Arc<AtomicBool>,
    attempts: AtomicU64,
    pace: Pace,
}

/// Until it is told to finish; then once more each lock, which must be had.
async fn lock_and_unlock(
    member: &Arc<Member>,
    keys: usize,
    tasks: usize,
    seed: u64,
) -> Result<(), tokio::task::JoinError> {
    for task in wander(member, keys, tasks, seed) {
        task.await?;
    }
    for key in 0..keys {
        let wish = Wish { key, wait: PATIENT, must: true, length: member.pace.step * 3, drops: None };
        member.attempt(wish).await;
    }
    Ok(())
}

/// Tasks that take locks until they are told to finish.
pub(crate) fn wander(member: &Arc<Member>, keys: usize, tasks: usize, seed: u64) -> Vec<JoinHandle<()>> {
    let wander = |task| {
        let (member, mut rng) = (Arc::clone(member), Rng::new(seed ^ task << 32));
        tokio::spawn(async move {
            while !member.is_finishing() {
                let wish = Wish::by_chance(&mut rng, keys, member.options.ttl);
                member.attempt(wish).await;
                tokio::time::sleep(Duration::from_micros(rng.below(member.pace.pause) / 1000)).await;
            }
        })
    };
    (0..tasks as u64).map(wander).collect()
}

/// What is asked for.
struct Wish {
    key: usize,
    wait: Duration,
    must: bool,
    length: Duration,
    /// The attempt is dropped after so long, whatever has become of it.
    drops: Option<Duration>,
}

impl Wish {
    fn by_chance(rng: &mut Rng, keys: usize, ttl: Duration) -> Self {
        let wait = if rng.chance(0.15) { Duration::ZERO } else { ttl.mul_f64(0.1 + 2.9 * rng.unit()) };
        // Most bodies are short; some outlive the ttl, and are renewed.
        let length = match rng.unit() {
            unit if unit < 0.03 => ttl.mul_f64(0.3 + 50.0 * unit),
            unit => Duration::from_millis(20).mul_f64(unit),
        };
        let drops = rng.chance(0.06).then(|| ttl.mul_f64(rng.unit()));
        Self { key: rng.index(keys), wait, must: false, length, drops }
    }
}

impl Member {
    pub(crate) fn new(elector: &Elector, options: Options, log: Log, finishing: Arc<AtomicBool>, pace: Pace) -> Self {
        Self { elector: elector.clone(), options, log, finishing, attempts: 0.into(), pace }
    }

    pub(crate) fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::SeqCst)
    }

    /// Does once what this key names, unless it is done: how it went.
    pub(crate) async fn once(&self, key: &str, length: Duration, keep: Duration) -> How {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let claim = self.elector.once(key).ttl(self.options.ttl).wait(Duration::ZERO).keep(keep);
        let body = Body::new(&self.log, attempt, length, self.pace.step);
        once::attempt(claim, key, body, Duration::ZERO, || Ok(())).await
    }

    async fn attempt(&self, wish: Wish) {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let key = format!("lock-{}", wish.key);
        let asked =
            Line::Asked { attempt, key: key.clone(), at_ns: now_ns(), wait_ns: nanos(wish.wait), must: wish.must };
        self.log.add(&asked);
        let body = Body::new(&self.log, attempt, wish.length, self.pace.step);
        let polled = Arc::clone(&body.polled);
        let work = Watched { polled, future: Box::pin(self.take(&key, wish.wait, body)) };
        let done = match wish.drops {
            None => Some(work.await),
            Some(after) => tokio::time::timeout(after, work).await.ok(),
        };
        let how = match done {
            None => How::Dropped,
            Some(Ok(())) => How::Done,
            Some(Err(LockError::Busy { .. })) => How::Busy,
            Some(Err(LockError::Lost { .. })) => How::Lost,
            Some(Err(error)) => How::Failed(error.to_string()),
        };
        self.log.add(&Line::Left { attempt, at_ns: now_ns(), how });
    }

    async fn take(&self, key: &str, wait: Duration, body: Body) -> Result<(), LockError> {
        let lock = self.elector.lock(key).ttl(self.options.ttl).wait(wait);
        match self.options.bad {
            Some(Bad::NoDeadline) => {
                lock.known_bad(KnownBad::NoDeadline).run(|lock| body.run(lock.token().get())).await
            }
            Some(Bad::NoCancel) => {
                let guard = lock.acquire().await?;
                body.run(guard.token().get()).await;
                guard.release().await
            }
            Some(Bad::FailsOpen) => {
                let unlocked = body.clone();
                let done = lock.run(|lock| body.run(lock.token().get())).await;
                if matches!(done, Err(LockError::Busy { .. } | LockError::Store { .. })) {
                    unlocked.run(0).await;
                }
                done
            }
            _ => lock.run(|lock| body.run(lock.token().get())).await,
        }
    }
}

/// What runs under a lock.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) log: Log,
    pub(super) attempt: u64,
    /// How long it works.
    length: Duration,
    /// Between two steps.
    step: Duration,
    /// When the library was last given the processor.
    pub(super) polled: Arc<AtomicU64>,
}

impl Body {
    pub(super) fn new(log: &Log, attempt: u64, length: Duration, step: Duration) -> Self {
        Self { log: log.clone(), attempt, length, step, polled: Arc::default() }
    }

    pub(super) async fn run(self, token: u64) {
        let (attempt, since_ns) = (self.attempt, self.polled.load(Ordering::Relaxed));
        self.log.add(&Line::Began { attempt, token, since_ns, at_ns: now_ns() });
        let begin = now_ns();
        while now_ns() - begin < nanos(self.length) {
            tokio::time::sleep(self.step).await;
            self.log.add(&Line::Step { attempt, since_ns: self.polled.load(Ordering::Relaxed) });
        }
    }
}

/// Notes each time when its future is given the processor.
pub(super) struct Watched<F> {
    pub(super) polled: Arc<AtomicU64>,
    pub(super) future: Pin<Box<F>>,
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.polled.store(now_ns(), Ordering::Relaxed);
        self.future.as_mut().poll(cx)
    }
}
