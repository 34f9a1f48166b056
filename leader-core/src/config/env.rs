//! The configuration as environment variables.

use std::ffi::OsString;
use std::time::Duration;

use super::Config;
use crate::error::ConfigError;

const PREFIX: &str = "LEADER_";

/// What means something. Whatever else begins like these is only warned about.
const KEYS: [&str; 12] = [
    "STORE",
    "GROUPS",
    "OBSERVE",
    "INSTANCE_ID",
    "TTL",
    "HEARTBEAT",
    "RETRY",
    "OPERATION_TIMEOUT",
    "PREFIX",
    "LOCK_PREFIX",
    "REPLICAS",
    "REDIS_CLIENT",
];

/// `variables` are handed in, so that a test need not change the process's own.
pub(super) fn read(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Config, ConfigError> {
    let ours = |(name, value): (OsString, OsString)| {
        let name = name.into_string().ok()?;
        let key = name.strip_prefix(PREFIX)?.to_owned();
        match value.into_string() {
            Ok(value) => Some(Ok((key, value))),
            Err(_) if KEYS.contains(&key.as_str()) => Some(Err(ConfigError::NotText { variable: name })),
            Err(value) => Some(Ok((key, value.to_string_lossy().into_owned()))),
        }
    };
    let variables = variables.filter_map(ours).collect::<Result<Vec<_>, _>>()?;
    let store = variables.iter().find(|(key, value)| key == "STORE" && !value.is_empty());
    let mut config = Config::new(&store.ok_or(ConfigError::NoStore)?.1);
    for (key, value) in variables {
        if value.is_empty() {
            continue;
        }
        config = match key.as_str() {
            "STORE" => config,
            "GROUPS" => config.groups(names(&value)),
            "OBSERVE" => config.observe(names(&value)),
            "INSTANCE_ID" => {
                config.name = Some(value);
                config
            }
            "TTL" => config.ttl(duration(&key, &value)?),
            "HEARTBEAT" => config.heartbeat(duration(&key, &value)?),
            "RETRY" => config.retry(duration(&key, &value)?),
            "OPERATION_TIMEOUT" => config.operation_timeout(duration(&key, &value)?),
            "PREFIX" => config.prefix(value),
            "LOCK_PREFIX" => config.lock_prefix(value),
            "REPLICAS" => config.replicas(number(&key, &value)?),
            "REDIS_CLIENT" => config.redis_client(value.parse()?),
            _ => {
                tracing::warn!(target: "leader", "the environment variable {PREFIX}{key} means nothing to the elector");
                config
            }
        };
    }
    Ok(config)
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn duration(key: &str, value: &str) -> Result<Duration, ConfigError> {
    humantime::parse_duration(value).map_err(|error| ConfigError::Duration {
        variable: format!("{PREFIX}{key}"),
        value: value.to_owned(),
        reason: error.to_string(),
    })
}

fn number(key: &str, value: &str) -> Result<u8, ConfigError> {
    value.trim().parse().map_err(|_| ConfigError::Number {
        variable: format!("{PREFIX}{key}"),
        value: value.to_owned(),
        most: u8::MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{RedisClient, StoreChoice};

    fn read_from(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        read(variables.iter().map(|(k, v)| ((*k).into(), (*v).into())))
    }

    #[test]
    fn each_variable_sets_its_option() {
        let config = read_from(&[
            ("LEADER_STORE", "memory:"),
            ("LEADER_GROUPS", "a, b,,"),
            ("LEADER_OBSERVE", "c"),
            ("LEADER_INSTANCE_ID", "pod-7"),
            ("LEADER_TTL", "5s"),
            ("LEADER_HEARTBEAT", "1s"),
            ("LEADER_RETRY", "250ms"),
            ("LEADER_OPERATION_TIMEOUT", "1s 500ms"),
            ("LEADER_PREFIX", "app:"),
            ("LEADER_LOCK_PREFIX", "app-lock:"),
            ("LEADER_REPLICAS", "2"),
            ("LEADER_REDIS_CLIENT", "redis-rs"),
        ])
        .unwrap();
        assert_eq!((config.groups.len(), config.observed.len()), (2, 1));
        let StoreChoice::Url { options, .. } = &config.store else { panic!("{config:?}") };
        assert_eq!((options.prefix.as_str(), options.lock_prefix.as_str()), ("app:", "app-lock:"));
        assert_eq!(options.replicas, 2);
        assert_eq!(options.redis_client, Some(RedisClient::RedisRs));
        assert!(config.resolve_instance_id().unwrap().as_str().starts_with("pod-7-"));
        let timing = config.timing.resolve().unwrap();
        assert_eq!((timing.ttl, timing.heartbeat), (Duration::from_secs(5), Duration::from_secs(1)));
        assert_eq!((timing.retry, timing.operation_timeout), (Duration::from_millis(250), Duration::from_millis(1500)));
    }

    #[test]
    fn a_store_is_needed_and_durations_need_a_unit() {
        assert!(matches!(read_from(&[]), Err(ConfigError::NoStore)));
        let error = read_from(&[("LEADER_STORE", "memory:"), ("LEADER_TTL", "10")]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("LEADER_TTL") && text.contains("`10`") && text.contains("10s"), "{text}");
    }

    #[test]
    fn replicas_are_a_number() {
        for bad in ["-1", "256", "1.5", "all"] {
            let error = read_from(&[("LEADER_STORE", "redis://host"), ("LEADER_REPLICAS", bad)]).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("LEADER_REPLICAS") && text.contains(bad) && text.contains("0 to 255"), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_not_text_is_an_error_only_where_it_would_mean_something() {
        use std::os::unix::ffi::OsStringExt;
        let read_with = |name: &str| {
            let strange = OsString::from_vec(vec![0xff]);
            read([("LEADER_STORE".into(), "memory:".into()), (name.into(), strange)].into_iter())
        };
        assert!(read_with("LEADER_PORT").is_ok());
        assert!(matches!(read_with("LEADER_TTL"), Err(ConfigError::NotText { variable }) if variable == "LEADER_TTL"));
    }

    #[test]
    fn what_kubernetes_injects_does_no_harm() {
        assert!(read_from(&[("LEADER_STORE", "memory:"), ("LEADER_PORT", "tcp://10.0.0.1:80")]).is_ok());
    }
}
