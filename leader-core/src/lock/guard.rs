//! A lock that is held: what its owner may believe, and how it is given back.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::LockError;
use super::machine::Rules;
use super::mail::{Attempt, Mail, Reply};
use super::run::held_lock;
use crate::clock::{BootInstant, Clock};
use crate::error::StoreError;
use crate::lease::{FencingToken, Term};
use crate::shared::{Phase as ElectorPhase, Shared};
use crate::store::{LockKey, LockOwner};

/// What the driver writes and everybody else reads of one lock.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) key: LockKey,
    pub(crate) owner: LockOwner,
    /// When it was asked for.
    pub(crate) since: BootInstant,
    token: AtomicU64,
    deadline: AtomicU64,
    phase: watch::Sender<Phase>,
    /// Its work is dropped when it is lost, or the grace of a shutdown is over.
    cancellable: AtomicBool,
    clock: Clock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Waiting,
    Held,
    /// Work that may be cancelled is to be dropped.
    Cancelled,
    /// Lost, or given back.
    Ended,
}

impl Cell {
    /// The lock is held: a new acquisition, or the same one for longer.
    pub(crate) fn hold(&self, token: Term, deadline: BootInstant) {
        self.phase.send_if_modified(|phase| {
            if *phase == Phase::Ended {
                return false;
            }
            self.token.store(token.get(), Ordering::Release);
            self.deadline.fetch_max(deadline.as_nanos(), Ordering::AcqRel);
            let news = *phase == Phase::Waiting;
            *phase = Phase::Held.max(*phase);
            news
        });
    }

    pub(crate) fn cancel(&self) {
        self.advance(Phase::Cancelled);
    }

    /// It is held no more: first no reader believes in it, then those who wait are told.
    pub(crate) fn end(&self) {
        self.advance(Phase::Ended);
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            if to == Phase::Ended {
                self.deadline.store(0, Ordering::Release);
            }
            let forward = *phase < to;
            *phase = to.max(*phase);
            forward
        });
    }

    pub(crate) fn token(&self) -> Term {
        Term::new(self.token.load(Ordering::Acquire))
    }

    pub(crate) fn is_waiting(&self) -> bool {
        *self.phase.borrow() == Phase::Waiting
    }

    pub(crate) fn is_held(&self) -> bool {
        self.clock.now().as_nanos() < self.deadline.load(Ordering::Acquire)
    }

    pub(crate) fn clock_now(&self) -> BootInstant {
        self.clock.now()
    }

    pub(crate) fn is_cancellable(&self) -> bool {
        self.cancellable.load(Ordering::Relaxed)
    }

    async fn reached(&self, phase: Phase) {
        // The sender lives as long as this future borrows it.
        let _ = self.phase.subscribe().wait_for(|reached| *reached >= phase).await;
    }
}

/// What came of an attempt, if it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Won,
    /// The key was completed by another one.
    Done,
}

/// An attempt to get a lock, and then the lock: dropping it gives both up, wherever it stands.
pub(super) struct Claim {
    elector: Arc<Shared>,
    cell: Arc<Cell>,
    left: bool,
}

impl Claim {
    /// Asks for the lock.
    pub(super) fn new(
        elector: Arc<Shared>,
        key: LockKey,
        rules: Rules,
    ) -> Result<(Self, oneshot::Receiver<Result<Outcome, LockError>>), LockError> {
        let inside_work = crate::entry::lease().is_some() || held_lock().is_some();
        // A shutdown waits for gated work and for work under a lock, and that may still need a lock; nobody else begins anything.
        if elector.phase() >= ElectorPhase::Stopped || elector.phase() >= ElectorPhase::Ending && !inside_work {
            return Err(LockError::Stopped { key });
        }
        let clock = elector.clock.clone();
        let cell = Arc::new(Cell {
            key,
            owner: LockOwner::new(elector.candidate.clone()),
            since: clock.now(),
            token: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            phase: watch::Sender::new(Phase::Waiting),
            cancellable: AtomicBool::new(false),
            clock,
        });
        elector.locks.cells().insert(cell.owner.nonce, Arc::clone(&cell));
        let claim = Self { elector, cell: Arc::clone(&cell), left: false };
        let (reply, answer) = oneshot::channel();
        // If the driver has ended, the reply is dropped with the question.
        claim.elector.locks.send(Mail::Acquire(Attempt { cell, rules, inside_work, reply }));
        Ok((claim, answer))
    }

    pub(super) fn key(&self) -> &LockKey {
        &self.cell.key
    }

    /// Gives it up, once. Never blocks.
    fn leave(&mut self, reply: Option<Reply<()>>) {
        if !std::mem::replace(&mut self.left, true) {
            // The view ends before anybody else can have it.
            self.cell.end();
            self.elector.locks.cells().remove(&self.cell.owner.nonce);
            // A driver that has ended renews nothing, and the store's lock ends by itself.
            self.elector.locks.send(Mail::Leave { cell: Arc::clone(&self.cell), reply });
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.leave(None);
    }
}

/// A lock that is held. Dropping it gives it back, on return, error, panic and cancellation alike.
///
/// The drop does not wait for the store, and blocks nothing: use [`release`](Self::release) where it matters that the lock is
/// free before the program goes on, or whether it was held to the end. What is given to [`std::mem::forget`] is renewed
/// until the elector ends.
///
/// It dereferences to [`HeldLock`], which can be cloned into tasks that have to know whether the lock is still held.
#[must_use = "the lock is given back when the guard is dropped"]
pub struct LockGuard {
    claim: Claim,
    held: HeldLock,
}

impl LockGuard {
    pub(super) fn new(claim: Claim) -> Self {
        let held = HeldLock(Arc::clone(&claim.cell));
        Self { claim, held }
    }

    /// The view of the lock by itself: cheap to clone, to be moved into tasks. It does not keep the lock.
    #[must_use]
    pub fn held(&self) -> HeldLock {
        self.held.clone()
    }

    /// Gives the lock back, and waits until the store has confirmed that.
    ///
    /// # Errors
    /// [`LockError::Lost`]: it was lost before. [`LockError::Unconfirmed`]: it was held to the end of the work, but the store
    /// did not confirm the release; that is tried again in the background, and the lock ends by itself within the ttl.
    /// [`LockError::Stopped`]: it was lost because the elector ends.
    ///
    /// # Cancel safety
    /// The release goes on if the future is dropped.
    pub async fn release(mut self) -> Result<(), LockError> {
        if !self.is_held() {
            return Err(self.loss());
        }
        let (reply, answer) = oneshot::channel();
        self.claim.leave(Some(reply));
        answer.await.unwrap_or_else(|_| Err(self.unconfirmed("release")))
    }

    /// Notes that the work of this key is done, and gives the lock back.
    pub(crate) async fn complete(mut self, keep: Option<Duration>) -> Result<(), LockError> {
        let (reply, answer) = oneshot::channel();
        self.claim.elector.locks.send(Mail::Complete { cell: Arc::clone(&self.claim.cell), keep, reply });
        // From here on the driver knows what to do, though nobody may wait for it.
        self.claim.leave(None);
        answer.await.unwrap_or_else(|_| Err(self.unconfirmed("complete")))
    }

    /// It was held to the end, and then the driver has ended without an answer.
    fn unconfirmed(&self, what: &str) -> LockError {
        let attempted = format!("{what} on {}", self.claim.elector.address);
        let error = StoreError::Unavailable { attempted, cause: "the elector has ended".to_owned() };
        LockError::Unconfirmed { key: self.key().clone(), token: self.token(), error }
    }

    /// What to say when it was lost: by its own doing, or because the elector ends.
    pub(super) fn loss(&self) -> LockError {
        let key = self.key().clone();
        if *self.claim.cell.phase.borrow() == Phase::Cancelled {
            return LockError::Stopped { key };
        }
        LockError::Lost { key, token: self.token() }
    }

    pub(super) fn set_cancellable(&self) {
        self.claim.cell.cancellable.store(true, Ordering::Relaxed);
    }
}

impl Deref for LockGuard {
    type Target = HeldLock;

    fn deref(&self) -> &HeldLock {
        &self.held
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt_as("LockGuard", f)
    }
}

/// What may be believed of a lock, without asking the store. Clones are the same.
///
/// It belongs to one acquisition: once that is lost or given back, it is not held any more, whoever takes the lock next.
#[derive(Clone)]
pub struct HeldLock(Arc<Cell>);

impl HeldLock {
    /// What is locked.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.0.key
    }

    /// The number of this acquisition: the fencing token. Larger than that of every acquisition of this lock before it; of what
    /// can break that with a Redis server, [`RedisStore`](crate::store) tells.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.0.token()
    }

    /// Who took it.
    pub(crate) fn owner(&self) -> &LockOwner {
        &self.0.owner
    }

    /// Until when the lock is surely nobody else's, if no further renewal is confirmed. Lies in the past once it is lost or
    /// given back.
    #[must_use]
    pub fn deadline(&self) -> BootInstant {
        BootInstant::from_nanos(self.0.deadline.load(Ordering::Acquire))
    }

    /// Time until the [`deadline`](Self::deadline).
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline().saturating_since(self.0.clock.now())
    }

    /// Whether the lock is still held. Does no I/O.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// Resolves when the lock is lost, or given back, as soon as the elector's thread gets to tell: normally before the store
    /// lets another one have it, later if this machine stalls. [`is_held`](Self::is_held) is never late.
    ///
    /// # Cancel safety
    /// Can be dropped and called again at any time.
    pub async fn lost(&self) {
        self.0.reached(Phase::Ended).await;
    }

    /// Resolves when work that may be cancelled is to be dropped.
    pub(super) async fn cancelled(&self) {
        self.0.reached(Phase::Cancelled).await;
    }

    fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("key", self.key())
            .field("token", &self.token())
            .field("remaining", &self.remaining())
            .finish()
    }
}

impl fmt::Debug for HeldLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as("HeldLock", f)
    }
}
