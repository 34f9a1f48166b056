//! The store for one host: an SQLite file that its instances share.
//!
//! A lease is a row, changed in transactions that hold the file's writer lock; clock and row are read under it. The rest is
//! what a file on one host can do better than a server far away: the death of an instance is seen at once, by a lock that
//! the operating system gives up for it ([`life`]), and a release is heard at once ([`doorbell`]). And what it could do
//! worse: each transaction is preceded and followed by a check that the path still names the files that are open
//! ([`files`]), and instants count only for the clock that they were read from ([`host`]).

#[cfg(not(unix))]
compile_error!(
    "the feature `sqlite` of leader-core needs a Unix system, on which files have a device and an inode number; \
     leave it out: default-features = false, features = [\"macros\", \"redis\"]"
);

mod card;
mod database;
mod doctor;
mod doorbell;
mod failure;
mod files;
mod host;
mod life;
mod locks;
mod look;
mod place;
mod rights;
mod row;
mod schema;
mod ticks;
mod transaction;
mod verdict;
mod witness;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::oneshot;

use self::doctor::Moment;
use self::host::Host;
use self::worker::{Call, Job};
use super::{
    Answers, Batch, Examination, Guarantees, LeaseStore, LockAnswers, LockBatch, Session, StoreFuture, TickAnswers,
    TickBatch,
};
use crate::clock::BootInstant;
use crate::config::FreshStore;
use crate::doctor::Finding;
use crate::error::StoreError;
use crate::group::GroupName;
use crate::identity::Incarnation;

/// Leases, locks and the ledger of ticks in an SQLite file, for the instances of one host (feature `sqlite`, on by default, Unix only).
///
/// The file is created if it is missing, with a folder `<file>-locks` beside it that belongs to it: removing that
/// folder while instances run takes from them the proof that others are alive or dead. Both must be on a local disk, and
/// the file must have one name and hold nothing else. Nobody may replace it while instances run: they notice, stop leading
/// and stay out until they are restarted.
///
/// - A release is announced to all processes at once, and so is the end of a process, however it ended; a process that
///   only stands still loses its lease when it runs out. Where the system gives no watch on files
///   (`fs.inotify.max_user_instances` on Linux), a release is noticed when the lease would have ended.
/// - Those of a process that has ended are free at once, locks too; nothing stays of a lock that was given back.
/// - Every acquisition is synced to the disk, so that terms do not fall after a power failure, and so is every claim of a
///   tick; renewals are not.
/// - A tick is due by the host's wall clock. A backup that is put in place of the file may have forgotten claims: ticks up to
///   then count as claimed. It is known by its inode and time of creation, so put it there by a rename, or by a copy after the
///   old one was removed; one that is written *over* the old file is taken for it.
/// - A file that was created or put in place while instances live by another one, which stood here before, is trusted after
///   one ttl: they may still lead, or hold a lock. (Not if the folder of locks was removed with it: then stop all instances first.)
/// - A full disk passes by itself when there is room again. A file that is read-only, replaced, damaged, another
///   application's or a newer version's is a permanent error.
/// - A process that is stopped (`SIGSTOP`) inside a transaction stops all writers of the file until it goes on or dies.
///
/// Opening it happens in [`connect`](LeaseStore::connect), on a thread of the store's own, which ends soon after the last
/// clone is dropped. A further thread waits for the end of each instance that was seen to lead; it does not keep the process
/// from ending.
///
/// ```
/// use leader_core::store::{LeaseStore, SqliteStore};
///
/// let store = SqliteStore::new("/var/lib/app/leader.db");
/// assert_eq!(store.address(), "sqlite:///var/lib/app/leader.db");
/// assert!(store.guarantees().between_processes && !store.guarantees().between_hosts);
/// ```
#[derive(Clone)]
pub struct SqliteStore(Arc<Handle>);

struct Handle {
    path: PathBuf,
    fresh: FreshStore,
    /// The worker, once there is one.
    worker: Mutex<Option<Sender<Job>>>,
}

impl SqliteStore {
    /// The store in the file at `path`; a relative path counts from the working directory at the time of opening. Nothing
    /// is opened yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::with(path.into(), FreshStore::default())
    }

    /// What to think of a file that knows of no lease. Unlike other stores this one can look whether instances live that
    /// may hold leases by another file: [`FreshStore::Wait`] makes it wait only if there are any.
    #[must_use]
    pub fn fresh_store(self, fresh: FreshStore) -> Self {
        Self::with(self.0.path.clone(), fresh)
    }

    fn with(path: PathBuf, fresh: FreshStore) -> Self {
        Self(Arc::new(Handle { path, fresh, worker: Mutex::new(None) }))
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Has the worker do a job, and waits for its answer, but not longer than `timeout`.
    async fn ask<T>(&self, timeout: Duration, what: &str, job: impl FnOnce(Call<T>) -> Job) -> Result<T, StoreError> {
        let attempted = || format!("{what} {}", self.address());
        let (reply, answer) = oneshot::channel();
        let deadline = BootInstant::now().saturating_add(timeout);
        self.0
            .worker()
            .and_then(|worker| worker.send(job(Call { deadline, reply })).map_err(std::io::Error::other))
            .map_err(|error| StoreError::Unavailable { attempted: attempted(), cause: error.to_string() })?;
        match answer.await {
            Ok(done) => done,
            // The worker drops what came too late; and all, if it has died.
            Err(_) => Err(StoreError::TimedOut { attempted: attempted(), after: timeout }),
        }
    }
}

impl Handle {
    fn worker(&self) -> std::io::Result<Sender<Job>> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worker) = &*worker {
            return Ok(worker.clone());
        }
        let started = worker::start(self.path.clone(), address(&self.path), self.fresh)?;
        Ok(worker.insert(started).clone())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let worker = self.worker.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            // A worker that has died is stopped already.
            let _ = worker.send(Job::Stop);
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteStore({})", self.address())
    }
}

fn address(path: &Path) -> String {
    let slashes = if path.is_absolute() { "//" } else { "" };
    format!("sqlite:{slashes}{}", path.display())
}

impl LeaseStore for SqliteStore {
    fn address(&self) -> String {
        address(&self.0.path)
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            between_processes: true,
            between_hosts: false,
            survives_restart: true,
            loses_acknowledged_writes: false,
        }
    }

    fn connect(&self, session: Session) -> StoreFuture<'_, ()> {
        Box::pin(self.ask(session.timeout, "connect to", |call| Job::Connect(session, call)))
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        Box::pin(self.ask(batch.timeout, "a batch on", |call| Job::Execute(batch, call)))
    }

    fn execute_locks(&self, batch: LockBatch) -> StoreFuture<'_, LockAnswers> {
        Box::pin(self.ask(batch.timeout, "lock commands on", |call| Job::ExecuteLocks(batch, call)))
    }

    fn execute_ticks(&self, batch: TickBatch) -> StoreFuture<'_, TickAnswers> {
        Box::pin(self.ask(batch.timeout, "commands to the ledger on", |call| Job::ExecuteTicks(batch, call)))
    }

    fn examine(&self, examination: Examination) -> StoreFuture<'_, Vec<Finding>> {
        Box::pin(async move {
            // What was found has to be told before the time is over.
            let until = BootInstant::now().saturating_add(examination.timeout.mul_f64(0.9));
            let left = || until.saturating_since(BootInstant::now());
            let around = self.ask(left(), "examine", Job::LookAround).await?;
            let (groups, mut rows) = (examination.groups.keys().cloned().collect::<Vec<_>>(), BTreeMap::new());
            for some in groups.chunks(look::AT_ONCE) {
                rows.extend(self.ask(left(), "examine", |call| Job::ReadRows(some.to_vec(), call)).await?);
            }
            let wall = UNIX_EPOCH.elapsed().unwrap_or_default();
            let moment = Moment { here: Host::this(), boot: BootInstant::now(), wall };
            let mut found = doctor::judge(&examination, &self.0.path, &around, &rows, moment);
            let path = self.0.path.clone();
            // Not on the worker: no batch is to wait for it.
            let looking = tokio::task::spawn_blocking(move || rights::examine(&path));
            // What was found by now is told, whatever becomes of this.
            found.extend(match tokio::time::timeout(left(), looking).await {
                Ok(Ok(open)) => open.unwrap_or_else(|error| vec![rights::unchecked(&error)]),
                Ok(Err(error)) => vec![rights::unchecked(&error)],
                Err(error) => vec![rights::unchecked(&error)],
            });
            Ok(found)
        })
    }

    fn describe(&self, incarnation: Incarnation, groups: BTreeMap<GroupName, Vec<String>>) -> StoreFuture<'_, ()> {
        // It needs no transaction, as below.
        Box::pin(
            self.ask(Duration::MAX, "describe an elector to", move |call| Job::Describe(incarnation, groups, call)),
        )
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        // It needs no transaction: it is waited for as long as it takes.
        Box::pin(self.ask(Duration::MAX, "disconnect from", move |call| Job::Disconnect(incarnation, call)))
    }
}
