//! What the tests of this crate share.
#![allow(dead_code)] // Each test file uses its own part.

use std::time::Duration;

use leader_core::store::MemoryStore;
use leader_core::{Config, Elector};
use leader_cron::{JobStatus, Running};
use tokio::sync::mpsc::UnboundedReceiver;

pub(crate) const EVERY_SECOND: &str = "* * * * * *";

/// Far more than a loaded machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An elector that loses no lease on a slow machine.
pub(crate) async fn elector(store: &MemoryStore, groups: &[&str]) -> Elector {
    let config = Config::with_store(store.clone()).groups(groups.iter().copied()).ttl(Duration::from_secs(60));
    Elector::start(config).await.unwrap()
}

pub(crate) async fn next<T>(events: &mut UnboundedReceiver<T>) -> T {
    in_time(events.recv()).await.expect("a sender is left")
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in time")
}

pub(crate) fn status(running: &Running, job: &str) -> JobStatus {
    running.jobs().into_iter().find(|status| status.name == job).expect("the job is known")
}

/// Looks until the status of a job is as wanted.
pub(crate) async fn until(running: &Running, job: &str, wanted: impl Fn(&JobStatus) -> bool) -> JobStatus {
    in_time(async {
        loop {
            let status = status(running, job);
            if wanted(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}
