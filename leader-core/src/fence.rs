//! Fences: writes of whoever leads no more, or holds a lock no more, are refused where they land.
//!
//! A lease or a lock says who may begin. It cannot call back a write that is under way: a process checks that it leads, stands
//! still for longer than its lease lasts (a garbage collector, a virtual machine that is moved, a `SIGSTOP`), goes on, and
//! writes what it had worked out before, over what its successor has written meanwhile. No check in that process helps: it can
//! stand still after each. What helps is that the place that is written to compares *fencing tokens*: each acquisition has a
//! larger one than all before it, every write brings the token of its own along, and a write whose token is older than the
//! newest one seen there is refused.
//!
//! | the data is | do |
//! |---|---|
//! | in the Redis server of the elector | [`Elector::fence`]: guarded set, delete and script |
//! | in a SQL database | keep the token beside the row, and compare it in the statement: see [below](#in-a-sql-database) |
//! | elsewhere | keep the newest token beside the data, and write both in one step, only if the new one is not older: a conditional put, a transaction, a compare-and-swap. A service of your own takes the token as an argument, and does the same |
//!
//! The token is the [`term`](Lease::term) of a lease or the [`token`](HeldLock::token) of a lock: a whole number that fits an
//! `i64`. What one place is written under has to be always the same lease, or always the same lock: the tokens of two are not
//! each other's successors.
//!
//! # In Redis
//! ```no_run
//! # async fn work_out() -> Vec<u8> { Vec::new() }
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! use leader_core::{Config, Elector};
//!
//! let elector = Elector::start(Config::new("redis://cache.internal:6379")).await?;
//! if let Some(lease) = elector.lease("default") {
//!     let report = work_out().await;
//!     // However long that took: if another instance has written since, this is an error, and nothing is changed.
//!     elector.fence().set(&lease, "report:today", report).await?;
//! }
//! # Ok(()) }
//! ```
//! One script checks the token, writes, and notes the token in a *mark* beside the key: `{report:today}:fence`, for a day. The
//! mark is set after the write, so that a write which is refused (a full memory) changes nothing.
//!
//! - A mark with a newer token: refused, with [`FenceError::Fenced`].
//! - A mark with the same token or an older one, of the memory that the server has now: written.
//! - No mark, or one of another memory (the server was emptied, restarted, rolled back, or another one took its place; or the
//!   mark has expired): written only if the server names this very acquisition as the present holder of its lease or lock, and
//!   the writer holds it by its own clock too: a server that was rolled back may name one that has long given it back. Refused
//!   otherwise. So no lost memory lets in a write that is too old, and the present holder goes on. Where the lease or lock was
//!   lost as well, there is none until it is acquired again.
//!
//! A write that comes late and finds no newer one is done, also if the lease has ended or another instance leads: the order of
//! writes is what a fence keeps.
//!
//! All this holds among guarded writes. Whatever else writes the same key, by a client of its own, is not refused and leaves no
//! mark. The lease or lock and the data have to be on one server, in one database; in a cluster in one slot, for which the key
//! that is written begins with `{leader:<group>}` or `{_lock:<key>}`, or the write is refused. The user of the server needs, besides what leases and locks need, the keys that are
//! written and their marks: `ACL SETUSER <user> ~<key> ~{*}:*fence`, and the commands of the scripts.
#![doc = include_str!("fence/sql.md")]

mod error;
mod script;
mod value;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use error::FenceError;
pub use script::Script;
pub use value::Value;
pub use write::{Change, GuardedAnswer, GuardedWrite, Holding};

use crate::election::MAX_TTL;
use crate::elector::Elector;
use crate::error::StoreError;
use crate::lease::{FencingToken, Lease};
use crate::lock::{HeldLock, LockGuard};
use crate::shared::Shared;
use crate::store::LeaseStore;

/// What writes can be done under: a [`Lease`], a [`LockGuard`], a [`HeldLock`].
///
/// Nothing else can be one.
pub trait Fencing: sealed::Acquired + Send + Sync {
    /// The number of the acquisition: the fencing token.
    fn fencing_token(&self) -> FencingToken {
        self.holding().token()
    }
}

mod sealed {
    use super::Holding;

    pub trait Acquired {
        fn holding(&self) -> Holding;
        /// Whether it is still held, by its own clock.
        fn is_held(&self) -> bool;
    }
}

impl Fencing for Lease {}
impl Fencing for HeldLock {}
impl Fencing for LockGuard {}
impl<T: Fencing> Fencing for &T {}

impl sealed::Acquired for Lease {
    fn holding(&self) -> Holding {
        Holding::Lease { group: self.group().clone(), term: self.term() }
    }

    fn is_held(&self) -> bool {
        Lease::is_held(self)
    }
}

impl sealed::Acquired for HeldLock {
    fn holding(&self) -> Holding {
        Holding::Lock { key: self.key().clone(), owner: self.owner().clone(), token: self.token() }
    }

    fn is_held(&self) -> bool {
        HeldLock::is_held(self)
    }
}

impl sealed::Acquired for LockGuard {
    fn holding(&self) -> Holding {
        HeldLock::holding(self)
    }

    fn is_held(&self) -> bool {
        HeldLock::is_held(self)
    }
}

impl<T: sealed::Acquired> sealed::Acquired for &T {
    fn holding(&self) -> Holding {
        (**self).holding()
    }

    fn is_held(&self) -> bool {
        (**self).is_held()
    }
}

impl Elector {
    /// Guarded writes, in the Redis server of this elector: see [`fence`](crate::fence). On any other store each is an error.
    ///
    /// ```no_run
    /// # async fn f(elector: leader_core::Elector) -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = elector.lock("account:7").acquire().await?;
    /// elector.fence().set(&guard, "account:7:state", "closed").await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn fence(&self) -> Fence {
        let elector = Arc::clone(&self.0.shared);
        Fence { timeout: elector.timing.operation_timeout, elector }
    }
}

/// Guarded writes in the Redis server of an elector, from [`Elector::fence`].
///
/// Keys, values and arguments are bytes, and are written as they are. A write is sent once: if it got no answer, whether it was
/// executed is unknown. It goes on if its future is dropped.
#[derive(Clone)]
pub struct Fence {
    elector: Arc<Shared>,
    timeout: Duration,
}

impl Fence {
    /// How long each write may take: the [operation time-out](crate::Config::operation_timeout) unless said otherwise, an hour
    /// at most. A server does nothing else while it runs a script, and renews no lease either.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(MAX_TTL);
        self
    }

    /// Sets `key` to `value`, as `SET` does: whatever was there is replaced, and has no end.
    ///
    /// # Errors
    /// [`FenceError::Fenced`]: too late. [`FenceError::Store`], [`FenceError::Stopped`].
    ///
    /// # Cancel safety
    /// The write goes on if the future is dropped.
    pub async fn set(
        &self,
        by: &impl Fencing,
        key: impl AsRef<[u8]> + Send,
        value: impl AsRef<[u8]> + Send,
    ) -> Result<(), FenceError> {
        let (key, value) = (key.as_ref().to_vec(), value.as_ref().to_vec());
        self.write(by, Change::Set { key, value, keep: None }).await.map(drop)
    }

    /// The same, for so long: at least a millisecond.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    ///
    /// # Cancel safety
    /// The write goes on if the future is dropped.
    pub async fn set_for(
        &self,
        by: &impl Fencing,
        key: impl AsRef<[u8]> + Send,
        value: impl AsRef<[u8]> + Send,
        keep: Duration,
    ) -> Result<(), FenceError> {
        let (key, value) = (key.as_ref().to_vec(), value.as_ref().to_vec());
        self.write(by, Change::Set { key, value, keep: Some(keep) }).await.map(drop)
    }

    /// Deletes `key`. Answers whether it was there.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    ///
    /// # Cancel safety
    /// The deletion goes on if the future is dropped.
    pub async fn delete(&self, by: &impl Fencing, key: impl AsRef<[u8]> + Send) -> Result<bool, FenceError> {
        let deleted = self.write(by, Change::Delete { key: key.as_ref().to_vec() }).await?;
        Ok(deleted.as_integer().is_some_and(|keys| keys > 0))
    }

    /// Runs a script if none of its keys was written under a newer token. Answers what the script does.
    ///
    /// # Errors
    /// As for [`set`](Self::set); and [`FenceError::Script`]: it failed, or answered an error. What it had written by then
    /// stays, as always in Redis, and counts as written.
    ///
    /// # Cancel safety
    /// The script goes on if the future is dropped.
    ///
    /// ```no_run
    /// # async fn f(elector: leader_core::Elector, lease: leader_core::Lease) -> Result<(), Box<dyn std::error::Error>> {
    /// use leader_core::fence::Script;
    ///
    /// let add = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])").key("total").arg("5");
    /// let total = elector.fence().run(&lease, add).await?.as_integer();
    /// # Ok(()) }
    /// ```
    pub async fn run(&self, by: &impl Fencing, script: Script) -> Result<Value, FenceError> {
        self.write(by, Change::Run(script)).await
    }

    async fn write(&self, by: &impl Fencing, change: Change) -> Result<Value, FenceError> {
        let holding = by.holding();
        let token = holding.token();
        let keys = change.keys().to_vec();
        let Shared { candidate, store, clock, runtime, .. } = &*self.elector;
        let held = by.is_held();
        let write = GuardedWrite { candidate: candidate.clone(), holding, held, change, timeout: self.timeout };
        let late =
            StoreError::TimedOut { attempted: format!("{write} on {}", self.elector.address), after: self.timeout };
        let lost = StoreError::Unavailable { attempted: write.to_string(), cause: "the store panicked".to_owned() };
        let (store, clock) = (Arc::clone(store), clock.clone());
        let give_up = clock.now().saturating_add(self.timeout);
        let write = async move {
            tokio::select! {
                biased;
                answer = store.execute_guarded(write) => answer,
                () = clock.sleep_until(give_up) => Err(late),
            }
        };
        // On the elector's own runtime, which the store's connections live on; the caller's may end before them.
        let Some(runtime) = runtime.get() else { return Err(FenceError::Stopped) };
        match runtime.spawn(write).await {
            Ok(Ok(GuardedAnswer::Done(value))) => Ok(value),
            Ok(Ok(GuardedAnswer::Failed(error))) => Err(FenceError::Script { error }),
            Ok(Ok(GuardedAnswer::Fenced { key, newest })) => {
                let key = key.and_then(|key| keys.get(key)).map_or_else(String::new, |key| write::shown(key));
                Err(FenceError::Fenced { key, token, newest })
            }
            Ok(Err(error)) => Err(FenceError::Store(error)),
            Err(ended) if ended.is_panic() => Err(FenceError::Store(lost)),
            Err(_) => Err(FenceError::Stopped),
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("store", &self.elector.address).field("timeout", &self.timeout).finish()
    }
}

/// What a store without guarded writes answers.
pub(crate) fn no_guarded_writes(store: &(impl LeaseStore + ?Sized), write: &GuardedWrite) -> StoreError {
    StoreError::Refused {
        attempted: format!("{write} on {}", store.address()),
        cause: "this store has no guarded writes".to_owned(),
        advice: "they need a Redis server as the store; compare the token where the data is, as the documentation of \
                 leader_core::fence says"
            .to_owned(),
    }
}
