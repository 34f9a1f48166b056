//! The store for a fleet on many hosts: a Redis server.
//!
//! A lease is a key that expires; beside it stands a record that does not ([`keys`]). Each batch is one call of a script
//! ([`script`], `scripts/*.lua`), which also finds out whether the server may have lost its memory. What a client library
//! must do, and must not, is in [`connection`]; the libraries are behind [`client`]; how a link is replaced, in [`session`].

mod address;
mod aside;
mod client;
mod cluster;
mod connection;
mod doctor;
mod elector;
mod failure;
mod fence;
#[cfg(feature = "redis-fred")]
mod fred;
mod keys;
mod locks;
#[cfg(feature = "redis-rs")]
mod redis_rs;
mod replicas;
mod rights;
mod script;
mod sentinel;
mod session;
mod slot;
#[cfg(feature = "testing")]
pub(crate) mod testing;
#[cfg(test)]
#[cfg(feature = "redis-fred")]
#[path = "tests/mod.rs"]
mod tests_by_fred;
#[cfg(test)]
#[cfg(feature = "redis-rs")]
#[path = "tests/mod.rs"]
#[allow(clippy::duplicate_mod, reason = "each client has to pass all of it")]
mod tests_by_redis_rs;
mod ticks;
mod tie;
mod ties;
mod told;
mod twins;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::address::Place;
use self::aside::apart;
use self::client::Connector;
use self::connection::Failure;
use self::doctor::Here;
use self::failure::code;
use self::keys::Keys;
use self::locks::LockKeys;
use self::replicas::Needs;
use self::script::Common;
use self::session::Session;
use self::tie::{Kind, Tie};
use self::ties::{Servers, Ties};
use super::{
    Answer, Answers, Batch, Command, Examination, Guarantees, LeaseStore, LockAnswers, LockBatch, StoreFuture,
    TickAnswers, TickBatch,
};
use crate::config::{FreshStore, RedisClient, StoreOptions};
use crate::doctor::Finding;
use crate::error::{ConfigError, StoreError, StoreUrlError};
use crate::fence::{GuardedAnswer, GuardedWrite};
use crate::group::GroupName;
use crate::identity::Incarnation;

/// Leases, locks and the ledger of ticks in a Redis server, for instances on any number of hosts (feature `redis`, on by
/// default). Redis 6.2 or newer.
///
/// Two crates can speak to the server, `redis` (feature `redis-rs`, which `redis` stands for) and `fred` (feature
/// `redis-fred`). Both keep the same promises; where both are built in, [`RedisStore::client`] chooses.
///
/// Each elector has a connection for its commands and one that listens to announced releases, in its own thread. A connection
/// that fails is replaced, and no command is ever sent twice.
///
/// - Keys: `leader:<group>` is the lease, the leader's instance id with a time to live; other implementations of the
///   same election can share it. `{leader:<group>}:term` is the record, a hash that does not expire: without it, nobody
///   but the present leader gets the lease for one ttl.
/// - Channels: on `leader:<group>` releases are announced, on `leader:id:<instance id>` electors with one id find each other, if
///   the [doctor](crate::Elector::doctor) of one asks.
/// - A server that may have lost leases (it was restarted, emptied, rolled back, or another one took its place) gives
///   none for one ttl, because a leader that it has forgotten may still believe in its lease. So the first start of a
///   fleet on a new server takes a ttl, once; see [`FreshStore`]. A leader that is still within its right takes its seat
///   again meanwhile.
/// - Locks have connections of their own, opened with the first of them. Their keys: `_lock:<key>` is a lock, with a time to
///   live, which other implementations that look whether the key is there can share; `{_lock:<key>}:queue` and `:waiting` are
///   there while somebody waits for it, `{_lock:once:<key>}:done` notes that work is done that is run once. A server that
///   lost a lock gives it to whoever asks next, and the older owner learns that with its next renewal: the token tells who was
///   first. Nothing stays of a lock that is free, so if the server's clock was set back, a token can be smaller than an earlier
///   one that no elector which asks has seen: what compares tokens then refuses, until the clock has caught up.
/// - So has the ledger of ticks. Its keys: `{leader:<group>}:job:<name>` is the record of a job, a hash, and
///   `{leader:<group>}:runs:<name>` its history, a list of the last 120 lines; neither expires. Ticks that were claimed before
///   the server lost its memory count as claimed, unless the leader that claimed them leads all the time.
/// - Guarded writes ([`fence`](crate::fence)) have connections of their own, too. Beside each key that they write stands
///   `{<key>}:fence`, for a day.
/// - By Sentinel (`redis-sentinel://`), each connection leads to the primary that the sentinels name when it is opened, by the
///   latest election that any of them tells of. One of them is asked again once in an operation time-out, at most once a
///   second: so a primary that was given up is left by everybody who can still reach it. Name all sentinels in the URL; more
///   than half of them settle a question at once, and each that answers is enough. After a failover a group has a leader
///   within a ttl and a retry of the new primary's first answer.
/// - If instances have different ttls, tell all of them the largest:
///   [`Config::shortest_quarantine`](crate::Config::shortest_quarantine).
/// - In a Redis Cluster each group, and each lock, is on the node that has its slot, and all nodes that the URL does not name
///   are found by those that it does. A node that fails takes its groups with it until its replica has taken its place, and
///   for a ttl more; with `cluster-require-full-coverage no` the other groups notice nothing. A slot that is moved to another
///   node takes no leader from its groups. Guarded writes need keys in the slot of the lease or lock, such as
///   `{leader:<group>}:balance`. The user needs `+cluster|slots +asking` on top.
/// - Limits: a jump of the server's own clock can give two leaders until the older one's next renew. If that clock was set back
///   while the server lost its memory, and the only instance that knew the last term is silent, a term can come twice, and so
///   can a tick. Two servers that both take writes for one name have a leader each; so have two
///   primaries by Sentinel, for as long as a leader reaches the old one and no sentinel that knows of the new one.
///   [`Config::replicas`](crate::Config::replicas) with all replicas excludes that; on Redis 7 or newer, `min-replicas-to-write 1`
///   with a `min-replicas-max-lag` below the ttl bounds it.
/// - Where replicas are waited for, acquires and renews of leases go out on a connection where nothing else waits behind them;
///   locks, notes that work is done, and ticks that are claimed, kept or given back are waited for on theirs. What is not waited
///   for may be lost: guarded writes, the history of jobs, and the end of a run, which then counts as one whose leader died.
///
/// ```
/// use leader_core::store::{LeaseStore, RedisStore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::new("redis://user:secret@cache.internal/2")?;
/// assert_eq!(store.address(), "redis://***@cache.internal:6379/2");
/// assert!(store.guarantees().between_hosts);
///
/// let store = RedisStore::new("redis-sentinel://user:secret@s1.internal,s2.internal,s3.internal/mymaster")?;
/// assert_eq!(
///     store.address(),
///     "redis-sentinel://***@s1.internal:26379,s2.internal:26379,s3.internal:26379/mymaster/0"
/// );
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    place: Place,
    servers: Servers,
    address: String,
    /// The primary is found by sentinels, and may be another one soon.
    has_sentinels: bool,
    keys: Keys,
    options: StoreOptions,
    script: Arc<str>,
    lock_keys: LockKeys,
    lock_script: Arc<str>,
    fence_scripts: fence::Scripts,
    ties: Arc<Mutex<HashMap<Incarnation, Arc<Ties>>>>,
}

impl RedisStore {
    /// The store in the server that `url` names: `redis://[user][:password@]host[:port][/database]`; in the primary that
    /// sentinels name: `redis-sentinel://[user][:password@]host[:port][,host2[:port]…]/service[/database]`; or in the cluster
    /// of the nodes that it names: `redis-cluster://[user][:password@]host[:port][,host2[:port]…]`. User and password are those
    /// of the servers; where sentinels ask for one too, it follows as `?sentinel_user=…&sentinel_password=…`. Special characters
    /// in them are percent-encoded. `rediss://…`, `rediss-sentinel://…` and `rediss-cluster://…` speak TLS (feature
    /// `redis-tls`). Nothing is opened yet.
    ///
    /// # Errors
    /// [`StoreUrlError`] says which part of the URL is wrong; it never shows a password.
    pub fn new(url: &str) -> Result<Self, StoreUrlError> {
        Self::open(url, &StoreOptions::default())
    }

    pub(crate) fn open(url: &str, options: &StoreOptions) -> Result<Self, StoreUrlError> {
        let place = Place::parse(url)?;
        let (address, has_sentinels) = (place.to_string(), matches!(place, Place::Sentinels(_)));
        let connector = Connector::for_options(options);
        let servers = Servers::at(place.clone(), connector);
        Ok(Self(Arc::new(Inner {
            place,
            keys: Keys::new(&options.prefix)
                .spread(matches!(servers, Servers::Cluster(..)))
                .waiting(options.replicas > 0),
            servers,
            address,
            has_sentinels,
            options: options.clone(),
            script: script::TEXT.into(),
            lock_keys: LockKeys::new(&options.lock_prefix),
            lock_script: locks::TEXT.into(),
            fence_scripts: fence::Scripts::default(),
            ties: Arc::default(),
        })))
    }

    /// What to think of a group without a record.
    #[must_use]
    pub fn fresh_store(self, fresh: FreshStore) -> Self {
        self.with(|inner| inner.options.fresh_store = fresh)
    }

    /// See [`Config::shortest_quarantine`](crate::Config::shortest_quarantine).
    #[must_use]
    pub fn shortest_quarantine(self, shortest: Duration) -> Self {
        self.with(|inner| inner.options.shortest_quarantine = shortest)
    }

    /// What the names of the keys begin with, `leader:` by default.
    ///
    /// # Errors
    /// [`ConfigError::Prefix`] with the reason.
    pub fn prefix(self, prefix: &str) -> Result<Self, ConfigError> {
        let options = StoreOptions { prefix: prefix.to_owned(), ..self.0.options.clone() };
        options.check()?;
        Ok(self.with(|inner| {
            inner.keys = inner.keys.renamed(prefix);
            inner.options = options;
        }))
    }

    /// What the names of the keys of locks begin with, `_lock:` by default.
    ///
    /// # Errors
    /// [`ConfigError::Prefix`] with the reason.
    pub fn lock_prefix(self, prefix: &str) -> Result<Self, ConfigError> {
        let options = StoreOptions { lock_prefix: prefix.to_owned(), ..self.0.options.clone() };
        options.check()?;
        Ok(self.with(|inner| {
            inner.lock_keys = LockKeys::new(prefix);
            inner.options = options;
        }))
    }

    /// See [`Config::replicas`](crate::Config::replicas).
    #[must_use]
    pub fn replicas(self, replicas: u8) -> Self {
        self.with(|inner| {
            inner.keys = inner.keys.clone().waiting(replicas > 0);
            inner.options.replicas = replicas;
        })
    }

    /// The crate that speaks to the server: by default the one behind the feature `redis`, or the only one that is built in.
    ///
    /// # Errors
    /// [`ConfigError::RedisClientNotBuiltIn`] with the feature that is missing.
    ///
    /// ```
    /// use leader_core::{RedisClient, store::RedisStore};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = RedisStore::new("redis://cache.internal")?;
    /// # #[cfg(feature = "redis-rs")]
    /// let store = store.client(RedisClient::RedisRs)?;
    /// # Ok(()) }
    /// ```
    pub fn client(self, client: RedisClient) -> Result<Self, ConfigError> {
        let connector = Connector::of(client)?;
        Ok(self.with(|inner| {
            inner.servers = Servers::at(inner.place.clone(), connector);
            inner.options.redis_client = Some(client);
        }))
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// This store with a rule of its script broken, so that a checker can show that it would notice.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_script_flaw(self, flaw: testing::Flaw) -> Self {
        self.with(|inner| inner.script = flaw.in_script(&inner.script).into())
    }

    /// The same of the script for locks.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_lock_flaw(self, flaw: testing::LockFlaw) -> Self {
        self.with(|inner| inner.lock_script = flaw.in_script(&inner.lock_script).into())
    }

    fn all_ties(&self) -> MutexGuard<'_, HashMap<Incarnation, Arc<Ties>>> {
        // Held for a look or an assignment only: a poisoned one is whole.
        self.0.ties.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of this elector.
    fn ties(&self, incarnation: Incarnation) -> Result<Arc<Ties>, Failure> {
        let ties = self.all_ties().get(&incarnation).cloned();
        ties.ok_or_else(|| Failure::Unreachable("this elector is not connected".to_owned()))
    }

    fn error(&self, failure: Failure, attempted: &str, timeout: Duration) -> StoreError {
        self.0.store_error(failure, format!("{attempted} {}", self.0.address), timeout)
    }

    async fn execute(&self, commands: &[Command], timeout: Duration) -> Result<Answers, Failure> {
        let Some(first) = commands.first() else { return Ok(Vec::new()) };
        let ties = self.ties(first.candidate.incarnation)?;
        let inner = &*self.0;
        let told = ties.leases.listener().and_then(Session::elector).map(|elector| &elector.told);
        let going = told.map(|told| told.with(commands)).unwrap_or_default();
        let common = Common {
            keys: &inner.keys,
            shortest_quarantine: inner.options.shortest_quarantine,
            trusts_fresh: inner.options.fresh_store == FreshStore::Trust,
            told: &going,
        };
        let kind = Kind {
            key: &|command: &Command| inner.keys.lease(&command.group),
            arguments: &|commands| script::arguments(commands, common),
            read: script::answers,
            needs: Needs::new(inner.options.replicas, is_a_right),
        };
        let answers = match &ties.aside {
            None => ties.leases.batch(commands, &kind, timeout).await?,
            Some(aside) => apart(&ties.leases, aside, commands, &kind, timeout).await?,
        };
        let of = |(answer, command): (Result<Answer, Failure>, &Command)| {
            if let (Some(told), Some(sent), Ok(answer)) = (told, going.get(&command.group), &answer) {
                told.answered(&command.group, sent, answer);
            }
            let attempted = || format!("{} of {} on", command.op.name(), command.group);
            answer.map_err(|failure| self.error(failure, &attempted(), timeout))
        };
        Ok(answers.into_iter().zip(commands).map(of).collect())
    }
}

impl Inner {
    /// What a failure means for whoever `attempted` something within `timeout`.
    fn store_error(&self, failure: Failure, attempted: String, timeout: Duration) -> StoreError {
        let failure = match failure {
            // Not by a mistake in the URL: sentinels have made another one the primary, and the next link leads there.
            Failure::Server(error) if self.has_sentinels && ["READONLY", "MASTERDOWN"].contains(&code(&error)) => {
                Failure::Unreachable(error)
            }
            failure => failure,
        };
        failure::store_error(failure, attempted, timeout, &self.keys)
    }
}

/// Whoever is answered so believes in the lease, for longer than the server's word may last. To a release nobody holds on, and
/// what others hold is theirs whether replicas know or not.
fn is_a_right(answer: &Answer) -> bool {
    matches!(answer, Answer::Won(_) | Answer::Renewed)
}

/// What a batch does, for a message.
fn name(commands: &[Command]) -> &'static str {
    match commands {
        [one] => one.op.name(),
        _ => "a batch",
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({})", self.0.address)
    }
}

impl LeaseStore for RedisStore {
    fn address(&self) -> String {
        self.0.address.clone()
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            between_processes: true,
            between_hosts: true,
            survives_restart: false,
            loses_acknowledged_writes: true,
        }
    }

    fn connect(&self, session: super::Session) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let (incarnation, timeout) = (session.candidate.incarnation, session.timeout);
            let (fences, groups) = (self.script_with(fence::SET), session.groups.clone());
            let ties = Arc::clone(
                self.all_ties().entry(incarnation).or_insert_with(|| Arc::new(Ties::new(&self.0, fences, session))),
            );
            // If they are of an attempt before this one, the elector may have started its jobs since.
            ties.tell(&groups);
            // An attempt that takes longer than a call may goes on: the next call finds what has become of it.
            let opened = match (ties.leases.listener(), &ties.aside) {
                (Some(session), Some(Tie::Server(aside))) => {
                    tokio::try_join!(session.open(), aside.open_beside()).map(drop)
                }
                (Some(session), _) => session.open().await,
                (None, _) => Ok(()),
            };
            opened.map_err(|failure| self.error(failure, "connect to", timeout))
        })
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        Box::pin(async move {
            let executed = self.execute(&batch.commands, batch.timeout).await;
            let attempted = || format!("{} on", name(&batch.commands));
            executed.map_err(|failure| self.error(failure, &attempted(), batch.timeout))
        })
    }

    fn execute_locks(&self, batch: LockBatch) -> StoreFuture<'_, LockAnswers> {
        Box::pin(async move { self.execute_lock_commands(&batch.commands, batch.timeout).await })
    }

    fn execute_ticks(&self, batch: TickBatch) -> StoreFuture<'_, TickAnswers> {
        Box::pin(async move { self.execute_tick_commands(&batch.commands, batch.timeout).await })
    }

    fn execute_guarded(&self, write: GuardedWrite) -> StoreFuture<'_, GuardedAnswer> {
        Box::pin(self.execute_guarded_write(write))
    }

    fn examine(&self, examination: Examination) -> StoreFuture<'_, Vec<Finding>> {
        Box::pin(async move {
            // What was found has to be told before the time is over.
            let until = Instant::now() + examination.timeout.mul_f64(0.9);
            let inner = &*self.0;
            let ties = self.ties(examination.candidate.incarnation);
            let session = ties.as_ref().ok().and_then(|ties| ties.leases.listener());
            let deaf = session.and_then(Session::deaf);
            let here = Here {
                keys: &inner.keys,
                examination: &examination,
                deaf: deaf.as_deref(),
                shortest_quarantine: inner.options.shortest_quarantine,
                // Who listens to nothing hears no answer.
                twins: session.filter(|_| deaf.is_none()).and_then(Session::elector).map(|elector| &elector.twins),
                memory: ties.as_ref().ok().map(|ties| &ties.memory),
                replicas: inner.options.replicas,
                until,
            };
            // Not the session's link: a command would wait behind a question, and a question that gets no answer ends it.
            let examined = match &inner.servers {
                Servers::One(client) => {
                    let sentinels = client.examine(until).await;
                    let examined = match client.connect(until.saturating_duration_since(Instant::now())).await {
                        Ok(link) => doctor::examine(&*link, here, inner.has_sentinels).await,
                        Err(failure) => doctor::examine_refusal(failure),
                    };
                    examined.map(|found| sentinels.into_iter().chain(found).collect())
                }
                Servers::Cluster(..) => match ties.as_ref().map(|ties| ties.map.clone()) {
                    Ok(Some(map)) => doctor::examine_cluster(&map, here).await,
                    Ok(None) => Ok(Vec::new()),
                    Err(failure) => Err(failure.clone()),
                },
            };
            examined.map_err(|failure| self.error(failure, "examine", examination.timeout))
        })
    }

    fn describe(&self, incarnation: Incarnation, groups: BTreeMap<GroupName, Vec<String>>) -> StoreFuture<'_, ()> {
        // One that is not connected, or not any more, says it when it is.
        if let Ok(ties) = self.ties(incarnation) {
            ties.tell(&groups);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let ties = self.all_ties().remove(&incarnation);
            // Outside of the lock.
            drop(ties);
            Ok(())
        })
    }
}
