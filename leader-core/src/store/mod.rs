//! What an election asks of a store, and what a store answers.
//!
//! A store executes *batches*: the commands of all groups that are due go out in one round trip, and each is answered on
//! its own, so that one broken record never fails its neighbours. Anybody's store can be used, by
//! [`Config::with_store`](crate::Config::with_store); [`testing::conformance`](crate::testing) proves it (feature `testing`).

pub(crate) mod ledger;
mod lock;
pub(crate) mod memory;
#[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
pub(crate) mod redis;
pub(crate) mod rules;
#[cfg(feature = "sqlite")]
mod sqlite;
mod url;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::doctor::Finding;
use crate::error::StoreError;
use crate::fence::{GuardedAnswer, GuardedWrite, no_guarded_writes};
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::lease::Term;

pub use ledger::{
    HistoryEntry, HistoryEvent, InvalidJobName, JobName, JobRecord, Missed, OpenRun, Pause, ReturnedTick, RunEnd,
    RunOutcome, TickAnswer, TickAnswers, TickBatch, TickClaim, TickCommand, TickOp, TickReply,
};
pub use lock::{Busy, InvalidLockKey, LockAnswer, LockAnswers, LockBatch, LockCommand, LockKey, LockOp, LockOwner};
pub use memory::MemoryStore;
#[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
pub use redis::RedisStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub(crate) use url::{open, redacted};

/// A boxed future, as a store returns it.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The answers to a batch: one for each command, in the same order.
pub type Answers = Vec<Result<Answer, StoreError>>;

/// Where leases live: the record of who leads which group, until when.
///
/// # Contract
/// - Each command is atomic, and every acquisition of a group gets a larger [`Term`] than any before it:
///   `max(stored + 1, floor + 1, the store's wall clock in µs)`, the re-claim of an own lease too.
/// - At most one candidate holds a lease; a lease ends by itself when its ttl has passed on the store's clock.
/// - [`Op::Renew`] and [`Op::Release`] act only on the very acquisition they name (id, incarnation and term): a late one
///   changes nothing.
/// - While an older incarnation may believe in a lease that was taken over from it ([`SameId::Take`]), the lease ends no
///   earlier than that belief, whatever the new holder's ttl; a release lets it stand until then, unannounced; and every
///   acquire that is won meanwhile says so in [`Won::older_lease`].
/// - A store that may have lost its memory answers [`Answer::Quarantined`] until every lease it may have forgotten has run
///   out.
///
/// # Blocking
/// The futures run on the driver's thread: one that blocks it holds up every group of the elector. Hand work that blocks to
/// a thread of the store's own. What a store logs by `tracing` on the driver's thread is dropped, because a log that is
/// blocked would block it; a logger of the crate `log` is out of reach, and blocks it.
///
/// # Cancel safety
/// The driver drops the future of a call that takes too long. What was sent by then may still be executed; what was not
/// must not be sent any more.
pub trait LeaseStore: Send + Sync + 'static {
    /// The store's address for messages, without any password: `sqlite:///var/lib/app/leader.db`.
    fn address(&self) -> String;

    /// What this store promises, so that start-up can warn.
    fn guarantees(&self) -> Guarantees;

    /// Called once for each elector before any batch of it: opens what the store needs, and keeps the
    /// [`Announcer`], through which the store tells of releases until [`disconnect`](Self::disconnect).
    ///
    /// # Errors
    /// A permanent [`StoreError`] fails the start of the elector; after a passing one `connect` is called again, with what the
    /// elector does by then ([`Session::groups`]).
    fn connect(&self, session: Session) -> StoreFuture<'_, ()>;

    /// Executes the commands, and answers each in order.
    ///
    /// # Errors
    /// The outer error is for a failure of the whole call: none of the commands was answered. The inner one is for the
    /// failure of a single command.
    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers>;

    /// Executes lock commands, and answers each in order. A store without locks need not have it.
    ///
    /// - Each command is atomic. At most one owner holds a lock; it ends by itself when its ttl has passed on the store's
    ///   clock. Every acquisition has a larger token than those before it: at least the floor + 1, and the store's wall clock
    ///   in µs.
    /// - Those who wait are served in the order in which they came, for as long as they keep their place by asking again. A
    ///   lock that is free is told to the first of them, by [`Announcer::lock_free`].
    /// - [`LockOp::Renew`], [`LockOp::Release`] and [`LockOp::Complete`] act only on the acquisition that they name.
    /// - Once a lock has been released, or has ended, nothing of it stays but the note of a completion.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute). Without locks: a permanent one.
    fn execute_locks(&self, batch: LockBatch) -> StoreFuture<'_, LockAnswers> {
        let refused = lock::no_locks(self);
        Box::pin(async move {
            drop(batch);
            Err(refused)
        })
    }

    /// Executes commands to the ledger of ticks, and answers each in order. A store without a ledger need not have it.
    ///
    /// - Each command is atomic, and is executed by the store's own clock, which all instances share.
    /// - A tick is run by one claim: [`TickReply::Run`] is answered to a second nonce only if the first claim was given back, or
    ///   with delivery at least once. The last claimed tick of a job never falls. No tick is claimed before it is due.
    /// - A claim counts only under the term and incarnation that hold the group's lease, here and now.
    /// - A store that may have forgotten claims treats what it may have forgotten as claimed: a tick may be lost then, and
    ///   never doubled. But see [`TickClaim::vouch`].
    /// - A record that cannot be read is answered [`TickReply::Corrupt`], or with an error of its own; the others are none
    ///   the worse for it.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute). Without a ledger: a permanent one.
    fn execute_ticks(&self, batch: TickBatch) -> StoreFuture<'_, TickAnswers> {
        let refused = ledger::no_ledger(self);
        Box::pin(async move {
            drop(batch);
            Err(refused)
        })
    }

    /// Writes what users keep in the store, if nothing newer has written there, or may have: see [`fence`](crate::fence). A
    /// store that is no place for that need not have it.
    ///
    /// # Errors
    /// The call failed; whether it was written may be unknown. Without guarded writes: a permanent one.
    fn execute_guarded(&self, write: GuardedWrite) -> StoreFuture<'_, GuardedAnswer> {
        let refused = no_guarded_writes(self, &write);
        Box::pin(async move { Err(refused) })
    }

    /// Looks for what is unsafe or broken about the store itself and about the records of these groups, and changes
    /// nothing. Called after a [`connect`](Self::connect) that went well, once by itself, and when
    /// [`Elector::doctor`](crate::Elector::doctor) is. What could not be looked at is a finding of its own.
    ///
    /// Batches go on meanwhile: none of them may have to wait for it. The default finds nothing.
    ///
    /// # Errors
    /// Nothing at all could be looked at.
    fn examine(&self, examination: Examination) -> StoreFuture<'_, Vec<Finding>> {
        drop(examination);
        Box::pin(async { Ok(Vec::new()) })
    }

    /// What this elector does has changed: its groups, each with lines as in [`Session::groups`], such as when its jobs were
    /// started. A store may keep them beside the lease, from now on or from the next renewal on. The default keeps nothing.
    ///
    /// # Errors
    /// It was not taken in; it is not told again before it changes again.
    fn describe(&self, incarnation: Incarnation, groups: BTreeMap<GroupName, Vec<String>>) -> StoreFuture<'_, ()> {
        let _ = (incarnation, groups);
        Box::pin(async { Ok(()) })
    }

    /// The elector with this incarnation has ended: forget its announcer and whatever was opened for it.
    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()>;
}

/// One elector's tie to a store.
#[derive(Debug, Clone)]
pub struct Session {
    /// The elector.
    pub candidate: Candidate,
    /// Its groups, each with a line for each function that its program gates by it: `billing::jobs::send_digest`. Once its jobs
    /// were started, a line `@` follows, and one for each job of the group: `@digest 0 0 3 * * *`. A store may keep them beside
    /// the lease, so that others can tell what a leader does not do.
    pub groups: BTreeMap<GroupName, Vec<String>>,
    /// What its program is called.
    pub program: String,
    /// Where to announce releases.
    pub announcer: Announcer,
    /// How long [`LeaseStore::connect`] may take.
    pub timeout: Duration,
}

/// What a store promises beyond the contract of [`LeaseStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Guarantees {
    /// Several processes can share it.
    pub between_processes: bool,
    /// Several hosts can share it.
    pub between_hosts: bool,
    /// It keeps its records over a restart.
    pub survives_restart: bool,
    /// A failover may lose what it had acknowledged. Of a Redis server that is so also with
    /// [`Config::replicas`](crate::Config::replicas): that is for leases and locks, not for all that it keeps.
    pub loses_acknowledged_writes: bool,
}

/// Commands that go out in one round trip, at most one for each group.
#[derive(Debug, Clone)]
pub struct Batch {
    /// What to do.
    pub commands: Vec<Command>,
    /// How long the call may take, from now; past that the driver drops it.
    pub timeout: Duration,
}

/// What [`LeaseStore::examine`] is asked to look at.
#[derive(Debug, Clone)]
pub struct Examination {
    /// Who asks: what it holds itself is nothing strange.
    pub candidate: Candidate,
    /// The groups whose records to look at, each with what the asker does for it, as in [`Session::groups`].
    pub groups: BTreeMap<GroupName, Vec<String>>,
    /// What that program is called.
    pub program: String,
    /// The asker's ttl.
    pub ttl: Duration,
    /// How long it may take in all, from now; past that the driver drops it, and what was found by then is lost.
    pub timeout: Duration,
}

/// One command of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Command {
    /// The group it is about.
    pub group: GroupName,
    /// Who asks.
    pub candidate: Candidate,
    /// The asker's ttl: how long a lease that this command sets lasts.
    pub ttl: Duration,
    /// What it asks.
    pub op: Op,
}

/// The changes of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op {
    /// Take the lease if nobody holds it, or take back the own one.
    Acquire {
        /// The largest term that this candidate has seen; the store's record is raised to it, also if the answer is no.
        floor: Term,
        /// This incarnation still rightly believes in its last lease: only then may it re-seat itself in a quarantine.
        continues: bool,
        /// What to do if another incarnation of the same instance id holds the lease.
        same_id: SameId,
    },
    /// Extend the lease of this acquisition.
    Renew {
        /// Which acquisition.
        term: Term,
    },
    /// End the lease of this acquisition, and announce it.
    Release {
        /// Which acquisition; `None` for whichever this incarnation holds: used once, by an elector that never acquires
        /// again, when it cannot know whether its last acquire was executed.
        term: Option<Term>,
    },
    /// Tell who holds the lease. Changes nothing.
    Inspect,
}

impl Op {
    /// What messages call it: `acquire`, `renew`, `release`, `inspect`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Acquire { .. } => "acquire",
            Self::Renew { .. } => "renew",
            Self::Release { .. } => "release",
            Self::Inspect => "inspect",
        }
    }
}

/// What an acquire does with a lease that another incarnation of the same instance id holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SameId {
    /// Take the seat under a new term and answer [`Answer::Won`], with the time that the old lease had left in
    /// [`Won::older_lease`].
    Take,
    /// Leave it: answer [`Answer::Held`] with [`Held::same_id`].
    Leave,
}

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To an acquire: the lease is the candidate's.
    Won(Won),
    /// To an acquire: the lease is another's.
    Held(Held),
    /// To an acquire: the store may have forgotten leases; nobody gets one until they have run out.
    Quarantined {
        /// How long.
        remaining: Duration,
        /// What happened, for the log: `the server restarted without its data`.
        reason: &'static str,
    },
    /// To a renew: extended by the ttl.
    Renewed,
    /// To a renew: the acquisition it names is over.
    Lost {
        /// Another incarnation of the same instance id took it, under a term that is no older.
        duplicate: bool,
    },
    /// To a release: ended and announced.
    Released,
    /// To a release: the acquisition it names was over already.
    NotHeld,
    /// To an inspect: the holder, if any.
    Inspected(Option<Held>),
}

/// A lease that was won.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Won {
    /// The number of this acquisition.
    pub term: Term,
    /// Won inside a quarantine, by a leader that continues: it counts only if this answer arrives within the old right.
    pub in_quarantine: bool,
    /// For how long another incarnation of the same id may still believe: the time that its lease had left when this id took
    /// its seat, less what has passed since, also if this acquisition is a later one of the same incarnation (the answer
    /// to the first may have been lost). Zero otherwise.
    pub older_lease: Duration,
}

/// A lease that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    /// Who holds it.
    pub holder: InstanceId,
    /// The number of that acquisition, where the record says it.
    pub term: Option<Term>,
    /// How long it lasts unless renewed.
    pub remaining: Duration,
    /// The holder is another incarnation of the asker's instance id; and its term is no older than what the asker has seen,
    /// or the store would only have forgotten the asker.
    pub same_id: bool,
    /// The holder keeps no record of terms (another implementation of the same keys): its release is not announced.
    pub foreign: bool,
}

/// Through which a store tells of releases. Cheap to clone; never blocks.
#[derive(Clone)]
pub struct Announcer(tokio::sync::mpsc::UnboundedSender<Announcement>);

impl Announcer {
    pub(crate) fn new() -> (Self, tokio::sync::mpsc::UnboundedReceiver<Announcement>) {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// The lease of `group` has become free.
    pub fn released(&self, group: GroupName) {
        // A closed channel is an elector that has ended: nobody is left to tell.
        let _ = self.0.send(Announcement::Released(group));
    }

    /// This owner has become the first of those who wait for a lock, or the lock has become free, and it is the first; or what it
    /// waits for was done.
    pub fn lock_free(&self, nonce: u128) {
        // As above.
        let _ = self.0.send(Announcement::LockFree { nonce });
    }

    /// Some releases may have been missed (a subscription that was interrupted): every follower asks again.
    pub fn gap(&self) {
        let _ = self.0.send(Announcement::Gap);
    }

    /// Something was seen that an [examination](LeaseStore::examine) should look at: one follows within seconds.
    pub fn examine(&self) {
        let _ = self.0.send(Announcement::Examine);
    }
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Announcer")
    }
}

/// What a store tells without being asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// A lease has become free.
    Released(GroupName),
    /// A lock is free for the owner with this nonce.
    LockFree {
        /// See [`LockOwner::nonce`].
        nonce: u128,
    },
    /// Announcements may have been lost.
    Gap,
    /// The store should be examined.
    Examine,
}
