//! Which crate speaks to Redis.

use std::fmt;
use std::str::FromStr;

use crate::error::ConfigError;

/// The crate that speaks to a Redis server. Both keep the same promises; each is a cargo feature.
///
/// ```
/// use leader_core::RedisClient;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert_eq!("redis-rs".parse::<RedisClient>()?, RedisClient::RedisRs);
/// assert_eq!(RedisClient::Fred.to_string(), "fred");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisClient {
    /// The crate `fred`: feature `redis-fred`.
    Fred,
    /// The crate `redis`, whose repository is called redis-rs: feature `redis-rs`.
    RedisRs,
}

impl RedisClient {
    /// # Errors
    /// [`ConfigError::RedisClientNotBuiltIn`], if it is not.
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        let is_built_in = match self {
            Self::Fred => cfg!(feature = "redis-fred"),
            Self::RedisRs => cfg!(feature = "redis-rs"),
        };
        if is_built_in { Ok(()) } else { Err(self.is_left_out()) }
    }

    pub(crate) fn is_left_out(self) -> ConfigError {
        let feature = match self {
            Self::Fred => "redis-fred",
            Self::RedisRs => "redis-rs",
        };
        ConfigError::RedisClientNotBuiltIn { client: self, feature }
    }
}

impl fmt::Display for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fred => "fred",
            Self::RedisRs => "redis-rs",
        })
    }
}

/// From its name, as it stands in `LEADER_REDIS_CLIENT`.
impl FromStr for RedisClient {
    type Err = ConfigError;

    /// # Errors
    /// [`ConfigError::RedisClientName`], for any other name.
    fn from_str(name: &str) -> Result<Self, ConfigError> {
        match name {
            "fred" => Ok(Self::Fred),
            "redis-rs" => Ok(Self::RedisRs),
            _ => Err(ConfigError::RedisClientName { name: name.chars().take(80).collect() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_client_that_is_not_built_in_is_refused_with_its_feature() {
        for (client, feature, is_built_in) in [
            (RedisClient::Fred, "redis-fred", cfg!(feature = "redis-fred")),
            (RedisClient::RedisRs, "redis-rs", cfg!(feature = "redis-rs")),
        ] {
            let opened = Config::new("memory:").redis_client(client).open_store();
            assert_eq!(opened.is_ok(), is_built_in, "{client}");
            if let Err(error) = opened {
                assert!(error.to_string().contains(&format!("feature `{feature}`")), "{error}");
            }
        }
    }

    #[test]
    fn a_name_that_no_client_has_lists_those_that_there_are() {
        let text = "redis".parse::<RedisClient>().unwrap_err().to_string();
        assert!(text.contains("`redis`") && text.contains("`fred`") && text.contains("`redis-rs`"), "{text}");
    }
}
