//! Which bodies run, and whether another one may begin. One lock over both, so that none begins after a stop was told that
//! none runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// The bodies of one scheduler.
#[derive(Debug, Default)]
pub(crate) struct Bodies(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    closed: bool,
    /// By job: runs of one job never overlap.
    running: BTreeMap<usize, Instant>,
}

/// A body that runs; it has ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Begun {
    bodies: Arc<Bodies>,
    job: usize,
}

impl Bodies {
    /// `None` once no new body may begin.
    pub(crate) fn begin(self: &Arc<Self>, job: usize) -> Option<Begun> {
        let began = self.0.send_if_modified(|state| {
            if !state.closed {
                state.running.insert(job, Instant::now());
            }
            !state.closed
        });
        began.then(|| Begun { bodies: Arc::clone(self), job })
    }

    /// From here on no body begins.
    pub(crate) fn close(&self) {
        self.0.send_modify(|state| state.closed = true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.borrow().closed
    }

    pub(crate) async fn closed(&self) {
        self.wait_for(|state| state.closed).await;
    }

    /// Resolves when no body runs.
    pub(crate) async fn idle(&self) {
        self.wait_for(|state| state.running.is_empty()).await;
    }

    async fn wait_for(&self, reached: impl FnMut(&State) -> bool) {
        // The sender lives as long as this future borrows it, so there is no error to meet.
        let _ = self.0.subscribe().wait_for(reached).await;
    }

    /// The jobs whose bodies run, and for how long.
    pub(crate) fn running(&self) -> Vec<(usize, Duration)> {
        self.0.borrow().running.iter().map(|(job, since)| (*job, since.elapsed())).collect()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.bodies.0.send_modify(|state| {
            state.running.remove(&self.job);
        });
    }
}
