//! A log that is blocked, as by a pipe that nobody reads. It is the whole process's, so it has a test program of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use leader_core::store::{Answers, Batch, Guarantees, LeaseStore, MemoryStore, Session, StoreFuture};
use leader_core::{Config, Elector, Incarnation};
use tokio::sync::watch;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Blocks whoever logs, but for the test itself.
struct Blocked {
    spared: ThreadId,
    blocks: Arc<AtomicBool>,
}

impl Subscriber for Blocked {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, _: &Event<'_>) {
        if std::thread::current().id() != self.spared {
            self.blocks.store(true, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A store that logs whatever it does, and counts the batches.
struct Talkative {
    inner: MemoryStore,
    batches: watch::Sender<u64>,
}

impl LeaseStore for Talkative {
    fn address(&self) -> String {
        self.inner.address()
    }

    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn connect(&self, session: Session) -> StoreFuture<'_, ()> {
        tracing::error!("connecting");
        self.inner.connect(session)
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        tracing::error!("executing");
        self.batches.send_modify(|batches| *batches += 1);
        self.inner.execute(batch)
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        tracing::error!("disconnecting");
        self.inner.disconnect(incarnation)
    }
}

#[tokio::test]
async fn a_blocked_log_costs_no_lease() {
    let blocks = Arc::new(AtomicBool::new(false));
    let subscriber = Blocked { spared: std::thread::current().id(), blocks: Arc::clone(&blocks) };
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let (batches, mut done) = watch::channel(0);
    let store = Talkative { inner: MemoryStore::new(), batches };
    let config = Config::with_store(store).heartbeat(Duration::from_millis(50));
    let heartbeats = async {
        let elector = Elector::start(config).await.unwrap();
        let lease = elector.lease("default").unwrap();
        done.wait_for(|batches| *batches > 10).await.unwrap();
        assert!(lease.is_held());
    };
    tokio::time::timeout(Duration::from_secs(20), heartbeats).await.expect("there are no heartbeats");
    assert!(blocks.load(Ordering::SeqCst), "nobody has logged anything");
}
