//! What the locks of a chaos are in, and what can be done to it.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::log::{nanos, now_ns};
use super::plan::Fault;
use super::settings::Place;
use crate::redis::{Client, Proxy, RedisServer};

/// Between two looks whether the store answers.
const LOOK: Duration = Duration::from_millis(20);
/// What takes longer than this is a time in which the store did not answer.
const SLOW: Duration = Duration::from_millis(60);
const PATIENCE: Duration = Duration::from_secs(60);

/// A store for several processes.
#[derive(Debug)]
pub enum Ground {
    /// A Redis server, with a proxy before it for each process.
    Redis(RedisGround),
    /// An SQLite file.
    Sqlite(SqliteGround),
}

/// See [`Ground::Redis`].
#[derive(Debug)]
pub struct RedisGround {
    /// Where it is reached without a proxy.
    url: String,
    /// What the URLs through the proxies begin and end with.
    around: (String, String),
    // Before the server: proxies go first.
    proxies: Vec<Proxy>,
    /// If it is one of the chaos's own.
    server: Option<RedisServer>,
}

/// See [`Ground::Sqlite`].
#[derive(Debug)]
pub struct SqliteGround {
    path: PathBuf,
    /// Holds the writer's lock.
    holder: Option<Connection>,
}

impl Ground {
    /// For so many processes. `folder` is for the SQLite file, if it is one of the chaos's own; a Redis server of its own is
    /// started with `options`. `None`: no Redis server is installed.
    ///
    /// # Errors
    /// If the URL cannot be used.
    pub fn open(
        place: &Place,
        folder: &Path,
        processes: usize,
        options: &[(&str, &str)],
    ) -> Result<Option<Self>, String> {
        let (url, server) = match place {
            Place::OwnSqlite => return Ok(Some(Self::sqlite(&folder.join("leader.db")))),
            Place::Sqlite(path) => return Ok(Some(Self::sqlite(path))),
            Place::Redis(url) => (url.clone(), None),
            Place::OwnRedis => match RedisServer::start(options) {
                None => return Ok(None),
                Some(server) => (server.url(), Some(server)),
            },
        };
        let (address, around) = taken_apart(&url)?;
        let proxies = (0..processes).map(|_| Proxy::to(address)).collect();
        Ok(Some(Self::Redis(RedisGround { url, around, proxies, server })))
    }

    fn sqlite(path: &Path) -> Self {
        Self::Sqlite(SqliteGround { path: path.into(), holder: None })
    }

    /// Where the process in this slot finds it.
    #[must_use]
    pub fn url(&self, slot: usize) -> String {
        match self {
            Self::Sqlite(file) => format!("sqlite://{}", file.path.display()),
            Self::Redis(redis) => {
                let (before, after) = &redis.around;
                format!("{before}{}{after}", redis.proxies[slot].address())
            }
        }
    }

    /// Where it is found without a proxy.
    #[must_use]
    pub fn plain_url(&self) -> String {
        match self {
            Self::Sqlite(_) => self.url(0),
            Self::Redis(redis) => redis.url.clone(),
        }
    }

    /// The Redis server, if it is one of the chaos's own.
    pub fn server(&mut self) -> Option<&mut RedisServer> {
        match self {
            Self::Redis(redis) => redis.server.as_mut(),
            Self::Sqlite(_) => None,
        }
    }

    /// A fault begins; `false` if it cannot strike now. Those of processes are none of its.
    ///
    /// # Errors
    /// If the server refused.
    pub fn begin(&mut self, fault: Fault, lasts: Duration) -> Result<bool, String> {
        match self {
            Self::Redis(redis) => redis.begin(fault, lasts).map(|()| true),
            Self::Sqlite(file) => Ok(fault != Fault::HoldFile || file.hold()),
        }
    }

    /// A fault ends that lasts.
    pub fn end(&mut self, fault: Fault) {
        match (self, fault) {
            (Self::Sqlite(file), Fault::HoldFile) => drop(file.holder.take()),
            (
                Self::Redis(redis),
                Fault::BlackHole(slot)
                | Fault::OneWay(slot, _)
                | Fault::Refuse(slot)
                | Fault::Delay(slot, _)
                | Fault::KeepBack(slot, _),
            ) => redis.proxies[slot].heal(),
            _ => {}
        }
    }

    /// Looks all the time whether the store answers at once, and tells `note` of every time in which it did not, from a
    /// thread, until `note` wants no more.
    pub fn watch(&self, mut note: impl FnMut(Option<(u64, u64)>) -> bool + Send + 'static) {
        let mut asked: Box<dyn FnMut() -> bool + Send> = match self {
            Self::Redis(redis) => {
                let (url, mut client) = (redis.url.clone(), None::<Client>);
                Box::new(move || {
                    if client.is_none() {
                        client = Client::at(&url).ok();
                    }
                    let done = client.as_mut().is_some_and(|client| client.command::<String>(&["PING"]).is_ok());
                    if !done {
                        client = None;
                    }
                    done
                })
            }
            Self::Sqlite(file) => {
                let (path, mut connection) = (file.path.clone(), None::<Connection>);
                Box::new(move || {
                    if connection.is_none() {
                        connection = open(&path).ok();
                    }
                    connection.as_ref().is_some_and(|file| file.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok())
                })
            }
        };
        let watch = move || {
            loop {
                let from = now_ns();
                let done = asked();
                let to = now_ns();
                let silent = (!done || to - from > nanos(SLOW)).then_some((from, to + nanos(LOOK)));
                if !note(silent) {
                    return;
                }
                thread::sleep(LOOK);
            }
        };
        thread::Builder::new().name("store watch".to_owned()).spawn(watch).expect("a thread can be started");
    }
}

impl RedisGround {
    fn begin(&mut self, fault: Fault, lasts: Duration) -> Result<(), String> {
        let command = |parts: &[&str]| {
            let done = Client::at(&self.url).and_then(|mut client| client.command::<redis::Value>(parts));
            done.map(drop).map_err(|error| format!("{parts:?}: {error}"))
        };
        let proxy = |slot: usize| &self.proxies[slot];
        match fault {
            Fault::KillClients => {
                ["normal", "pubsub"].into_iter().try_for_each(|kind| command(&["CLIENT", "KILL", "TYPE", kind]))?;
            }
            Fault::PauseClients => command(&["CLIENT", "PAUSE", &lasts.as_millis().to_string(), "ALL"])?,
            Fault::FlushScripts => command(&["SCRIPT", "FLUSH"])?,
            Fault::BlackHole(slot) => proxy(slot).black_hole(),
            Fault::OneWay(slot, way) => proxy(slot).swallow(way),
            Fault::Cut(slot) => proxy(slot).cut(),
            Fault::Refuse(slot) => {
                proxy(slot).refuse();
                proxy(slot).cut();
            }
            Fault::Delay(slot, way) => proxy(slot).delay(way, lasts / 8),
            Fault::KeepBack(slot, way) => proxy(slot).stall(way),
            Fault::Kill(_) | Fault::KillInBody(_) | Fault::Stop(_) | Fault::StopInBody(_) | Fault::HoldFile => {}
        }
        Ok(())
    }
}

impl SqliteGround {
    /// Not for long: a process that stands still may hold it, and is continued by who calls this.
    fn hold(&mut self) -> bool {
        const SHORT: Duration = Duration::from_millis(100);
        let begin = |file: Connection| {
            file.busy_timeout(SHORT)?;
            file.execute_batch("BEGIN IMMEDIATE").map(|()| file)
        };
        self.holder = open(&self.path).and_then(begin).ok();
        self.holder.is_some()
    }
}

/// A file that somebody else has created.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    file.busy_timeout(PATIENCE)?;
    Ok(file)
}

/// Where the server of a URL is, and what stands before and behind that.
fn taken_apart(url: &str) -> Result<(SocketAddr, (String, String)), String> {
    // Without the URL itself, which may hold a password.
    let wrong = |what: &str| format!("the store's URL has to be like redis://host:6379/0: {what}");
    let rest = url.strip_prefix("redis://").ok_or_else(|| wrong("it begins with something else"))?;
    let (who, rest) = rest.rsplit_once('@').map_or(("", rest), |(who, rest)| (who, rest));
    let (host, database) = rest.split_once('/').unwrap_or((rest, ""));
    let port = host.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok());
    let host = if port { host.to_owned() } else { format!("{host}:6379") };
    let found = host.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?.next();
    let who = if who.is_empty() { String::new() } else { format!("{who}@") };
    let address = found.ok_or_else(|| wrong("the host has no address"))?;
    Ok((address, (format!("redis://{who}"), format!("/{database}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_its_user_and_database_through_a_proxy() {
        let (address, (before, after)) = taken_apart("redis://me:secret@127.0.0.1:7000/3").unwrap();
        assert_eq!((address.port(), before.as_str(), after.as_str()), (7000, "redis://me:secret@", "/3"));
        let (address, (before, after)) = taken_apart("redis://127.0.0.1").unwrap();
        assert_eq!((address.port(), before.as_str(), after.as_str()), (6379, "redis://", "/"));
        assert!(taken_apart("rediss://127.0.0.1").is_err());
    }
}
