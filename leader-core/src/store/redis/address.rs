//! What a Redis URL means: which servers, and who we are to them. Only [`url`] ever sees one.

#[cfg(test)]
mod tests;
mod url;

use std::fmt;
use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is encoded in the name of a service, so that it means the same when it is read again: all that such a name should not
/// have in it, by the documentation of Sentinel.
const IN_A_SERVICE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// Where the store is. Its `Debug` and `Display` show neither user nor password; nor do those of its parts.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// `redis://`: one server.
    Server(Address),
    /// `redis-sentinel://`: the primary that sentinels name.
    Sentinels(Sentinels),
    /// `redis-cluster://`: the primaries of a cluster.
    Cluster(Cluster),
}

/// One server, and who we are to it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) server: Server,
    pub(super) access: Access,
}

/// Sentinels, and what they watch.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Sentinels {
    /// At least one, each of them once.
    pub(super) servers: Vec<Server>,
    /// What they call the primary and its replicas.
    pub(super) service: String,
    /// To the sentinels.
    pub(super) access: Access,
    /// To the servers that they watch.
    pub(super) watched: Access,
}

/// Nodes of a cluster, by which the others are found.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    /// At least one, each of them once.
    pub(super) servers: Vec<Server>,
    /// To each node.
    pub(super) access: Access,
}

/// How to get in, and who we are.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Access {
    /// By TLS, or in plain text.
    pub(super) tls: bool,
    /// The certificates to trust, in place of the system's.
    pub(super) ca: Option<PathBuf>,
    /// What we show, if we are asked who we are.
    pub(super) certificate: Option<Certificate>,
    /// Without it, the server's `default` user.
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u8,
}

/// A certificate of ours, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    /// It, and those between it and its CA.
    pub(super) chain: PathBuf,
    pub(super) key: PathBuf,
}

/// The name of a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Server {
    /// A name or an address; IPv6 without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Server {
    /// The server that another one names, if it is one that can be asked: a port is 0 where a node listens for TLS alone, or the
    /// other way round, and what no host is called was not meant for us.
    pub(super) fn named(host: &str, port: u16) -> Option<Self> {
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let strange = |c: char| c.is_control() || c.is_whitespace() || "[]@/".contains(c);
        (port > 0 && !host.is_empty() && !host.contains(strange)).then(|| Self { host: host.to_owned(), port })
    }
}

impl Access {
    /// The same access, to this server.
    pub(super) fn to(&self, server: Server) -> Address {
        Address { server, access: self.clone() }
    }

    /// What precedes the servers in a URL.
    fn begin(&self, f: &mut fmt::Formatter<'_>, plain: &str, tls: &str) -> fmt::Result {
        let scheme = if self.tls { tls } else { plain };
        let who = if self.password.is_some() { "***@" } else { "" };
        write!(f, "{scheme}://{who}")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(address) => address.fmt(f),
            Self::Sentinels(sentinels) => sentinels.fmt(f),
            Self::Cluster(cluster) => cluster.fmt(f),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.access.begin(f, "redis", "rediss")?;
        write!(f, "{}/{}", self.server, self.access.database)
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.watched.begin(f, "redis-sentinel", "rediss-sentinel")?;
        let service = utf8_percent_encode(&self.service, IN_A_SERVICE);
        write!(f, "{}/{service}/{}", List(&self.servers), self.watched.database)
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.access.begin(f, "redis-cluster", "rediss-cluster")?;
        write!(f, "{}", List(&self.servers))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Servers with commas between them.
pub(super) struct List<'a>(pub(super) &'a [Server]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, server) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}{server}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("tls", &self.tls).field("database", &self.database).finish_non_exhaustive()
    }
}

/// `Debug` that shows no more than `Display`.
macro_rules! shown {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    )*};
}
shown!(Place, Address, Sentinels, Cluster, Server);
