//! Reading a Redis URL. What is wrong is said without the text that it is found in, which may be a password.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::{Access, Certificate, Cluster, Place, Sentinels, Server};
use crate::error::StoreUrlError;
use crate::store::url::is_scheme;

/// The kinds of URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Server,
    Sentinels,
    Cluster,
}

/// The keys that may follow the question mark of each kind: files for TLS.
const CA: &str = "ca";
const CERTIFICATE: &str = "cert";
const KEY: &str = "key";
/// Who we are to the sentinels, as keys of their URL.
const SENTINEL_USER: &str = "sentinel_user";
const SENTINEL_PASSWORD: &str = "sentinel_password";

impl Place {
    /// Reads one of
    /// - `redis://[user][:password@]host[:port][/database][?ca=file&cert=file&key=file]`,
    /// - `redis-sentinel://[user][:password@]host[:port][,…]/service[/database][?sentinel_user=…&sentinel_password=…&ca=…]`,
    /// - `redis-cluster://[user][:password@]host[:port][,…][?ca=…]`,
    ///
    /// or the same by TLS, where the scheme begins with `rediss`.
    pub(in super::super) fn parse(url: &str) -> Result<Self, StoreUrlError> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(Kind::Server.wrong("scheme", "is not followed by `//`"));
        };
        let (kind, tls) = match scheme {
            "redis" => (Kind::Server, false),
            "rediss" => (Kind::Server, true),
            "redis-sentinel" => (Kind::Sentinels, false),
            "rediss-sentinel" => (Kind::Sentinels, true),
            "redis-cluster" => (Kind::Cluster, false),
            "rediss-cluster" => (Kind::Cluster, true),
            // Anything else may be a password, if somebody left the scheme out.
            _ if is_scheme(scheme) => return Err(StoreUrlError::UnknownScheme { scheme: scheme.to_owned() }),
            _ => return Err(StoreUrlError::NoScheme),
        };
        if tls && !cfg!(feature = "redis-tls") {
            return Err(StoreUrlError::NotBuiltIn {
                scheme: scheme.to_owned(),
                feature: "redis-tls",
                since: "this version",
            });
        }
        let parts = Parts::of(kind, rest)?;
        let (user, password) = parts.credentials.map_or(Ok((None, None)), |text| kind.who(text))?;
        // Before the query, of which keys are shown: where the host is missing, a part of the password stands there.
        let mut servers = kind.servers(parts.servers)?;
        let [ca, certificate, key, sentinel_user, sentinel_password] = kind.query(parts.query)?;
        let files = [(CA, &ca), (CERTIFICATE, &certificate), (KEY, &key)];
        if let Some((name, _)) = files.iter().find(|(_, file)| file.is_some() && !tls) {
            let problem = format!("names a `{name}`, which only `{}://` makes use of", kind.scheme(true));
            return Err(kind.wrong("query", problem));
        }
        let ca = ca.map(PathBuf::from);
        let certificate = match (certificate, key) {
            (None, None) => None,
            (Some(chain), Some(key)) => Some(Certificate { chain: chain.into(), key: key.into() }),
            _ => {
                let problem = format!("needs `{CERTIFICATE}` and `{KEY}` together, or none of them");
                return Err(kind.wrong("query", problem));
            }
        };
        let access = |user, password, database| Access {
            tls,
            ca: ca.clone(),
            certificate: certificate.clone(),
            user,
            password,
            database,
        };
        Ok(match kind {
            Kind::Server => {
                // There is one: no text is split into nothing.
                Self::Server(access(user, password, kind.database(parts.path)?).to(servers.swap_remove(0)))
            }
            Kind::Sentinels => {
                let (service, database) = parts.path.split_once('/').unwrap_or((parts.path, ""));
                let password_of_user = sentinel_user.as_ref().map(|_| String::new());
                Self::Sentinels(Sentinels {
                    servers,
                    service: kind.service(service)?,
                    access: access(sentinel_user, sentinel_password.or(password_of_user), 0),
                    watched: access(user, password, kind.database(database)?),
                })
            }
            Kind::Cluster => {
                if kind.database(parts.path)? > 0 {
                    return Err(kind.wrong("path", "names another database than `/0`, and a cluster has no other"));
                }
                Self::Cluster(Cluster { servers, access: access(user, password, 0) })
            }
        })
    }
}

/// What follows the scheme, taken apart but not read.
struct Parts<'a> {
    credentials: Option<&'a str>,
    servers: &'a str,
    /// Without the slash before it.
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(kind: Kind, rest: &'a str) -> Result<Self, StoreUrlError> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if tail.contains('@') {
            // Nothing of it is shown or used: it may be the rest of a password.
            return Err(kind.wrong(
                "user or password",
                "contains `/`, `?` or `#`; write `%2F`, `%3F` or `%23` for them, and `%40` for an `@` after the host",
            ));
        }
        if tail.contains('#') {
            return Err(kind.wrong("end", "is a fragment (`#…`), which means nothing here"));
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (credentials, servers) =
            authority.rsplit_once('@').map_or((None, authority), |(user, servers)| (Some(user), servers));
        Ok(Self { credentials, servers, path: path.strip_prefix('/').unwrap_or(path), query })
    }
}

impl Kind {
    fn scheme(self, tls: bool) -> &'static str {
        match (self, tls) {
            (Self::Server, false) => "redis",
            (Self::Server, true) => "rediss",
            (Self::Sentinels, false) => "redis-sentinel",
            (Self::Sentinels, true) => "rediss-sentinel",
            (Self::Cluster, false) => "redis-cluster",
            (Self::Cluster, true) => "rediss-cluster",
        }
    }

    /// What a URL of this kind looks like.
    fn form(self) -> &'static str {
        match self {
            Self::Server => {
                "`redis://user:password@host:6379/0`, or `rediss://…` by TLS, where user, password, port and database may be \
                 left out"
            }
            Self::Sentinels => {
                "`redis-sentinel://user:password@host:26379,host2:26379/service/0`, or `rediss-sentinel://…` by TLS: the hosts \
                 are those of sentinels, and user, password, ports and database may be left out"
            }
            Self::Cluster => {
                "`redis-cluster://user:password@host:6379,host2:6379`, or `rediss-cluster://…` by TLS, where user, password \
                 and ports may be left out"
            }
        }
    }

    fn port(self) -> u16 {
        if self == Self::Sentinels { 26379 } else { 6379 }
    }

    fn servers(self, text: &str) -> Result<Vec<Server>, StoreUrlError> {
        if self == Self::Server && text.contains(',') {
            return Err(self.wrong(
                "host",
                "is a list, and this scheme means one server: `redis-sentinel://host,host2/service` names sentinels, and \
                 `redis-cluster://host,host2` nodes of a cluster",
            ));
        }
        let mut servers = Vec::new();
        for text in text.split(',') {
            let server = self.server(text)?;
            if servers.contains(&server) {
                return Err(self.wrong("list of hosts", "names one of them twice"));
            }
            servers.push(server);
        }
        Ok(servers)
    }

    fn server(self, text: &str) -> Result<Server, StoreUrlError> {
        let (host, port) = match text.strip_prefix('[') {
            Some(text) => {
                let (host, port) = text.split_once(']').ok_or_else(|| self.wrong("host", "has no closing bracket"))?;
                if host.parse::<Ipv6Addr>().is_err() {
                    return Err(self.wrong("host", "stands in brackets, but is no IPv6 address"));
                }
                (host, port)
            }
            None => {
                let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                if host.is_empty() {
                    return Err(self.wrong("host", "is missing"));
                }
                if !host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
                    return Err(self.wrong("host", "has characters that no host name has"));
                }
                (host, port)
            }
        };
        Ok(Server { host: host.to_owned(), port: self.port_in(port)? })
    }

    /// `text` is what follows the host. It is not shown: it may be the password of a URL without a host.
    fn port_in(self, text: &str) -> Result<u16, StoreUrlError> {
        let problem = || {
            self.wrong(
                "port",
                "is not a number from 1 to 65535 (if it is part of an IPv6 address: that stands in brackets; \
                 if it is a password: an `@` and the host have to follow it)",
            )
        };
        match text {
            "" => Ok(self.port()),
            _ => text.strip_prefix(':').and_then(number::<u16>).filter(|port| *port > 0).ok_or_else(problem),
        }
    }

    /// User and password. A user without a password is one that has none: it still has to say who it is.
    fn who(self, credentials: &str) -> Result<(Option<String>, Option<String>), StoreUrlError> {
        let (user, password) =
            credentials.split_once(':').map_or((credentials, None), |(user, password)| (user, Some(password)));
        let user = self.decoded("user", user)?;
        let password = password.map(|password| self.decoded("password", password)).transpose()?;
        if user.is_empty() {
            return Ok((None, password.filter(|password| !password.is_empty())));
        }
        Ok((Some(user), Some(password.unwrap_or_default())))
    }

    fn service(self, text: &str) -> Result<String, StoreUrlError> {
        let service = self.decoded("name of the service", text)?;
        if service.is_empty() {
            return Err(
                self.wrong("name of the service", "is missing: it is what `sentinel monitor` calls the primary")
            );
        }
        if service.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(self.wrong("name of the service", "has characters that none has"));
        }
        Ok(service)
    }

    fn database(self, text: &str) -> Result<u8, StoreUrlError> {
        let problem = match self {
            Self::Sentinels => {
                "has something after the name of the service that is not the number of a database from 0 to 255, such as `/0`"
            }
            Self::Server | Self::Cluster => "is not the number of a database from 0 to 255, such as `/0`",
        };
        if text.is_empty() { Ok(0) } else { number(text).ok_or_else(|| self.wrong("path", problem)) }
    }

    /// The values of the files for TLS, and of the user and the password to the sentinels.
    fn query(self, text: &str) -> Result<[Option<String>; 5], StoreUrlError> {
        let known = [CA, CERTIFICATE, KEY, SENTINEL_USER, SENTINEL_PASSWORD];
        let mut values = [const { None }; 5];
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        for (key, value) in pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
            let place = known.iter().position(|known| *known == key);
            let Some(place) = place.filter(|place| *place < 3 || self == Self::Sentinels) else {
                // What follows a password may be more of it: an `&` that was not encoded.
                let shown = !key.is_empty()
                    && values[3..].iter().all(Option::is_none)
                    && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
                let key = if shown { format!("has the key `{key}`") } else { "has a key".to_owned() };
                return Err(self.wrong("query", format!("{key}, which means nothing; there is {}", self.keys())));
            };
            let value = self.decoded("query", value)?;
            if value.is_empty() || values[place].replace(value).is_some() {
                return Err(self.wrong("query", format!("needs one value for each key; there is {}", self.keys())));
            }
        }
        Ok(values)
    }

    /// The keys that may follow the question mark.
    fn keys(self) -> String {
        let files = format!(
            "for `{}://` `{CA}` (a PEM file with the certificates to trust), `{CERTIFICATE}` and `{KEY}` (our own certificate)",
            self.scheme(true)
        );
        match self {
            Self::Sentinels => {
                format!("`{SENTINEL_USER}` and `{SENTINEL_PASSWORD}` (who we are to the sentinels), and {files}")
            }
            Self::Server | Self::Cluster => files,
        }
    }

    fn decoded(self, part: &'static str, text: &str) -> Result<String, StoreUrlError> {
        let mut rest = text;
        while let Some((_, escaped)) = rest.split_once('%') {
            if !escaped.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
                let problem = "has a `%` without two hexadecimal digits after it; write `%25` for a `%`";
                return Err(self.wrong(part, problem));
            }
            rest = escaped;
        }
        let decoded = percent_decode_str(text).decode_utf8();
        decoded.map(Into::into).map_err(|_| self.wrong(part, "is not UTF-8 once it is decoded"))
    }

    fn wrong(self, part: &'static str, problem: impl Into<String>) -> StoreUrlError {
        StoreUrlError::Redis { part, problem: problem.into(), form: self.form() }
    }
}

/// Digits only: `parse` takes a sign too.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
