//! What handles of locks ask of the driver, and where it reads that.
//!
//! Apart from the questions about leases, because it stays open to the very end: a guard may be dropped while the elector
//! shuts down, or after that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::guard::{Cell, Outcome};
use super::{LockError, machine};
use crate::clock::BootInstant;
use crate::status::{LockStatus, LocksStatus};
use crate::store::LockKey;

/// So many locks are shown in a status.
const SHOWN: usize = 20;

/// What a handle asks.
#[derive(Debug)]
pub(crate) enum Mail {
    /// Get a lock.
    Acquire(Attempt),
    /// Nobody needs this one any more.
    Leave { cell: Arc<Cell>, reply: Option<Reply<()>> },
    /// The work under this one is done: note it for so long, or for ever, and give the lock back.
    Complete { cell: Arc<Cell>, keep: Option<Duration>, reply: Reply<()> },
    /// Remove the note that the work of this key is done.
    Forget { key: LockKey, reply: Reply<bool> },
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, LockError>>;

/// One attempt to get a lock.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) cell: Arc<Cell>,
    pub(crate) rules: machine::Rules,
    /// Asked for by gated work: a shutdown waits for that, and so for this.
    pub(crate) inside_work: bool,
    pub(crate) reply: Reply<Outcome>,
}

/// The handles' end, and all locks that they hold or wait for.
#[derive(Debug)]
pub(crate) struct Desk {
    outbox: mpsc::UnboundedSender<Mail>,
    /// Until the driver takes it.
    inbox: Mutex<Option<mpsc::UnboundedReceiver<Mail>>>,
    cells: Mutex<BTreeMap<u128, Arc<Cell>>>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let (outbox, inbox) = mpsc::unbounded_channel();
        Self { outbox, inbox: Mutex::new(Some(inbox)), cells: Mutex::default() }
    }

    /// For the driver, once.
    pub(crate) fn take_inbox(&self) -> Option<mpsc::UnboundedReceiver<Mail>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// `false`: the driver has ended.
    pub(crate) fn send(&self, mail: Mail) -> bool {
        self.outbox.send(mail).is_ok()
    }

    /// What is held and waited for. One that was lost is neither.
    pub(crate) fn status(&self, now: BootInstant) -> LocksStatus {
        let cells: Vec<Arc<Cell>> = self.cells().values().cloned().collect();
        let (waiting, others): (Vec<_>, Vec<_>) = cells.into_iter().partition(|cell| cell.is_waiting());
        let held: Vec<_> = others.into_iter().filter(|cell| cell.is_held()).collect();
        let (count_held, count_waiting) = (held.len(), waiting.len());
        let status = |held| {
            move |cell: Arc<Cell>| LockStatus {
                key: cell.key.clone(),
                held,
                asked_ago: now.saturating_since(cell.since),
            }
        };
        let mut oldest: Vec<_> =
            held.into_iter().map(status(true)).chain(waiting.into_iter().map(status(false))).collect();
        oldest.sort_by(|a, b| b.asked_ago.cmp(&a.asked_ago).then_with(|| a.key.cmp(&b.key)));
        oldest.truncate(SHOWN);
        LocksStatus { held: count_held, waiting: count_waiting, oldest }
    }

    /// Those whose handle is alive.
    pub(crate) fn cells(&self) -> MutexGuard<'_, BTreeMap<u128, Arc<Cell>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
