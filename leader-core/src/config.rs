//! What an elector is told: where the leases live, which groups to take part in, and in which rhythm.

mod env;
mod redis_client;
mod store;
mod timing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::election::{Reclaim, RenewalFailure};
use crate::error::ConfigError;
use crate::group::{GroupName, declared_groups};
use crate::identity::InstanceId;
use crate::store::LeaseStore;

pub use redis_client::RedisClient;
pub use store::FreshStore;
pub(crate) use store::{StoreChoice, StoreOptions};
pub(crate) use timing::{MIN_TTL, Timing};

/// The configuration of an [`Elector`](crate::Elector).
///
/// Setters take and return it; nothing is checked before the start, and then everything is, before anything runs.
///
/// ```
/// use leader_core::Config;
/// use std::time::Duration;
///
/// let config = Config::new("sqlite:///var/lib/app/leader.db")
///     .groups(["reports"])
///     .ttl(Duration::from_secs(5));
/// ```
#[derive(Clone)]
#[must_use]
pub struct Config {
    pub(crate) store: StoreChoice,
    /// A setting for a store that is opened by its URL, set for one that was given.
    misplaced: Option<&'static str>,
    pub(crate) groups: Vec<String>,
    pub(crate) expected: Vec<String>,
    pub(crate) observed: Vec<String>,
    pub(crate) observe_only: bool,
    pub(crate) instance_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) timing: timing::Wishes,
    pub(crate) renewal_failure: RenewalFailure,
    pub(crate) reclaim: Reclaim,
    pub(crate) require_store: bool,
    pub(crate) clock: Clock,
    #[cfg(feature = "testing")]
    pub(crate) known_bad: Option<crate::election::KnownBad>,
}

impl Config {
    /// Leases in the store at `url`: `redis://host:6379` for instances on any number of hosts,
    /// `sqlite:///var/lib/app/leader.db` for those of one host, `memory:` for tests.
    pub fn new(url: impl Into<String>) -> Self {
        Self::on(StoreChoice::Url { url: url.into(), options: StoreOptions::default() })
    }

    /// Leases in any store.
    ///
    /// ```
    /// use leader_core::{Config, store::MemoryStore};
    ///
    /// let config = Config::with_store(MemoryStore::new());
    /// ```
    pub fn with_store(store: impl LeaseStore) -> Self {
        Self::on(StoreChoice::Given(Arc::new(store)))
    }

    /// As the environment says. `LEADER_STORE` must be set; each of the others stands for the setter of its name:
    /// `LEADER_GROUPS`, `LEADER_OBSERVE` (names with commas between), `LEADER_INSTANCE_ID` (the readable part of the id, to
    /// which a random suffix is added), `LEADER_TTL`, `LEADER_HEARTBEAT`, `LEADER_RETRY`, `LEADER_OPERATION_TIMEOUT`
    /// (durations such as `10s` or `500ms`), `LEADER_PREFIX`, `LEADER_LOCK_PREFIX`, `LEADER_REPLICAS` (a number),
    /// `LEADER_REDIS_CLIENT` (`fred` or `redis-rs`).
    ///
    /// Any other variable that begins with `LEADER_` is only warned about: Kubernetes sets some for a service called
    /// `leader`.
    ///
    /// # Errors
    /// [`ConfigError`] if `LEADER_STORE` is missing, a duration or number cannot be read, no client has that name, or one of these
    /// is not Unicode.
    pub fn from_env() -> Result<Self, ConfigError> {
        env::read(std::env::vars_os())
    }

    fn on(store: StoreChoice) -> Self {
        Self {
            store,
            misplaced: None,
            groups: Vec::new(),
            expected: Vec::new(),
            observed: Vec::new(),
            observe_only: false,
            instance_id: None,
            name: None,
            timing: timing::Wishes::default(),
            renewal_failure: RenewalFailure::default(),
            reclaim: Reclaim::default(),
            require_store: false,
            clock: Clock::Boot,
            #[cfg(feature = "testing")]
            known_bad: None,
        }
    }

    /// Takes part in these groups too, besides `default` and those that `#[leader_only]` declares.
    pub fn groups<S: Into<String>>(mut self, groups: impl IntoIterator<Item = S>) -> Self {
        self.groups.extend(groups.into_iter().map(Into::into));
        self
    }

    /// Fails the start unless each of these groups is declared by `#[leader_only]` somewhere in the program: a library that
    /// nothing mentions is not linked, and its jobs would silently be missing.
    pub fn expect_groups<S: Into<String>>(mut self, groups: impl IntoIterator<Item = S>) -> Self {
        self.expected.extend(groups.into_iter().map(Into::into));
        self
    }

    /// Never leads these groups; only looks who does.
    pub fn observe<S: Into<String>>(mut self, groups: impl IntoIterator<Item = S>) -> Self {
        self.observed.extend(groups.into_iter().map(Into::into));
        self
    }

    /// Never leads any group: for a dashboard, or a process that serves requests only.
    pub fn observe_only(mut self) -> Self {
        self.observe_only = true;
        self
    }

    /// How long a lease lasts in the store: 100 ms to 1 h, 10 s by default. After a crash the group has no leader for so
    /// long, where the store cannot tell a death at once.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.timing.ttl = Some(ttl);
        self
    }

    /// Time from one renew to the next: a third of the ttl by default. Heartbeat and operation time-out together must be
    /// shorter than the ttl less the guard.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.timing.heartbeat = Some(heartbeat);
        self
    }

    /// Time from an error to the next attempt: a third of the ttl and at most 1 s by default. A random part only shortens it;
    /// from the second error in a row on it doubles, up to the ttl, and up to a quarter of what is left of a lease that can be
    /// kept (but not below `retry`).
    pub fn retry(mut self, retry: Duration) -> Self {
        self.timing.retry = Some(retry);
        self
    }

    /// How long each call of the store may take: a fifth of the ttl and at most 1 s by default.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.timing.operation_timeout = Some(timeout);
        self
    }

    /// The largest drift of a clock that the guard allows for, in millionths: 500 by default. The guard is
    /// `max(2 ms, 2 × drift × ttl)`: so much earlier than the store a leader ends its view.
    pub fn drift_ppm(mut self, drift: u32) -> Self {
        self.timing.drift_ppm = Some(drift);
        self
    }

    /// What a failed renewal means; [`RenewalFailure::DemoteAtOnce`] by default.
    pub fn renewal_failure(mut self, policy: RenewalFailure) -> Self {
        self.renewal_failure = policy;
        self
    }

    /// What to do with a lease that an earlier incarnation of the same stable instance id left; [`Reclaim::AtOnce`] by
    /// default.
    pub fn reclaim(mut self, policy: Reclaim) -> Self {
        self.reclaim = policy;
        self
    }

    /// A stable instance id, exactly as given: a promise that no two live processes have it. After an unclean restart it
    /// takes its own lease back at once.
    pub fn instance_id(mut self, id: impl Into<String>) -> Self {
        self.instance_id = Some(id.into());
        self
    }

    /// How long [`bootstrap`](crate::bootstrap()) may wait for the first round: the ttl by default, and at most 15 s. Without
    /// this setting it also waits until a store that gives no leases yet (see [`FreshStore`]) gives them, 15 s and one attempt at
    /// most.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.timing.start_timeout = Some(timeout);
        self
    }

    /// How long a step-down waits for running work to end: 10 s by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.timing.grace = Some(grace);
        self
    }

    /// Fails the start if the store could not be reached within the start time-out. By default the program starts as a
    /// follower, warns, and goes on trying.
    pub fn require_store(mut self, require: bool) -> Self {
        self.require_store = require;
        self
    }

    /// What to think of a store without a record; [`FreshStore::Wait`] by default. For stores that are opened by their URL.
    pub fn fresh_store(self, fresh: FreshStore) -> Self {
        self.store_option("fresh_store", |options| options.fresh_store = fresh)
    }

    /// What the names of the keys begin with, in a Redis server that is opened by its URL: `leader:` by default. Fleets with
    /// different prefixes elect apart; all instances of one fleet need the same.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        self.store_option("prefix", |options| options.prefix = prefix.into())
    }

    /// What the names of the keys of locks begin with, in a Redis server that is opened by its URL: `_lock:` by default. All who
    /// are to exclude each other need the same, other implementations of such locks included.
    pub fn lock_prefix(self, prefix: impl Into<String>) -> Self {
        self.store_option("lock_prefix", |options| options.lock_prefix = prefix.into())
    }

    /// A Redis server that may have lost its memory gives no lease for the asker's ttl, or for the ttl in its record, or for
    /// so long, whichever is longest. It has to be the largest ttl in the fleet where instances have different ones; zero by
    /// default. For a store that is opened by its URL.
    pub fn shortest_quarantine(self, shortest: Duration) -> Self {
        self.store_option("shortest_quarantine", |options| options.shortest_quarantine = shortest)
    }

    /// So many replicas of the Redis server must have a lease or lock before it counts, 0 by default: after each acquire that is
    /// won and each renew, after each tick that is claimed or given back, and after work that is done once is noted as done, the
    /// server is asked to `WAIT` for them. For a store that is opened by its URL.
    ///
    /// A server gives its answer before its replicas have what it answers for. One that is cut off from them, together with a
    /// leader, goes on to renew that one's lease, while a replica becomes the primary elsewhere and gives it to another: two
    /// leaders, for as long as that lasts. With *every* replica of the server named here there is one: the replica that was
    /// promoted confirms nothing to its old primary any more, and the new one gives no lease until what was confirmed before
    /// has ended. With fewer than all there may be two for as long as so many still follow the old primary.
    ///
    /// What it costs:
    /// - Availability. While fewer replicas are connected, or they do not answer within three quarters of the
    ///   [`operation_timeout`](Self::operation_timeout), nobody leads and no lock is taken: what was not confirmed has failed, as
    ///   if no answer had come ([`renewal_failure`](Self::renewal_failure)). The problem in the status says how many there
    ///   are. It ends by itself when replicas are back; or lower this number, and restart the instances.
    /// - One command more for a batch that wins or renews something, and the way to the replicas and back: a renew takes 1.7 times as
    ///   long, where all are on one host (a median of 450 in place of 270 µs, measured).
    /// - A connection more for each elector, so that releases and questions who leads wait for no replica; and the
    ///   permission `+wait` for the server's user.
    ///
    /// Ticks are waited for because a server that was given up can still answer a claim between two answers of its successor. Guarded
    /// writes are not: what a failover loses of them, it loses together with the token beside it.
    ///
    /// ```
    /// use leader_core::Config;
    ///
    /// // A primary with two replicas.
    /// let config = Config::new("redis-sentinel://s1.internal,s2.internal,s3.internal/jobs").replicas(2);
    /// ```
    pub fn replicas(self, replicas: u8) -> Self {
        self.store_option("replicas", |options| options.replicas = replicas)
    }

    /// The crate that speaks to a Redis server that is opened by its URL: by default the one behind the feature `redis`, or the
    /// only one that is built in. One that is not built in is refused at the start.
    pub fn redis_client(self, client: RedisClient) -> Self {
        self.store_option("redis_client", |options| options.redis_client = Some(client))
    }

    fn store_option(mut self, setting: &'static str, set: impl FnOnce(&mut StoreOptions)) -> Self {
        match &mut self.store {
            StoreChoice::Url { options, .. } => set(options),
            StoreChoice::Given(_) => self.misplaced = Some(setting),
        }
        self
    }

    /// The groups to compete for, and those to observe, each once and in order.
    pub(crate) fn all_groups(&self) -> Result<Vec<(GroupName, bool)>, ConfigError> {
        let declared = declared_groups();
        let mut groups = std::collections::BTreeMap::new();
        for (name, sites) in &declared {
            let name = GroupName::new(name)
                .map_err(|invalid| ConfigError::DeclaredGroup { invalid, site: sites[0].to_string() })?;
            groups.insert(name, self.observe_only);
        }
        for name in self.groups.iter().map(String::as_str).chain([GroupName::DEFAULT]) {
            groups.insert(GroupName::new(name)?, self.observe_only);
        }
        for name in &self.observed {
            groups.insert(GroupName::new(name)?, true);
        }
        let missing: Vec<String> =
            self.expected.iter().filter(|name| !declared.contains_key(name.as_str())).cloned().collect();
        if !missing.is_empty() {
            return Err(ConfigError::MissingGroups {
                missing,
                declared: declared.keys().map(ToString::to_string).collect(),
            });
        }
        Ok(groups.into_iter().collect())
    }

    /// The instance id: the stable one, or one made from the environment or the host, with a random suffix.
    pub(crate) fn resolve_instance_id(&self) -> Result<InstanceId, ConfigError> {
        if let Some(id) = &self.instance_id {
            return Ok(InstanceId::new(id)?);
        }
        let named = |variable: &str| std::env::var(variable).ok().filter(|v| !v.is_empty());
        let name = self.name.clone().or_else(|| named("LEADER_INSTANCE_ID")).or_else(|| named("POD_NAME"));
        Ok(InstanceId::with_random_suffix(&name.unwrap_or_else(host_name)))
    }
}

#[cfg(feature = "testing")]
impl Config {
    /// As these environment variables say.
    pub(crate) fn from_variables(
        variables: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<Self, ConfigError> {
        env::read(variables)
    }

    /// Reads the time from a clock that the test moves.
    pub fn manual_clock(mut self, clock: crate::testing::ManualClock) -> Self {
        self.clock = Clock::Manual(clock);
        self
    }

    #[doc(hidden)]
    pub fn known_bad(mut self, variant: crate::election::KnownBad) -> Self {
        if variant == crate::election::KnownBad::WallClock {
            self.clock = Clock::Wall;
        }
        self.known_bad = Some(variant);
        self
    }
}

#[cfg(unix)]
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "instance".to_owned())
}

impl fmt::Debug for Config {
    /// Without the store's password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (store, replicas) = match &self.store {
            StoreChoice::Url { url, options } => (crate::store::redacted(url), Some(options.replicas)),
            StoreChoice::Given(store) => (store.address(), None),
        };
        f.debug_struct("Config")
            .field("store", &store)
            .field("groups", &self.groups)
            .field("expect_groups", &self.expected)
            .field("observe", &self.observed)
            .field("observe_only", &self.observe_only)
            .field("instance_id", &self.instance_id)
            .field("timing", &self.timing)
            .field("renewal_failure", &self.renewal_failure)
            .field("reclaim", &self.reclaim)
            .field("require_store", &self.require_store)
            .field("replicas", &replicas)
            .finish_non_exhaustive()
    }
}
