//! What a soak is to be like.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chaos::Bad;

/// Where leases, ticks and locks are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A Redis server of its own, which keeps its memory unless it is made to lose it.
    Redis,
    /// A primary of its own with two replicas and three sentinels.
    Sentinel,
    /// A cluster of its own of three primaries and three replicas.
    Cluster,
    /// An SQLite file of its own.
    Sqlite,
    /// What this URL names. It is somebody else's, and nothing is done to it.
    Foreign(String),
}

impl Place {
    /// What `--store` names.
    ///
    /// # Errors
    /// Says what it may be.
    pub fn parse(text: &str) -> Result<Self, String> {
        const SCHEMES: [&str; 7] = [
            "sqlite:///",
            "redis://",
            "rediss://",
            "redis-sentinel://",
            "rediss-sentinel://",
            "redis-cluster://",
            "rediss-cluster://",
        ];
        match text {
            "redis" => Ok(Self::Redis),
            "sentinel" => Ok(Self::Sentinel),
            "cluster" => Ok(Self::Cluster),
            "sqlite" => Ok(Self::Sqlite),
            _ if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) => Ok(Self::Foreign(text.to_owned())),
            // It may hold a password.
            _ => Err("it is none of redis, sentinel, cluster, sqlite, and no URL of a store for several processes"
                .to_owned()),
        }
    }

    /// Servers of Redis have it, of whatever kind.
    #[must_use]
    pub fn is_redis(&self) -> bool {
        match self {
            Self::Sqlite => false,
            Self::Foreign(url) => !url.starts_with("sqlite:"),
            Self::Redis | Self::Sentinel | Self::Cluster => true,
        }
    }

    /// Its name in a report and on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
            Self::Sqlite => "sqlite",
            Self::Foreign(_) => "URL",
        }
    }
}

/// A rule broken on purpose: the checker must notice, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// A leader's view has no deadline.
    NoDeadline,
    /// A Redis server that may have lost its memory gives leases at once.
    NoQuarantine,
    /// The deadline of a lock is not looked at.
    LockNoDeadline,
    /// A body runs without its lock where the store gave none.
    LockFailsOpen,
    /// Every acquisition of a lock has the same token.
    LockOneToken,
    /// Nobody keeps a ledger: each process wakes by its own clock, and the body asks who leads.
    WithoutLedger,
}

impl Variant {
    /// All, with their names on the command line.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::NoDeadline, "no-deadline"),
        (Self::NoQuarantine, "no-quarantine"),
        (Self::LockNoDeadline, "lock-no-deadline"),
        (Self::LockFailsOpen, "lock-fails-open"),
        (Self::LockOneToken, "lock-one-token"),
        (Self::WithoutLedger, "without-ledger"),
    ];

    /// The variant of this name.
    ///
    /// # Errors
    /// Says which there are.
    pub fn parse(name: &str) -> Result<Self, String> {
        let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
        let found = Self::ALL.iter().find(|(_, n)| *n == name).map(|(variant, _)| *variant);
        found.ok_or_else(|| format!("`{name}` is none of {}", names.join(", ")))
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(variant, _)| *variant == self).map_or("", |(_, name)| name)
    }

    /// It is in the script for Redis.
    #[must_use]
    pub fn is_of_redis(self) -> bool {
        matches!(self, Self::NoQuarantine | Self::LockOneToken)
    }

    /// The same as a broken rule of the tasks that take locks.
    #[must_use]
    pub fn of_locks(self) -> Option<Bad> {
        match self {
            Self::LockNoDeadline => Some(Bad::NoDeadline),
            Self::LockFailsOpen => Some(Bad::FailsOpen),
            _ => None,
        }
    }
}

/// One soak.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where leases, ticks and locks are.
    pub place: Place,
    /// How long faults happen, and what is between them.
    pub time: Duration,
    /// Chooses the faults, how many processes there are, and what they do.
    pub seed: u64,
    /// How many processes; by the seed otherwise.
    pub processes: Option<usize>,
    /// How long a lease lasts, and a lock.
    pub ttl: Duration,
    /// About so many ticks come due each second.
    pub rate: usize,
    /// A rule broken on purpose.
    pub variant: Option<Variant>,
    /// In which folder the history is kept of a soak that found something; the one for temporary files otherwise.
    pub keep: Option<PathBuf>,
    /// The report as JSON.
    pub json: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            place: Place::Redis,
            time: Duration::from_secs(600),
            seed: 1,
            processes: None,
            ttl: Duration::from_secs(1),
            rate: 20,
            variant: None,
            keep: None,
            json: false,
        }
    }
}

impl Settings {
    /// How many processes: 4 to 6 by the seed.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes.unwrap_or(4 + (self.seed % 3) as usize)
    }

    /// How long one call of the store may take.
    #[must_use]
    pub fn operation_timeout(&self) -> Duration {
        self.ttl * 3 / 10
    }

    /// Time from a failure to the next attempt.
    #[must_use]
    pub fn retry(&self) -> Duration {
        self.ttl / 5
    }

    /// Within which a group has a leader after a fault: a ttl and two tries. What a process takes to start, or sentinels and
    /// nodes to agree on another server, comes on top.
    #[must_use]
    pub fn bound(&self) -> Duration {
        self.ttl + 2 * self.retry()
    }

    /// The command that does it again.
    #[must_use]
    pub fn command(&self) -> String {
        let store = match &self.place {
            // Its URL may hold a password.
            Place::Foreign(_) => "URL",
            own => own.name(),
        };
        let minutes = self.time.as_secs_f64() / 60.0;
        let mut line = format!(
            "cargo run --release -p leader-tests --bin soak -- --minutes {minutes} --seed {} --store {store} --processes {} --ttl {} \
             --rate {}",
            self.seed,
            self.processes(),
            self.ttl.as_millis(),
            self.rate
        );
        if let Some(variant) = self.variant {
            line += &format!(" --variant {}", variant.name());
        }
        line
    }
}
