//! Which store a URL means.

use std::net::Ipv6Addr;
use std::sync::Arc;

use super::{LeaseStore, MemoryStore};
use crate::config::StoreOptions;
use crate::error::StoreUrlError;

/// The store that `url` means. Nothing is opened yet.
pub(crate) fn open(url: &str, options: &StoreOptions) -> Result<Arc<dyn LeaseStore>, StoreUrlError> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(StoreUrlError::NoScheme);
    };
    match scheme {
        "memory" => memory(rest),
        "sqlite" => sqlite(rest, options),
        "redis" | "rediss" | "redis-sentinel" | "rediss-sentinel" | "redis-cluster" | "rediss-cluster" => {
            redis(scheme, url, options)
        }
        // What precedes a colon may be a password, if somebody left the scheme out: only what looks like a scheme is shown.
        _ if rest.starts_with("//") && is_scheme(scheme) => {
            Err(StoreUrlError::UnknownScheme { scheme: scheme.to_owned() })
        }
        _ => Err(StoreUrlError::NoScheme),
    }
}

/// The URL for messages: without user, password and query.
pub(crate) fn redacted(url: &str) -> String {
    match url.split_once("://") {
        _ if url.starts_with("sqlite:") || url.starts_with("memory:") => url.to_owned(),
        Some((scheme, rest)) if is_scheme(scheme) => {
            // After the last `@`: a password that was not encoded may contain one, and slashes and question marks.
            let (user, host) = rest.rsplit_once('@').map_or(("", rest), |(_, host)| ("***@", host));
            let in_query = rest.len() > host.len() && is_in_query(&rest[..rest.len() - host.len()]);
            let (hosts, tail) = host.split_at(host.find(['/', '?', '#']).unwrap_or(host.len()));
            // A colon in the path comes from a URL without a host, too, whose user has a slash in the name.
            let in_path = tail.split('?').next().unwrap_or_default().contains(':');
            if in_query || in_path || !hosts.split(',').all(is_host) {
                return format!("{scheme}://***");
            }
            let (host, query) = host.split_once('?').map_or((host, ""), |(host, _)| (host, "?***"));
            format!("{scheme}://{user}{host}{query}")
        }
        _ => "***".to_owned(),
    }
}

/// The last `@` may stand in a value of the query: what follows it is then more of that, and no host.
fn is_in_query(text: &str) -> bool {
    text.split_once('?').is_some_and(|(_, query)| query.contains('='))
}

/// A name or an address, with a port or without: what else follows a colon is the password of a URL without a host.
fn is_host(text: &str) -> bool {
    let port = match text.strip_prefix('[').map(|text| text.split_once(']')) {
        Some(Some((address, port))) if address.parse::<Ipv6Addr>().is_ok() => port,
        Some(_) => return false,
        None => text.find(':').map_or("", |colon| &text[colon..]),
    };
    port.strip_prefix(':').unwrap_or(port).bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn memory(name: &str) -> Result<Arc<dyn LeaseStore>, StoreUrlError> {
    Ok(Arc::new(MemoryStore::named(name.trim_start_matches("//"))))
}

#[cfg(feature = "sqlite")]
fn sqlite(rest: &str, options: &StoreOptions) -> Result<Arc<dyn LeaseStore>, StoreUrlError> {
    let path = match rest.strip_prefix("//") {
        // `sqlite://host/path`: what follows two slashes is a host by the rules of URLs, and this file has none.
        Some(path) if !path.starts_with('/') => return Err(StoreUrlError::SqlitePath),
        Some(path) => path,
        None => rest,
    };
    if path.is_empty() || path.ends_with('/') || path.contains(['?', '#', '\0']) {
        return Err(StoreUrlError::SqlitePath);
    }
    Ok(Arc::new(super::SqliteStore::new(path).fresh_store(options.fresh_store)))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_rest: &str, _options: &StoreOptions) -> Result<Arc<dyn LeaseStore>, StoreUrlError> {
    Err(StoreUrlError::NotBuiltIn { scheme: "sqlite".to_owned(), feature: "sqlite", since: "this version" })
}

#[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
fn redis(_scheme: &str, url: &str, options: &StoreOptions) -> Result<Arc<dyn LeaseStore>, StoreUrlError> {
    Ok(Arc::new(super::RedisStore::open(url, options)?))
}

#[cfg(not(any(feature = "redis-fred", feature = "redis-rs")))]
fn redis(scheme: &str, _url: &str, _options: &StoreOptions) -> Result<Arc<dyn LeaseStore>, StoreUrlError> {
    Err(StoreUrlError::NotBuiltIn { scheme: scheme.to_owned(), feature: "redis", since: "this version" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str) -> Result<Arc<dyn LeaseStore>, StoreUrlError> {
        super::open(url, &StoreOptions::default())
    }

    fn refused(url: &str) -> String {
        match open(url) {
            Ok(store) => panic!("`{url}` means {}", store.address()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_url_means_a_store() {
        for (url, address) in [("memory:", "memory:"), ("memory:jobs", "memory:jobs"), ("memory://jobs", "memory:jobs")]
        {
            assert_eq!(open(url).unwrap().address(), address);
        }
        #[cfg(feature = "sqlite")]
        for (url, address) in [
            ("sqlite:///var/lib/app/leader.db", "sqlite:///var/lib/app/leader.db"),
            ("sqlite:/var/lib/app/leader.db", "sqlite:///var/lib/app/leader.db"),
            ("sqlite:leader.db", "sqlite:leader.db"),
        ] {
            assert_eq!(open(url).unwrap().address(), address);
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_sqlite_url_without_a_path_says_which_forms_exist() {
        for url in ["sqlite:", "sqlite://", "sqlite:///", "sqlite://leader.db", "sqlite:///a/", "sqlite:a?mode=ro"] {
            let text = refused(url);
            assert!(text.contains("sqlite:///") && text.contains("sqlite:leader.db"), "{url}: {text}");
        }
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn a_store_that_is_not_built_in_names_its_feature() {
        assert!(refused("sqlite:///a").contains("feature `sqlite`"));
    }

    #[cfg(not(any(feature = "redis-fred", feature = "redis-rs")))]
    #[test]
    fn a_redis_url_names_the_feature_and_never_the_password() {
        for scheme in ["redis", "rediss", "redis-sentinel", "rediss-sentinel", "redis-cluster", "rediss-cluster"] {
            let text = refused(&format!("{scheme}://user:secret@host:6379"));
            assert!(text.contains("feature `redis`") && text.contains(scheme) && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn an_unknown_scheme_lists_the_known_ones() {
        for (url, shown) in [
            ("http://user:secret@host", "`http`"),
            ("postgres://u:secret@host", "`postgres`"),
            ("secret:6379", "no scheme"),
            ("secret", "no scheme"),
            ("", "no scheme"),
            ("s&cret://host", "no scheme"),
        ] {
            let text = refused(url);
            for known in [shown, "`redis://", "`rediss://", "`redis-sentinel://", "`sqlite:///", "`memory:`"] {
                assert!(text.contains(known), "{url}: {text}");
            }
            assert!(!text.contains("secret") && !text.contains("s&cret"), "{text}");
        }
    }

    #[test]
    fn a_redacted_url_shows_no_password() {
        for (url, shown) in [
            ("sqlite:///var/leader.db", "sqlite:///var/leader.db"),
            ("memory:jobs", "memory:jobs"),
            ("redis://host:6379/0", "redis://host:6379/0"),
            ("redis://user:secret@host:6379/0", "redis://***@host:6379/0"),
            ("redis://:se@c/r?et@host?password=secret", "redis://***@host?***"),
            ("redis-sentinel://u:secret@a,b/m?sentinel_password=secret", "redis-sentinel://***@a,b/m?***"),
            ("redis://[::1]:7000,host/0", "redis://[::1]:7000,host/0"),
            ("redis://user:secret", "redis://***"),
            ("redis://user:not?secret", "redis://***"),
            ("redis://a,b:not/secret", "redis://***"),
            ("redis://us/er:secret", "redis://***"),
            ("redis://[user:secret]", "redis://***"),
            ("redis-sentinel://u@a/m?sentinel_password=secr@t/secret", "redis-sentinel://***"),
            ("secret:secret@host", "***"),
            ("secret", "***"),
        ] {
            assert_eq!(redacted(url), shown);
        }
    }
}
