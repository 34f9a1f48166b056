//! A store whose health a test decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use leader_core::store::{Answers, Batch, Examination, Guarantees, LeaseStore, MemoryStore, Session, StoreFuture};
use leader_core::{Finding, GroupName, Incarnation, StoreError};
use tokio::sync::watch;

/// What becomes of an examination.
#[derive(Debug, Clone)]
pub(crate) enum Health {
    Finds(Vec<Finding>),
    Fails(StoreError),
    Hangs,
    Panics,
}

/// A store in memory that is as well as it was told. Clones are the same.
#[derive(Clone)]
pub(crate) struct Patient {
    memory: MemoryStore,
    health: Arc<Mutex<Health>>,
    begun: watch::Sender<usize>,
    described: watch::Sender<usize>,
    /// What its elector did for the group `default`, by the last examination.
    work: Arc<Mutex<Vec<String>>>,
}

impl Patient {
    pub(crate) fn new(health: Health) -> Self {
        let [begun, described] = [0, 0].map(watch::Sender::new);
        Self {
            memory: MemoryStore::new(),
            health: Arc::new(Mutex::new(health)),
            begun,
            described,
            work: Arc::default(),
        }
    }

    /// From the next examination on.
    pub(crate) fn is_now(&self, health: Health) {
        *self.health.lock().unwrap() = health;
    }

    /// Waits until so many examinations have begun.
    pub(crate) async fn examined(&self, times: usize) {
        self.begun.subscribe().wait_for(|&begun| begun >= times).await.unwrap();
    }

    /// Waits until it was told so often that its elector does something else.
    pub(crate) async fn described(&self, times: usize) {
        self.described.subscribe().wait_for(|&described| described >= times).await.unwrap();
    }

    pub(crate) fn descriptions(&self) -> usize {
        *self.described.borrow()
    }

    pub(crate) fn work(&self) -> Vec<String> {
        self.work.lock().unwrap().clone()
    }

    pub(crate) fn examinations(&self) -> usize {
        *self.begun.borrow()
    }
}

impl LeaseStore for Patient {
    fn address(&self) -> String {
        "patient:".to_owned()
    }

    fn guarantees(&self) -> Guarantees {
        // Wherever the tests run, there is nothing to find about the place.
        Guarantees { between_processes: true, between_hosts: true, ..self.memory.guarantees() }
    }

    fn connect(&self, session: Session) -> StoreFuture<'_, ()> {
        self.memory.connect(session)
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        self.memory.execute(batch)
    }

    fn examine(&self, examination: Examination) -> StoreFuture<'_, Vec<Finding>> {
        let default = GroupName::new("default").unwrap();
        self.work.lock().unwrap().clone_from(&examination.groups[&default]);
        let health = self.health.lock().unwrap().clone();
        self.begun.send_modify(|begun| *begun += 1);
        Box::pin(async move {
            match health {
                Health::Finds(findings) => Ok(findings),
                Health::Fails(error) => Err(error),
                Health::Hangs => std::future::pending().await,
                Health::Panics => panic!("as the test asked"),
            }
        })
    }

    fn describe(&self, _: Incarnation, _: BTreeMap<GroupName, Vec<String>>) -> StoreFuture<'_, ()> {
        self.described.send_modify(|described| *described += 1);
        Box::pin(std::future::ready(Ok(())))
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        self.memory.disconnect(incarnation)
    }
}
