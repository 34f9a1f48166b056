//! What reads a configuration, for tests that hand in anything.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::error::ConfigError;
use crate::group::GroupName;
use crate::store::LeaseStore;

/// The configuration in these environment variables.
///
/// # Errors
/// As [`Config::from_env`].
pub fn from_variables(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Config, ConfigError> {
    Config::from_variables(variables)
}

/// Its store, which is not opened yet.
///
/// # Errors
/// If the URL, or a setting that is for the store, is refused.
pub fn store(config: &Config) -> Result<Arc<dyn LeaseStore>, ConfigError> {
    config.open_store()
}

/// Its groups, and which of them are only observed.
///
/// # Errors
/// If a name is refused.
pub fn groups(config: &Config) -> Result<Vec<(GroupName, bool)>, ConfigError> {
    config.all_groups()
}

/// The ttl less the guard, the heartbeat and the operation time-out.
///
/// # Errors
/// If the rules of a rhythm refuse it.
pub fn rhythm(config: &Config) -> Result<[Duration; 3], ConfigError> {
    let timing = config.timing.resolve()?;
    Ok([timing.ttl.saturating_sub(timing.guard), timing.heartbeat, timing.operation_timeout])
}
