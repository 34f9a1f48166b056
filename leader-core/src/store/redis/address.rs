//! What a Redis URL says. Only this file ever sees one.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::error::StoreUrlError;

const PORT: u16 = 6379;

/// The keys that may follow the question mark.
const KEYS: &str = "`ca` (a PEM file with the certificates to trust, for `rediss://`)";

/// Where a Redis server is, and who we are to it. Its `Debug` and `Display` show neither user nor password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// By TLS, or in plain text.
    pub(super) tls: bool,
    pub(super) server: Server,
    /// Without it, the server's `default` user.
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u8,
    /// The certificates to trust, in place of the system's.
    pub(super) ca: Option<PathBuf>,
}

/// One server.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// A name or an address; IPv6 without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// Reads `redis://[user][:password@]host[:port][/database][?key=value]`, or `rediss://…` for TLS.
    pub(super) fn parse(url: &str) -> Result<Self, StoreUrlError> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("scheme", "is not followed by `//`"))?;
        let tls = match scheme {
            "redis" => false,
            "rediss" => tls()?,
            "redis-sentinel" | "redis-cluster" => {
                return Err(StoreUrlError::SeveralServers { scheme: scheme.to_owned() });
            }
            _ => return Err(StoreUrlError::UnknownScheme { scheme: scheme.to_owned() }),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if tail.contains('@') {
            // Nothing of it is shown or used: it may be the rest of a password.
            return Err(wrong(
                "user or password",
                "contains `/`, `?` or `#`; write `%2F`, `%3F` or `%23` for them, and `%40` for an `@` after the host",
            ));
        }
        let (tail, fragment) = tail.split_once('#').map_or((tail, None), |(tail, fragment)| (tail, Some(fragment)));
        if fragment.is_some() {
            return Err(wrong("end", "is a fragment (`#…`), which means nothing here"));
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (credentials, server) =
            authority.rsplit_once('@').map_or((None, authority), |(user, server)| (Some(user), server));
        let (user, password) = credentials.map_or(Ok((None, None)), who)?;
        let address =
            Self { tls, server: Server::parse(server)?, user, password, database: database(path)?, ca: ca(query)? };
        if address.ca.is_some() && !tls {
            return Err(wrong("query", "names a `ca`, which only `rediss://` makes use of"));
        }
        Ok(address)
    }
}

impl Server {
    fn parse(text: &str) -> Result<Self, StoreUrlError> {
        if text.contains(',') {
            return Err(wrong("host", "is a list, and this version speaks to a single server"));
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(text) => {
                let (host, port) = text.split_once(']').ok_or_else(|| wrong("host", "has no closing bracket"))?;
                if host.parse::<Ipv6Addr>().is_err() {
                    return Err(wrong("host", "stands in brackets, but is no IPv6 address"));
                }
                (host, port)
            }
            None => {
                let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                if host.is_empty() {
                    return Err(wrong("host", "is missing"));
                }
                if !host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
                    return Err(wrong("host", "has characters that no host name has"));
                }
                (host, port)
            }
        };
        Ok(Self { host: host.to_owned(), port: self::port(port)? })
    }
}

/// `text` is what follows the host. It is not shown: it may be the password of a URL without a host.
fn port(text: &str) -> Result<u16, StoreUrlError> {
    let problem = || {
        wrong(
            "port",
            "is not a number from 1 to 65535 (if it is part of an IPv6 address: that stands in brackets; \
             if it is a password: an `@` and the host have to follow it)",
        )
    };
    match text {
        "" => Ok(PORT),
        _ => text.strip_prefix(':').and_then(number::<u16>).filter(|port| *port > 0).ok_or_else(problem),
    }
}

/// User and password. A user without a password is one that has none: it still has to say who it is.
fn who(credentials: &str) -> Result<(Option<String>, Option<String>), StoreUrlError> {
    let (user, password) =
        credentials.split_once(':').map_or((credentials, None), |(user, password)| (user, Some(password)));
    let user = decoded("user", user)?;
    let password = password.map(|password| decoded("password", password)).transpose()?;
    if user.is_empty() {
        return Ok((None, password.filter(|password| !password.is_empty())));
    }
    Ok((Some(user), Some(password.unwrap_or_default())))
}

fn database(path: &str) -> Result<u8, StoreUrlError> {
    match path.strip_prefix('/').unwrap_or(path) {
        "" => Ok(0),
        text => {
            number(text).ok_or_else(|| wrong("path", "is not the number of a database from 0 to 255, such as `/0`"))
        }
    }
}

fn ca(query: &str) -> Result<Option<PathBuf>, StoreUrlError> {
    let mut ca = None;
    for (key, value) in query.split('&').filter(|pair| !pair.is_empty()).map(|p| p.split_once('=').unwrap_or((p, ""))) {
        if key != "ca" {
            let shown = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
            let key = if shown { format!("has the key `{key}`") } else { "has a key".to_owned() };
            return Err(wrong("query", format!("{key}, which means nothing; there is {KEYS}")));
        }
        let path = decoded("query", value)?;
        if path.is_empty() || ca.replace(PathBuf::from(path)).is_some() {
            return Err(wrong("query", format!("needs one value for {KEYS}")));
        }
    }
    Ok(ca)
}

fn decoded(part: &'static str, text: &str) -> Result<String, StoreUrlError> {
    let mut rest = text;
    while let Some((_, escaped)) = rest.split_once('%') {
        if !escaped.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
            return Err(wrong(part, "has a `%` without two hexadecimal digits after it; write `%25` for a `%`"));
        }
        rest = escaped;
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| wrong(part, "is not UTF-8 once it is decoded"))
}

/// Digits only: `parse` takes a sign too.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn wrong(part: &'static str, problem: impl Into<String>) -> StoreUrlError {
    StoreUrlError::Redis { part, problem: problem.into() }
}

#[cfg(feature = "redis-tls")]
fn tls() -> Result<bool, StoreUrlError> {
    Ok(true)
}

#[cfg(not(feature = "redis-tls"))]
fn tls() -> Result<bool, StoreUrlError> {
    Err(StoreUrlError::NotBuiltIn { scheme: "rediss".to_owned(), feature: "redis-tls", since: "this version" })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let who = if self.password.is_some() { "***@" } else { "" };
        write!(f, "{scheme}://{who}{}/{}", self.server, self.database)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Address {
        Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn each_part_may_be_left_out() {
        for (url, shown) in [
            ("redis://localhost", "redis://localhost:6379/0"),
            ("redis://10.0.0.1:7000", "redis://10.0.0.1:7000/0"),
            ("redis://redis-0.redis.svc/", "redis://redis-0.redis.svc:6379/0"),
            ("redis://host/15", "redis://host:6379/15"),
            ("redis://[::1]", "redis://[::1]:6379/0"),
            ("redis://[fe80::1]:6380/1", "redis://[fe80::1]:6380/1"),
            ("redis://:secret@host", "redis://***@host:6379/0"),
            ("redis://user:secret@host:1/2?", "redis://***@host:1/2"),
        ] {
            assert_eq!(parsed(url).to_string(), shown);
        }
        assert_eq!(parsed("redis://[::1]").server.host, "::1");
    }

    #[test]
    fn user_and_password_are_decoded() {
        for (url, user, password) in [
            ("redis://host", None, None),
            ("redis://@host", None, None),
            ("redis://:@host", None, None),
            ("redis://:secret@host", None, Some("secret")),
            ("redis://worker:p%40ss%2Fw%25rd@host", Some("worker"), Some("p@ss/w%rd")),
            ("redis://worker:a:b@host", Some("worker"), Some("a:b")),
            ("redis://worker:a@b@host", Some("worker"), Some("a@b")),
            ("redis://w%C3%B6rker:%F0%9F%94%91@host", Some("wörker"), Some("🔑")),
            // A user that needs no password has to say its name all the same.
            ("redis://worker@host", Some("worker"), Some("")),
        ] {
            let address = parsed(url);
            assert_eq!((address.user.as_deref(), address.password.as_deref()), (user, password), "{url}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_and_the_password_is_not() {
        for (url, part) in [
            ("redis:secret", "scheme"),
            ("redis://", "host of"),
            ("redis://:6379", "host of"),
            ("redis://user:secret@", "host of"),
            ("redis://ho st", "host of"),
            ("redis://a:1,b:2", "host of"),
            ("redis://[secret", "host of"),
            ("redis://[secret]", "host of"),
            ("redis://[::1]secret", "port of"),
            ("redis://fe80::1", "port of"),
            ("redis://user:secret", "port of"),
            ("redis://host:", "port of"),
            ("redis://host:0", "port of"),
            ("redis://host:+1", "port of"),
            ("redis://host:65536", "port of"),
            ("redis://host/secret", "path of"),
            ("redis://host/0/", "path of"),
            ("redis://host/256", "path of"),
            ("redis://host/-1", "path of"),
            ("redis://:secr/et@host", "user or password"),
            ("redis://:secr?et@host", "user or password"),
            ("redis://:secr#et@host", "user or password"),
            ("redis://:secret%@host", "password of"),
            ("redis://:secret%2@host", "password of"),
            ("redis://:secret%zz@host", "password of"),
            ("redis://:secret%ff@host", "password of"),
            ("redis://secret%ff@host", "user of"),
            ("redis://host#secret", "end of"),
            ("redis://host?password=secret", "query of"),
            ("redis://host?se&cret", "query of"),
            ("redis://host?s%65cret=secret", "query of"),
            ("redis://host?ca=/secret.pem", "query of"),
        ] {
            let error = Address::parse(url).expect_err(url);
            let text = format!("{error} {error:?}");
            assert!(text.contains(&format!("the {part}")), "{url}: {text}");
            assert!(text.contains("`redis://user:password@host:6379/0`"), "{url}: {text}");
            assert!(!text.contains("secr"), "{url}: {text}");
        }
        let text = Address::parse("redis://host?timeout=1").unwrap_err().to_string();
        assert!(text.contains("`timeout`") && text.contains("`ca`"), "{text}");
    }

    #[test]
    fn schemes_for_several_servers_say_that_there_is_one() {
        for scheme in ["redis-sentinel", "redis-cluster"] {
            let text = Address::parse(&format!("{scheme}://user:secret@a,b")).unwrap_err().to_string();
            assert!(text.contains(scheme) && text.contains("single") && text.contains("`redis://"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn no_form_of_it_shows_the_password() {
        let address = parsed("redis://hidden:secret@host");
        let text = format!("{address} {address:?} {address:#?} {:?}", address.server);
        assert!(!text.contains("secret") && !text.contains("hidden"), "{text}");
    }

    #[cfg(feature = "redis-tls")]
    #[test]
    fn a_tls_url_may_name_the_certificates_to_trust() {
        assert_eq!(parsed("rediss://host").ca, None);
        let address = parsed("rediss://host:6380/1?ca=/etc/my%20ca.pem");
        assert_eq!(address.ca, Some(PathBuf::from("/etc/my ca.pem")));
        assert_eq!(address.to_string(), "rediss://host:6380/1");
        for query in ["ca", "ca=", "ca=/a&ca=/b"] {
            assert!(Address::parse(&format!("rediss://host?{query}")).is_err(), "{query}");
        }
    }

    #[cfg(not(feature = "redis-tls"))]
    #[test]
    fn a_tls_url_names_the_feature_that_is_off() {
        let text = Address::parse("rediss://user:secret@host").unwrap_err().to_string();
        assert!(text.contains("feature `redis-tls`") && !text.contains("secret"), "{text}");
    }
}
