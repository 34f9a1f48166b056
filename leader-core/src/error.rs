//! What can go wrong, and what to do about it.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::config::RedisClient;
use crate::group::{GroupName, InvalidGroupName};
use crate::identity::InvalidInstanceId;
use crate::work::RunningWork;

/// A store did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached, or is busy, for now.
    #[error("{attempted} failed: {cause}; trying again")]
    Unavailable {
        /// What was tried, on what: `acquire on sqlite:///var/lib/app/leader.db`.
        attempted: String,
        /// What the store or the system said.
        cause: String,
    },
    /// No answer came in time; whether the command was executed is unknown.
    #[error("{attempted} got no answer within {after:?}; trying again")]
    TimedOut {
        /// What was tried, on what.
        attempted: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The store will go on refusing until somebody does something.
    #[error("{attempted} was refused: {cause}; {advice}")]
    Refused {
        /// What was tried, on what.
        attempted: String,
        /// What the store or the system said.
        cause: String,
        /// What to do.
        advice: String,
    },
}

impl StoreError {
    /// Whether the error will not pass by itself: wrong password, missing permission, a file that is not ours.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// The message for whoever is given this error for good: without the promise that it is tried again.
    pub(crate) fn in_the_end(&self) -> String {
        match self {
            Self::Unavailable { attempted, cause } => format!("{attempted} failed: {cause}"),
            Self::TimedOut { attempted, after } => format!("{attempted} got no answer within {after:?}"),
            Self::Refused { .. } => self.to_string(),
        }
    }

    /// For leader-cron.
    #[doc(hidden)]
    #[must_use]
    pub fn __in_the_end(&self) -> String {
        self.in_the_end()
    }

    /// For leader-cron: as the log of leader-core decides it.
    #[doc(hidden)]
    #[must_use]
    pub fn __is_like(&self, other: &Self) -> bool {
        self.is_like(other)
    }

    /// Whether it says the same, whatever was attempted: no news for a log.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unavailable { cause, .. }, Self::Unavailable { cause: before, .. }) => cause == before,
            (Self::TimedOut { .. }, Self::TimedOut { .. }) => true,
            (Self::Refused { cause, .. }, Self::Refused { cause: before, .. }) => cause == before,
            _ => false,
        }
    }
}

/// A configuration that cannot be used. Nothing was started.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No store was named.
    #[error(
        "the environment variable LEADER_STORE is not set; set it to the address of the store, such as `redis://host:6379` or `sqlite:///var/lib/app/leader.db`"
    )]
    NoStore,
    /// A variable is not Unicode.
    #[error("the environment variable {variable} is not valid Unicode")]
    NotText {
        /// Its name.
        variable: String,
    },
    /// A duration cannot be read.
    #[error(
        "{variable} is `{value}`, which is not a duration ({reason}); write a number and a unit, such as `10s` or `500ms`"
    )]
    Duration {
        /// The environment variable.
        variable: String,
        /// Its value.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A number cannot be read.
    #[error("{variable} is `{value}`, which is not a whole number from 0 to {most}")]
    Number {
        /// The environment variable.
        variable: String,
        /// Its value.
        value: String,
        /// The largest that it can be.
        most: u8,
    },
    /// Times that do not keep the rules.
    #[error("the rule `{rule}` is broken by {values}; use {instead} instead")]
    Timing {
        /// The rule.
        rule: &'static str,
        /// The values.
        values: String,
        /// Values that would do.
        instead: String,
    },
    /// A group name.
    #[error(transparent)]
    Group(#[from] InvalidGroupName),
    /// A group name in an attribute.
    #[error("{invalid} (declared by #[leader_only] at {site})")]
    DeclaredGroup {
        /// What is wrong with it.
        invalid: InvalidGroupName,
        /// The place.
        site: String,
    },
    /// An instance id.
    #[error(transparent)]
    InstanceId(#[from] InvalidInstanceId),
    /// Groups that were expected and that nothing declares.
    #[error(
        "no #[leader_only] declares {missing:?} (declared are: {declared:?}); a library that the program never mentions is \
         not linked: mention it with `use the_library as _;`"
    )]
    MissingGroups {
        /// Those that are missing.
        missing: Vec<String>,
        /// Those that there are.
        declared: Vec<String>,
    },
    /// A store's address.
    #[error(transparent)]
    StoreUrl(#[from] StoreUrlError),
    /// A setting of a store that is opened by its URL, for one that was handed over.
    #[error(
        "Config::{setting} is for a store that is opened by its URL, and this configuration was given one by Config::with_store; \
         set it on the store itself"
    )]
    StoreSetting {
        /// The setting.
        setting: &'static str,
    },
    /// Replicas to be waited for, of a store that has none.
    #[error(
        "Config::replicas({replicas}) is for Redis servers that have replicas, and `{address}` has none: what it has confirmed it \
         loses by no failover; leave the setting out (or LEADER_REPLICAS)"
    )]
    NoReplicas {
        /// How many.
        replicas: u8,
        /// The store's address.
        address: String,
    },
    /// What the names of the keys should begin with.
    #[error(
        "`{prefix}` cannot be a prefix of keys: {reason}; use 1 to 128 printable ASCII characters without blanks, braces and \
         globs, such as `leader:`"
    )]
    Prefix {
        /// Its begin.
        prefix: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A client for Redis that there is not.
    #[error("no client for Redis is called `{name}`; write `fred` or `redis-rs` (LEADER_REDIS_CLIENT)")]
    RedisClientName {
        /// The begin of the name.
        name: String,
    },
    /// A client for Redis that is not part of this build.
    #[error(
        "the client `{client}` for Redis needs the cargo feature `{feature}` of leader-core, which this build does not have; \
         enable it, or leave the choice to the build (Config::redis_client, LEADER_REDIS_CLIENT)"
    )]
    RedisClientNotBuiltIn {
        /// The client that was chosen.
        client: RedisClient,
        /// The feature to enable.
        feature: &'static str,
    },
    /// A clock that is moved by hand cannot serve the whole process.
    #[error("an elector with a manual clock cannot be bootstrapped; start it with Elector::start and use its scope")]
    ManualClock,
}

/// An elector could not be started. Nothing is left running, and no lease is held.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot be used.
    #[error("the elector was not started: {0}")]
    Config(#[from] ConfigError),
    /// This process has an elector already.
    #[error(
        "the elector was not started: this process has one since {place}; shut that one down first, or use Elector::start and scopes"
    )]
    AlreadyRunning {
        /// Where the first one was bootstrapped.
        place: &'static Location<'static>,
    },
    /// The store refuses to be used.
    #[error("the elector was not started: {0}")]
    Store(StoreError),
    /// The store could not be reached in time, and the configuration requires it.
    #[error(
        "the elector was not started: {store} was not reached within {waited:?} ({last}); see that it runs and can be reached from here, or do not require it"
    )]
    Unreachable {
        /// The store's address.
        store: String,
        /// How long it was tried.
        waited: Duration,
        /// The last error.
        last: String,
    },
    /// The system gave no thread.
    #[error("the elector was not started: no thread for it: {0}")]
    Thread(std::io::Error),
    /// The driver ended while it started.
    #[error("the elector ended while it started; the log says why")]
    Ended,
}

/// A group was not stepped down from, drained, or left.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DrainError {
    /// Work outlived the grace; its lease is not given away under it.
    #[error("{}", still_running(running))]
    StillRunning {
        /// What.
        running: Vec<RunningWork>,
    },
    /// The store did not confirm the release. This instance leads no more; the lease ends by itself.
    #[error(
        "the release of {groups:?} was not confirmed ({cause}); this instance leads them no more, and their leases end by themselves within the ttl"
    )]
    Unconfirmed {
        /// The groups.
        groups: Vec<GroupName>,
        /// Why.
        cause: String,
    },
    /// [`Elector::resume`](crate::Elector::resume) came before it was complete.
    #[error("a resume has ended it before it was complete: this instance competes again")]
    Resumed,
    /// No such group here.
    #[error(transparent)]
    UnknownGroup(#[from] UnknownGroup),
    /// The elector has ended.
    #[error("the elector has ended")]
    Stopped,
}

fn still_running(running: &[RunningWork]) -> String {
    let (locks, work): (Vec<_>, Vec<_>) = running.iter().partition(|running| running.is_lock);
    let list = |all: &[&RunningWork]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (held, on) = (list(&locks), list(&work));
    match (work.is_empty(), locks.is_empty()) {
        (_, true) => {
            format!("work is still running: {on}; its lease is kept, so that nobody begins the same work beside it")
        }
        (true, false) => format!(
            "still held: {held}; a lock is not given away under its work: it ends with that, or by itself within its ttl"
        ),
        (false, false) => format!(
            "work is still running: {on}; still held: {held}; leases and locks are kept, so that nobody begins the same work \
             beside it"
        ),
    }
}

/// The elector takes no part in a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this elector takes no part in group `{group}` (it has {known:?}); add it with Config::groups, or see that the code that declares it is linked"
)]
pub struct UnknownGroup {
    pub(crate) group: String,
    pub(crate) known: Vec<GroupName>,
}

/// The store could not be asked who leads.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// No such group here.
    #[error(transparent)]
    UnknownGroup(#[from] UnknownGroup),
    /// The store did not answer.
    #[error("{}", .0.in_the_end())]
    Store(#[from] StoreError),
    /// The elector has ended.
    #[error("the elector has ended")]
    Stopped,
}

/// The store could not be examined. What the store itself refuses is no error: it is a [`Finding`](crate::Finding).
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// The elector has ended.
    #[error("the elector has ended, so there is nobody who could examine its store")]
    Stopped,
}

/// Why an instance should be restarted.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotLive {
    /// The driver's thread has ended by itself.
    #[error("the driver of the elector has died; restart this instance")]
    DriverDead,
    /// The driver did not run for longer than a whole ttl past the end of a view.
    #[error(
        "the driver stands still: the view of group {group} ended {overdue:?} ago and was not cleared; restart this instance"
    )]
    DriverStuck {
        /// The group.
        group: GroupName,
        /// For how long.
        overdue: Duration,
    },
}

/// Why an instance should not be sent requests yet.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// The first round is not over.
    #[error("the first round of the elections is not over ({done} of {all} groups)")]
    Starting {
        /// Groups whose leader is known.
        done: usize,
        /// All groups.
        all: usize,
    },
    /// The elector has ended.
    #[error("the elector has ended")]
    Stopped,
}

/// A `main` that returns an error prints its Debug: let it be the message.
macro_rules! debug_is_display {
    ($($error:ty),*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_is_display!(ConfigError, StartError, DrainError, InspectError, DoctorError, NotLive, NotReady);
/// Why a URL means no store. It never shows more of the URL than its scheme: the rest may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// The text does not begin with a scheme.
    #[error(
        "the store's URL has no scheme; use `redis://host:6379`, `rediss://host:6379` (by TLS), \
         `redis-sentinel://host:26379/service`, `sqlite:///path/to/leader.db` or `memory:`"
    )]
    NoScheme,
    /// No store has this scheme.
    #[error(
        "no store has the scheme `{scheme}`; use `redis://host:6379`, `rediss://host:6379` (by TLS), \
         `redis-sentinel://host:26379/service`, `sqlite:///path/to/leader.db` or `memory:`"
    )]
    UnknownScheme {
        /// What precedes the colon.
        scheme: String,
    },
    /// The store with this scheme is not part of this build.
    #[error(
        "a `{scheme}` URL needs the cargo feature `{feature}` of leader-core, which {since} offers and this build does not \
         have; for the instances of one host there is `sqlite:///path`, and for a store of your own Config::with_store"
    )]
    NotBuiltIn {
        /// What precedes the colon.
        scheme: String,
        /// The feature to enable.
        feature: &'static str,
        /// Which version offers that feature.
        since: &'static str,
    },
    /// A SQLite URL without a usable path.
    #[error(
        "a SQLite URL needs the path of a file: `sqlite:///var/lib/app/leader.db` (absolute) or `sqlite:leader.db` \
         (relative to the working directory), without `?` and `#`"
    )]
    SqlitePath,
    /// A part of a Redis URL that cannot be used.
    #[error("the {part} of the Redis URL {problem}; a Redis URL looks like {form}")]
    Redis {
        /// Which part.
        part: &'static str,
        /// What is wrong with it, without its text.
        problem: String,
        /// What a URL with this scheme looks like.
        form: &'static str,
    },
}
