//! A network between an elector and a store in memory: what was sent may arrive late, twice, or in vain, also when its sender
//! waits no longer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::unplugged;
use crate::identity::Incarnation;
use crate::store::{Announcer, Answers, Batch, Guarantees, LeaseStore, MemoryStore, Session, StoreFuture};

/// What becomes of calls. Shares are from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weather {
    pub(super) connecting: Connecting,
    /// The share of calls that fail at once.
    pub(super) failed: f64,
    /// Of requests that never arrive.
    pub(super) lost: f64,
    /// Of requests that are executed, and never answered.
    pub(super) unanswered: f64,
    /// Of requests that are executed once more, later.
    pub(super) twice: f64,
    /// Of commands that are executed and answered with an error.
    pub(super) garbled: f64,
    /// Of answers of which one is missing.
    pub(super) short: f64,
    /// The longest time that a request is under way, and that an answer is.
    pub(super) slow: Duration,
    /// Who connects now hears of no release.
    pub(super) mute: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Connecting {
    #[default]
    Works,
    Fails,
    Hangs,
}

#[derive(Clone)]
pub(super) struct Wire {
    memory: MemoryStore,
    weather: Arc<Mutex<Weather>>,
    connects: watch::Sender<u64>,
}

fn chance(share: f64) -> bool {
    fastrand::f64() < share
}

fn some_of(most: Duration) -> Duration {
    most.mul_f64(fastrand::f64())
}

impl Wire {
    pub(super) fn new(memory: MemoryStore) -> Self {
        Self { memory, weather: Arc::default(), connects: watch::Sender::new(0) }
    }

    pub(super) fn weather(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut self.weather.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn now(&self) -> Weather {
        *self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many connects were tried.
    pub(super) async fn connects(&self, so_many: u64) {
        self.connects.subscribe().wait_for(|tried| *tried >= so_many).await.unwrap();
    }

    async fn carry(self, batch: Batch, answer: oneshot::Sender<Answers>) {
        let weather = self.now();
        tokio::time::sleep(some_of(weather.slow)).await;
        let mut answers = self.memory.execute(batch.clone()).await.unwrap();
        if chance(weather.twice) {
            let memory = self.memory.clone();
            tokio::spawn(async move {
                tokio::time::sleep(some_of(weather.slow)).await;
                memory.execute(batch).await.unwrap();
            });
        }
        for one in &mut answers {
            if chance(weather.garbled) {
                *one = Err(unplugged());
            }
        }
        if chance(weather.short) {
            answers.pop();
        }
        tokio::time::sleep(some_of(weather.slow)).await;
        if !chance(weather.unanswered) {
            // Its sender may wait no longer.
            let _ = answer.send(answers);
        }
    }
}

impl LeaseStore for Wire {
    fn address(&self) -> String {
        self.memory.address()
    }

    fn guarantees(&self) -> Guarantees {
        self.memory.guarantees()
    }

    fn connect(&self, mut session: Session) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.connects.send_modify(|tried| *tried += 1);
            let weather = self.now();
            if weather.mute {
                session.announcer = Announcer::new().0;
            }
            match weather.connecting {
                Connecting::Works => self.memory.connect(session).await,
                Connecting::Fails => Err(unplugged()),
                Connecting::Hangs => std::future::pending().await,
            }
        })
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        Box::pin(async move {
            let weather = self.now();
            if chance(weather.failed) {
                return Err(unplugged());
            }
            let (answer, answered) = oneshot::channel();
            if !chance(weather.lost) {
                tokio::spawn(self.clone().carry(batch, answer));
            }
            match answered.await {
                Ok(answers) => Ok(answers),
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        self.memory.disconnect(incarnation)
    }
}
