//! The driver in paused time, on stores that fail: hours pass in a moment, and one seed is one course.
//!
//! The loop is the one that runs in life. Only its thread is the test's, and its clock the one of a runtime whose time goes on
//! to the next timer as soon as every task waits.

mod chance;
mod ending;
mod faults;
mod groups;
mod starting;
mod wire;

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::bootstrap::prepare;
use crate::clock::{BootInstant, Clock};
use crate::shared::Phase;
use crate::store::{LeaseStore, MemoryStore};
use crate::testing::FaultyStore;
use crate::{Config, Elector, Event, StoreError, Subscription};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

// What follows from the ttl of 10 s that all here have.
const TTL: Duration = Duration::from_secs(10);
const GUARD: Duration = Duration::from_millis(10);
const HEARTBEAT: Duration = Duration::from_nanos(3_333_333_333);
const RETRY: Duration = SECOND;
const OPERATION_TIMEOUT: Duration = SECOND;

/// No course here takes so long: one that does waits for what never comes.
const ENDLESS: Duration = Duration::from_secs(86_400);

/// A store in memory, and the clock that it shares with the electors.
#[derive(Clone)]
struct Stage {
    clock: Clock,
    memory: MemoryStore,
}

/// Runs `course` in paused time; all that is random follows from the seed.
#[allow(clippy::print_stdout, reason = "a test that fails shows its seed")]
fn stage<F: Future<Output = ()>>(seed: u64, course: impl FnOnce(Stage) -> F) {
    println!("seed {seed}");
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let clock = Clock::Tokio(tokio::time::Instant::now());
        let stage = Stage { memory: MemoryStore::on(clock.clone()), clock };
        tokio::time::timeout(ENDLESS, course(stage)).await.expect("what the course waits for never comes");
    });
}

impl Stage {
    fn now(&self) -> BootInstant {
        self.clock.now()
    }

    /// Tokio's timers are up to two milliseconds late.
    fn is_just_after(&self, instant: BootInstant) -> bool {
        (instant..=instant.saturating_add(MS * 2)).contains(&self.now())
    }

    fn faulty(&self) -> FaultyStore {
        FaultyStore::new(self.memory.clone())
    }

    /// An elector that has just begun, and its driver.
    fn begin(&self, store: impl LeaseStore, configured: impl FnOnce(Config) -> Config) -> (Elector, JoinHandle<()>) {
        let mut config = configured(Config::with_store(store).ttl(TTL));
        config.clock = self.clock.clone();
        let (elector, setup) = prepare(&config, false).unwrap();
        // The thread that logs lives by another clock: no end waits for it.
        elector.0.log_written.lock().unwrap().take();
        (elector, tokio::spawn(super::live(setup)))
    }

    /// An elector whose start is over.
    async fn start(&self, store: impl LeaseStore, configured: impl FnOnce(Config) -> Config) -> Elector {
        let (elector, _driver) = self.begin(store, configured);
        self.started(&elector).await;
        elector
    }

    async fn started(&self, elector: &Elector) {
        let mut progress = elector.shared().progress.subscribe();
        let end = progress.wait_for(|p| p.phase != Phase::Starting).await.unwrap().phase;
        assert_eq!(end, Phase::Running);
    }

    /// The time that `what` takes.
    async fn timed<T>(&self, what: impl Future<Output = T>) -> (T, Duration) {
        let begun = self.now();
        let done = what.await;
        (done, self.now().saturating_since(begun))
    }
}

fn as_it_is(config: Config) -> Config {
    config
}

fn unplugged() -> StoreError {
    StoreError::Unavailable { attempted: "a call".to_owned(), cause: "somebody pulled the plug".to_owned() }
}

async fn until(events: &mut Subscription, wanted: impl Fn(&Event) -> bool) -> Event {
    loop {
        let event = events.next().await.expect("the elector lives");
        if wanted(&event) {
            return event;
        }
    }
}

/// Waits for the next acquisition.
async fn until_acquired(events: &mut Subscription) {
    until(events, |event| matches!(event, Event::Acquired { .. })).await;
}

async fn until_lost(events: &mut Subscription) -> crate::LossReason {
    match until(events, |event| matches!(event, Event::Lost { .. })).await {
        Event::Lost { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}
