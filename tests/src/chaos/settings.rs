//! What a chaos is to be like: everything but the machine that it runs on.

use std::path::PathBuf;
use std::time::Duration;

use leader_core::testing::redis_script::LockFlaw;
use serde::{Deserialize, Serialize};

/// Where the locks are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A Redis server of its own, which ends with it.
    OwnRedis,
    /// The Redis server that this URL names.
    Redis(String),
    /// An SQLite file of its own, which goes with it.
    OwnSqlite,
    /// This SQLite file.
    Sqlite(PathBuf),
}

impl Place {
    /// What `--store` names.
    ///
    /// # Errors
    /// Says what it may be.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "redis" => Ok(Self::OwnRedis),
            "sqlite" => Ok(Self::OwnSqlite),
            _ if text.starts_with("redis://") => Ok(Self::Redis(text.to_owned())),
            _ => match text.strip_prefix("sqlite://") {
                Some(path) if path.starts_with('/') => Ok(Self::Sqlite(path.into())),
                _ => Err(format!("`{text}` is none of redis, sqlite, redis://host:port/0, sqlite:///path")),
            },
        }
    }

    /// It is a Redis server.
    #[must_use]
    pub fn is_redis(&self) -> bool {
        matches!(self, Self::OwnRedis | Self::Redis(_))
    }
}

/// A rule broken on purpose: the checker must notice, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bad {
    /// The deadline of a lock is not looked at.
    NoDeadline,
    /// The body works on when its lock is lost.
    NoCancel,
    /// The body runs without the lock where the store gave none.
    FailsOpen,
    /// A release ends the lock, whoever holds it by now.
    ReleaseByKey,
    /// A free lock is given to whoever asks, though others wait.
    NoQueue,
    /// Every acquisition has the same token.
    OneToken,
    /// The work of run-once does not look whether it was committed before.
    Blind,
}

impl Bad {
    /// All, with their names on the command line.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::NoDeadline, "no-deadline"),
        (Self::NoCancel, "no-cancel"),
        (Self::FailsOpen, "fails-open"),
        (Self::ReleaseByKey, "release-by-key"),
        (Self::NoQueue, "no-queue"),
        (Self::OneToken, "one-token"),
        (Self::Blind, "blind"),
    ];

    /// The variant of this name.
    ///
    /// # Errors
    /// Says which there are.
    pub fn parse(name: &str) -> Result<Self, String> {
        let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
        let found = Self::ALL.iter().find(|(_, n)| *n == name).map(|(bad, _)| *bad);
        found.ok_or_else(|| format!("`{name}` is none of {}", names.join(", ")))
    }

    /// What is wrong with the script of a Redis server's locks.
    #[must_use]
    pub fn flaw(self) -> Option<LockFlaw> {
        match self {
            Self::ReleaseByKey => Some(LockFlaw::ReleaseByKey),
            Self::NoQueue => Some(LockFlaw::NoQueue),
            Self::OneToken => Some(LockFlaw::OneToken),
            Self::NoDeadline | Self::NoCancel | Self::FailsOpen | Self::Blind => None,
        }
    }
}

/// One chaos.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the locks are.
    pub place: Place,
    /// How long faults happen.
    pub time: Duration,
    /// Chooses the faults, and what the members do.
    pub seed: u64,
    /// How many processes.
    pub processes: usize,
    /// How many tasks of each process ask for locks.
    pub tasks: usize,
    /// How many locks.
    pub keys: usize,
    /// How long a lock outlives its holder.
    pub ttl: Duration,
    /// A rule broken on purpose.
    pub bad: Option<Bad>,
    /// Where the logs are kept; they go with the chaos otherwise.
    pub logs: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            place: Place::OwnRedis,
            time: Duration::from_secs(60),
            seed: 1,
            processes: 5,
            tasks: 4,
            keys: 3,
            ttl: Duration::from_secs(1),
            bad: None,
            logs: None,
        }
    }
}

impl Settings {
    /// How long one call of the store may take.
    #[must_use]
    pub fn operation_timeout(&self) -> Duration {
        self.ttl * 3 / 10
    }

    /// Time from a failure to the next attempt.
    #[must_use]
    pub fn retry(&self) -> Duration {
        self.ttl / 10
    }
}
