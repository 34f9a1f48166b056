//! The store: which one, and what it is told when it is opened.

use std::sync::Arc;
use std::time::Duration;

use super::{Config, RedisClient};
use crate::error::ConfigError;
use crate::store::LeaseStore;

#[derive(Clone)]
pub(crate) enum StoreChoice {
    Url { url: String, options: StoreOptions },
    Given(Arc<dyn LeaseStore>),
}

/// What a store that is opened by its URL is told.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(any(feature = "redis-fred", feature = "redis-rs", feature = "sqlite")),
    allow(dead_code, reason = "for stores that are left out")
)]
pub(crate) struct StoreOptions {
    pub(crate) fresh_store: FreshStore,
    pub(crate) prefix: String,
    pub(crate) lock_prefix: String,
    pub(crate) shortest_quarantine: Duration,
    pub(crate) replicas: u8,
    pub(crate) redis_client: Option<RedisClient>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let fresh_store = FreshStore::default();
        let (prefix, lock_prefix) = ("leader:".to_owned(), "_lock:".to_owned());
        Self { fresh_store, prefix, lock_prefix, shortest_quarantine: Duration::ZERO, replicas: 0, redis_client: None }
    }
}

impl StoreOptions {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refuse =
            |prefix: &str, reason| Err(ConfigError::Prefix { prefix: prefix.chars().take(80).collect(), reason });
        for prefix in [&self.prefix, &self.lock_prefix] {
            let reason = if prefix.is_empty() {
                "it is empty".to_owned()
            } else if prefix.len() > 128 {
                format!("it has {} characters", prefix.len())
            } else if let Some(c) = prefix.chars().find(|c| !c.is_ascii_graphic() || "{}*?[]\\".contains(*c)) {
                format!("it contains `{}`", c.escape_default())
            } else {
                continue;
            };
            return refuse(prefix, reason);
        }
        if self.prefixes_meet() {
            let reason = format!("keys of leases, which begin with `{}`, could be those of locks", self.prefix);
            return refuse(&self.lock_prefix, reason);
        }
        self.redis_client.map_or(Ok(()), RedisClient::check)
    }

    /// Whether some lock's key can be some group's lease.
    fn prefixes_meet(&self) -> bool {
        match self.lock_prefix.strip_prefix(&self.prefix) {
            // What follows in the key of a lease is the name of a group.
            Some(rest) => rest.is_empty() || crate::group::is_valid(rest),
            None => self.prefix.starts_with(&self.lock_prefix),
        }
    }
}

/// What a store does that finds no record of a group: it may be new, or may have lost its memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreshStore {
    /// Lets nobody lead for one ttl, because an instance may still rightly believe in a lease that was lost. The first
    /// start of a fleet on a new store waits that long, once.
    #[default]
    Wait,
    /// Takes it for new. For tests and development.
    Trust,
}

impl Config {
    /// The store, which is not opened yet.
    pub(crate) fn open_store(&self) -> Result<Arc<dyn LeaseStore>, ConfigError> {
        match (&self.store, self.misplaced) {
            (StoreChoice::Url { url, options }, _) => {
                options.check()?;
                let store = crate::store::open(url, options)?;
                if options.replicas > 0 && !store.guarantees().loses_acknowledged_writes {
                    return Err(ConfigError::NoReplicas { replicas: options.replicas, address: store.address() });
                }
                Ok(store)
            }
            (StoreChoice::Given(_), Some(setting)) => Err(ConfigError::StoreSetting { setting }),
            (StoreChoice::Given(store), None) => Ok(Arc::clone(store)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn no_key_of_a_lock_can_be_that_of_a_lease() {
        let check = |prefix: &str, lock_prefix: &str| {
            let (prefix, lock_prefix) = (prefix.to_owned(), lock_prefix.to_owned());
            StoreOptions { prefix, lock_prefix, ..StoreOptions::default() }.check()
        };
        for (prefix, lock_prefix) in
            [("leader:", "_lock:"), ("app:", "app:lock:"), ("_", "_lock:"), ("leader:", "leader:lock:")]
        {
            assert_eq!(check(prefix, lock_prefix), Ok(()), "{prefix} {lock_prefix}");
        }
        for (prefix, lock_prefix, reason) in [
            ("app:", "app:", "leases, which begin with `app:`"),
            ("app:", "app:lock-", "leases"),
            ("app:leader:", "app:", "leases"),
            ("leader:", "", "empty"),
            ("leader:", "a{b", "contains `{`"),
        ] {
            let text = check(prefix, lock_prefix).unwrap_err().to_string();
            assert!(text.contains(reason), "{prefix} {lock_prefix}: {text}");
        }
    }

    #[test]
    fn a_setting_of_the_store_is_refused_where_it_would_be_lost() {
        let given = || Config::with_store(MemoryStore::new());
        for (config, setting) in [
            (given().fresh_store(FreshStore::Trust), "fresh_store"),
            (given().prefix("app:"), "prefix"),
            (given().shortest_quarantine(Duration::from_secs(30)), "shortest_quarantine"),
            (given().replicas(1), "replicas"),
            (given().redis_client(RedisClient::Fred), "redis_client"),
        ] {
            assert_eq!(config.open_store().err(), Some(ConfigError::StoreSetting { setting }));
        }
        assert!(given().open_store().is_ok());
    }

    #[test]
    fn replicas_are_waited_for_by_a_store_that_can_have_some_and_by_no_other() {
        let url = if cfg!(feature = "sqlite") { "sqlite:///var/lib/app/leader.db" } else { "memory:" };
        let refused = Config::new(url).replicas(2).open_store().err().unwrap();
        let text = refused.to_string();
        assert!(text.contains("replicas(2)") && text.contains(url) && text.contains("LEADER_REPLICAS"), "{text}");
        assert!(Config::new(url).replicas(0).open_store().is_ok());
        #[cfg(any(feature = "redis-rs", feature = "redis-fred"))]
        assert!(Config::new("redis://host").replicas(2).open_store().is_ok());
        assert!(format!("{:?}", Config::new("redis://host").replicas(2)).contains("replicas: Some(2)"));
    }

    #[test]
    fn a_prefix_is_printable_and_has_no_braces() {
        for bad in ["", "a b", "{a}", "a*", "é", "a\n", &"x".repeat(129)] {
            let refused = Config::new("memory:").prefix(bad).open_store().err();
            assert!(matches!(refused, Some(ConfigError::Prefix { .. })), "{bad:?}: {refused:?}");
        }
        assert!(Config::new("memory:").prefix("app:leader:").open_store().is_ok());
    }
}
