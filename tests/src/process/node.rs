//! The program `node`: one instance in a process of its own.

use std::io::BufRead;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leader_core::store::RedisStore;
use leader_core::{
    BootInstant, Config, Elector, FreshStore, Lease, LockError, LockGuard, Reclaim, RenewalFailure, StoreUrlError,
    leader_only,
};
use leader_examples::history::Run;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::jobs;
use super::patience::PATIENCE;
use super::sampler::{self, Flush, Log};
use super::talk::{Command, Held, Options, Told};

const WORKERS: usize = 2;
const GRACE: Duration = Duration::from_secs(5);
/// So many locks are taken at once.
const AT_ONCE: usize = 100;

/// Runs the node that `arguments` describe, until its standard input closes.
///
/// # Errors
/// Says why it cannot run.
pub fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    let options: Options = serde_json::from_str(&arguments.next().ok_or("give the options as one JSON argument")?)?;
    // A parent that is killed closes our input, but a node that is stopped would not read that.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build()?;
    let log = Log::open(&options.log)?;
    let elector = match runtime.block_on(leader_core::bootstrap(config(&options)?)) {
        Ok(elector) => elector,
        Err(error) => {
            Told::NotStarted { error: error.to_string() }.tell();
            return Ok(());
        }
    };
    Told::Started { instance: elector.instance_id().to_string() }.tell();
    let sampler = sampler::start(elector.clone(), options.label.clone(), log.clone())?;
    tell_events(&elector)?;
    // They run for as long as this is kept.
    let _jobs = {
        let _inside = runtime.enter();
        jobs::start(&elector, &options.jobs)?
    };
    let node =
        Node { elector, label: options.label, log, runtime, sampler, flooded: Arc::default(), kept: Mutex::default() };
    for line in std::io::stdin().lock().lines() {
        let outcome = node.obey(serde_json::from_str(&line?)?);
        Told::Answer { outcome }.tell();
    }
    // Not by returning: that would wait for workers that may be blocked.
    std::process::exit(0)
}

fn config(options: &Options) -> Result<Config, StoreUrlError> {
    let fresh = if options.trust_fresh_store { FreshStore::Trust } else { FreshStore::Wait };
    let mut config = match options.script_flaw {
        None => Config::new(&options.store).fresh_store(fresh).replicas(options.replicas),
        Some(flaw) => {
            let store = RedisStore::new(&options.store)?.fresh_store(fresh).replicas(options.replicas);
            Config::with_store(store.with_script_flaw(flaw))
        }
    };
    config = config.ttl(options.ttl).groups(&options.groups).grace(GRACE);
    if let Some(heartbeat) = options.heartbeat {
        config = config.heartbeat(heartbeat);
    }
    if let Some(retry) = options.retry {
        config = config.retry(retry);
    }
    if let Some(timeout) = options.operation_timeout {
        config = config.operation_timeout(timeout);
    }
    if let Some(id) = &options.stable_id {
        config = config.instance_id(id);
    }
    if options.reclaim_after_deadline {
        config = config.reclaim(Reclaim::AfterDeadline);
    }
    if options.hold_until_deadline {
        config = config.renewal_failure(RenewalFailure::HoldUntilDeadline);
    }
    if let Some(variant) = options.known_bad {
        config = config.known_bad(variant);
    }
    Ok(config)
}

/// One thread a group: the runtime's workers may be blocked.
fn tell_events(elector: &Elector) -> Result<(), Box<dyn std::error::Error>> {
    for group in elector.groups() {
        let mut events = elector.subscribe(group.as_str())?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        std::thread::Builder::new().name(format!("events of {group}")).spawn(move || {
            while let Some(event) = runtime.block_on(events.next()) {
                let event = serde_json::to_value(&event).expect("events can be serialized");
                Told::Event { group: group.to_string(), event }.tell();
            }
        })?;
    }
    Ok(())
}

struct Node {
    elector: Elector,
    label: String,
    log: Log,
    runtime: Runtime,
    sampler: Sender<Flush>,
    /// Lines of the flood that were written.
    flooded: Arc<AtomicU64>,
    kept: Mutex<Option<Kept>>,
}

/// What a node writes under.
enum Kept {
    Lease(Lease),
    Lock(LockGuard),
}

impl Node {
    /// On the main thread, which is no worker.
    fn obey(&self, command: Command) -> Result<Value, String> {
        let elector = &self.elector;
        match command {
            Command::StepDown { group } => self.wait(elector.step_down(&group)),
            Command::Drain => self.wait(elector.drain(GRACE)),
            Command::Resume => {
                elector.resume();
                Ok(Value::Null)
            }
            Command::Shutdown => self.wait(elector.shutdown(GRACE)),
            Command::Status => self.status(),
            Command::LeaderId { group } => {
                let asked = async { elector.leader_id(&group).await.map(|id| id.map(|id| id.to_string())) };
                self.wait(asked)
            }
            Command::Lease { group } => {
                let held = elector.lease(&group).map(|lease| {
                    let deadline_ns = lease.deadline().as_nanos();
                    Held { term: lease.term().get(), deadline_ns }
                });
                serde_json::to_value(held).map_err(|error| error.to_string())
            }
            Command::Work => {
                let (label, log) = (self.label.clone(), self.log.clone());
                self.runtime.spawn(async move {
                    steps(&label, &log).await;
                    Told::WorkEnded.tell();
                });
                Ok(Value::Null)
            }
            Command::KeepLease => {
                let lease = elector.lease("default");
                let token = lease.as_ref().map(|lease| lease.term().get());
                *self.kept() = lease.map(Kept::Lease);
                Ok(json!(token))
            }
            Command::KeepLock { key, ttl } => {
                // It would be busy by itself.
                drop(self.kept().take());
                let taken = self.runtime.handle().block_on(elector.lock(key).ttl(ttl).acquire());
                let guard = taken.map_err(|error| error.to_string())?;
                let token = guard.token().get();
                *self.kept() = Some(Kept::Lock(guard));
                Ok(json!(token))
            }
            Command::Write { key, value } => match &*self.kept() {
                Some(Kept::Lease(lease)) => self.wait(elector.fence().set(lease, key, value)),
                Some(Kept::Lock(guard)) => self.wait(elector.fence().set(guard, key, value)),
                None => Err("nothing is kept".to_owned()),
            },
            Command::Locks { count } => self.wait(take_and_drop(elector, count)),
            Command::BlockWorkers { time } => {
                self.block_workers(time);
                Ok(Value::Null)
            }
            Command::Flood => self.flood(),
            Command::Flush => {
                let (done, is_done) = channel();
                self.sampler.send(done).map_err(|error| error.to_string())?;
                is_done.recv().map(|()| Value::Null).map_err(|error| error.to_string())
            }
            Command::Exit => std::process::exit(0),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<T: serde::Serialize, E: std::fmt::Display>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Value, String> {
        let done = self.runtime.handle().block_on(work).map_err(|error| error.to_string())?;
        serde_json::to_value(done).map_err(|error| error.to_string())
    }

    fn status(&self) -> Result<Value, String> {
        let mut status = serde_json::to_value(self.elector.status()).map_err(|error| error.to_string())?;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
        status["wall_clock_s"] = json!(wall.as_secs());
        status["boot_clock_ns"] = json!(BootInstant::now().as_nanos());
        status["flooded"] = json!(self.flooded.load(Ordering::SeqCst));
        status["live"] = json!(self.elector.live().is_ok());
        Ok(status)
    }

    /// Returns when every worker is blocked.
    fn block_workers(&self, time: Duration) {
        let barrier = Arc::new(Barrier::new(WORKERS + 1));
        for _ in 0..WORKERS {
            let barrier = Arc::clone(&barrier);
            self.runtime.spawn(async move {
                barrier.wait();
                std::thread::sleep(time);
            });
        }
        barrier.wait();
        self.runtime.spawn(async {
            Told::WorkersFree { at_ns: BootInstant::now().as_nanos() }.tell();
        });
    }

    fn flood(&self) -> Result<Value, String> {
        let flooded = Arc::clone(&self.flooded);
        let flood = move || {
            loop {
                tracing::info!("a line that nobody reads: {}", "x".repeat(1000));
                flooded.fetch_add(1, Ordering::SeqCst);
            }
        };
        let thread = std::thread::Builder::new().name("flood".to_owned()).spawn(flood);
        thread.map(|_| Value::Null).map_err(|error| error.to_string())
    }
}

/// Some are waited for, and some are not only dropped.
async fn take_and_drop(elector: &Elector, count: u32) -> Result<(), LockError> {
    for first in (0..count).step_by(AT_ONCE) {
        let mut taken = JoinSet::<Result<(), LockError>>::new();
        for n in (first..count).take(AT_ONCE) {
            let key = if n % 50 == 0 { "shared".to_owned() } else { format!("lock-{n}") };
            let lock = elector.lock(key).wait(PATIENCE);
            taken.spawn(async move {
                let guard = lock.acquire().await?;
                if n % 3 == 0 {
                    guard.release().await?;
                }
                Ok(())
            });
        }
        while let Some(done) = taken.join_next().await {
            done.expect("it does not panic")?;
        }
    }
    Ok(())
}

/// Gated work in small steps. Each is logged as a run that began when the step did.
#[leader_only(on_loss = "cancel")]
async fn steps(label: &str, log: &Log) -> Option<()> {
    let term = leader_core::lease()?.term().get();
    Told::WorkBegan { term }.tell();
    for tick in 0.. {
        let now = BootInstant::now().as_nanos();
        let (job, instance) = ("steps".to_owned(), label.to_owned());
        log.add(Run { job, tick, instance, term, began_ns: now, ended_ns: now });
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    None
}
