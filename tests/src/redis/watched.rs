//! A primary, its replicas, and the sentinels that watch them.

use std::collections::HashMap;

use leader_core::BootInstant;

use super::sentinel::Sentinel;
use super::server::RedisServer;
use crate::net::Network;
use crate::process::eventually;

/// What the sentinels call it.
pub const SERVICE: &str = "jobs";

/// The user as whom the sentinels come to the servers: its rights can be taken away.
const SENTINEL_USER: (&str, &str) = ("sentinels", "sentinels");

/// How many servers there are, and how many sentinels.
const SERVERS: usize = 3;

/// Three servers, of which one is the primary, and three sentinels. Dropping it ends them all.
#[derive(Debug)]
pub struct Watched {
    /// Of which the first begins as the primary.
    pub servers: Vec<RedisServer>,
    /// Each with its own view.
    pub sentinels: Vec<Sentinel>,
}

/// A server that became the primary.
#[derive(Debug, Clone, Copy)]
pub struct Promoted {
    /// Which one.
    pub server: usize,
    /// When it was seen to take writes.
    pub took_writes: BootInstant,
    /// When a sentinel was seen to name it, which is up to a second later.
    pub named: BootInstant,
}

impl Watched {
    /// Servers with these options, and sentinels with these lines and this password; all of them know each other, and the
    /// replicas follow. None, with the reason printed, where no Redis is installed.
    ///
    /// # Panics
    /// If that does not come about.
    #[must_use]
    pub fn start(options: &[(&str, &str)], lines: &[&str], password: Option<&str>) -> Option<Self> {
        Self::build(
            options,
            lines,
            |_, options| RedisServer::start(options),
            |_, lines| Sentinel::start(lines, password),
        )
    }

    /// The same in a network: a server at each of its first three parties, a sentinel at each of the next three.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_inside(network: &Network, options: &[(&str, &str)], lines: &[&str]) -> Option<Self> {
        Self::build(
            options,
            lines,
            |number, options| RedisServer::start_inside(network.party(number), options),
            |number, lines| Sentinel::start_inside(network.party(SERVERS + number), lines, None),
        )
    }

    fn build(
        options: &[(&str, &str)],
        lines: &[&str],
        server: impl Fn(usize, &[(&str, &str)]) -> Option<RedisServer>,
        sentinel: impl Fn(usize, &[String]) -> Option<Sentinel>,
    ) -> Option<Self> {
        let user = format!("{} on >{} ~* &* +@all", SENTINEL_USER.0, SENTINEL_USER.1);
        let of_all = [("user", &*user), ("repl-diskless-sync-delay", "0"), ("repl-ping-replica-period", "1")];
        let options = [&of_all, options].concat();
        let primary = server(0, &options)?;
        let place = format!("{} {}", primary.address().ip(), primary.address().port());
        let options = [&options[..], &[("replicaof", &*place)]].concat();
        let mut servers = vec![primary];
        servers.extend([server(1, &options)?, server(2, &options)?]);
        let mut all = vec![
            format!("sentinel monitor {SERVICE} {place} 2"),
            format!("sentinel down-after-milliseconds {SERVICE} 1000"),
            format!("sentinel failover-timeout {SERVICE} 10000"),
            format!("sentinel auth-user {SERVICE} {}", SENTINEL_USER.0),
            format!("sentinel auth-pass {SERVICE} {}", SENTINEL_USER.1),
        ];
        // The later of two lines counts.
        all.extend(lines.iter().map(ToString::to_string));
        let mut watched = Self { servers, sentinels: Vec::new() };
        watched.until_followed(0);
        for number in 0..SERVERS {
            watched.sentinels.push(sentinel(number, &all)?);
        }
        watched.until_all_know();
        Some(watched)
    }

    /// The URL of the service's database 0, by all three sentinels.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_as("", SERVICE, "")
    }

    /// The same with user and password before the hosts (`user:password@`), of this service, and with this behind it.
    #[must_use]
    pub fn url_as(&self, who: &str, service: &str, query: &str) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|sentinel| sentinel.address().to_string()).collect();
        format!("redis-sentinel://{who}{}/{service}/0{query}", hosts.join(","))
    }

    /// Waits until each sentinel that runs knows the others and two replicas, and sees nobody down.
    ///
    /// # Panics
    /// If that does not come about.
    pub fn until_all_know(&self) {
        eventually("the sentinels know each other and the replicas", || self.all_know().then_some(()));
    }

    /// Whether it is so now.
    #[must_use]
    pub fn all_know(&self) -> bool {
        self.sentinels.iter().all(|sentinel| {
            let about = about(sentinel).unwrap_or_default();
            let is = |field: &str, value: &str| about.get(field).is_some_and(|known| known == value);
            is("num-slaves", "2") && is("num-other-sentinels", "2") && is("flags", "master")
        })
    }

    /// Waits until another server than this one is the primary for good. A busy host can have two elections in a row: a sentinel
    /// that has learned of the new primary, and does not reach it within a second, has it replaced as well.
    ///
    /// # Panics
    /// If that does not come about.
    pub fn until_promoted(&self, old: usize) -> Promoted {
        let mut seen = Seen::new(self, old);
        eventually("another server is the primary, and the sentinels agree on it", || {
            seen.look(self);
            self.agreed().and_then(|server| seen.promoted(server))
        })
    }

    /// Waits until more than half of the sentinels name another server than this one, and it takes writes; whether or not another
    /// one is about to follow it, and however many servers take themselves for the primary.
    ///
    /// # Panics
    /// If that does not come about.
    pub fn until_replaced(&self, old: usize) -> Promoted {
        let mut seen = Seen::new(self, old);
        eventually("another server is the primary for most sentinels", || {
            let names = seen.look(self);
            let most = names.iter().position(|names| *names > self.sentinels.len() / 2);
            most.and_then(|server| seen.promoted(server))
        })
    }

    /// Which server more than half of the sentinels name and have reached, while none is about to make another one the primary.
    #[must_use]
    pub fn agreed(&self) -> Option<usize> {
        let mut reached = vec![0; self.servers.len()];
        for about in self.sentinels.iter().filter_map(about) {
            let flags = about.get("flags")?;
            if flags.contains("failover_in_progress") {
                return None;
            }
            // No ping is without an answer; it waits for the first one from the moment of the change.
            if flags == "master" && about.get("last-ping-sent")? == "0" {
                reached[self.at(about.get("ip")?, about.get("port")?.parse().ok()?)?] += 1;
            }
        }
        reached.iter().position(|sentinels| *sentinels > self.sentinels.len() / 2)
    }

    /// The server with this address.
    fn at(&self, ip: &str, port: u16) -> Option<usize> {
        let is_it = |address: std::net::SocketAddr| address.ip().to_string() == ip && address.port() == port;
        self.servers.iter().position(|server| is_it(server.address()))
    }

    /// Whether this server takes itself for a primary. None if it does not say: a sentinel ends all connections to a server
    /// whose role it changes.
    #[must_use]
    pub fn is_primary(&self, number: usize) -> Option<bool> {
        let info: String = self.servers[number].try_command(&["INFO", "replication"]).ok()?;
        Some(info.contains("role:master"))
    }

    /// Waits until the others follow this server. One that was the primary does so only some seconds later.
    ///
    /// # Panics
    /// If they do not.
    pub fn until_followed(&self, number: usize) {
        eventually("the others follow the new primary", || {
            let info: String = self.servers[number].try_command(&["INFO", "replication"]).ok()?;
            (info.matches("state=online").count() == self.servers.len() - 1).then_some(())
        });
    }

    /// Has a sentinel make another server the primary, while all are well.
    ///
    /// # Panics
    /// If it refuses.
    pub fn fail_over(&self) {
        assert!(self.try_fail_over(), "all are well");
    }

    /// The same; whether it does. It refuses for a while after another fail-over.
    #[must_use]
    pub fn try_fail_over(&self) -> bool {
        self.sentinels[0].try_command::<()>(&["SENTINEL", "FAILOVER", SERVICE]).is_ok()
    }

    /// For the sentinels this server is down from here on, and they cannot tell it anything; for everybody else it works on as
    /// before.
    pub fn hide_from_sentinels(&self, number: usize) {
        self.servers[number].command::<()>(&["ACL", "SETUSER", SENTINEL_USER.0, "-@all"]);
    }
}

/// What was seen of the servers so far, but for the old primary, which may not answer.
struct Seen {
    old: usize,
    /// When each was first seen to take itself for the primary, if it still does not follow.
    took_writes: Vec<Option<BootInstant>>,
    /// When a sentinel was first seen to name each.
    named: Vec<Option<BootInstant>>,
}

impl Seen {
    fn new(watched: &Watched, old: usize) -> Self {
        let never = vec![None; watched.servers.len()];
        Self { old, took_writes: never.clone(), named: never }
    }

    /// How many sentinels name each server now.
    fn look(&mut self, watched: &Watched) -> Vec<usize> {
        for number in (0..watched.servers.len()).filter(|number| *number != self.old) {
            match watched.is_primary(number) {
                Some(true) => {
                    self.took_writes[number].get_or_insert_with(BootInstant::now);
                }
                Some(false) => self.took_writes[number] = None,
                None => {}
            }
        }
        let mut names = vec![0; watched.servers.len()];
        for sentinel in &watched.sentinels {
            let question = ["SENTINEL", "get-master-addr-by-name", SERVICE];
            let Ok((ip, port)) = sentinel.try_command::<(String, u16)>(&question) else { continue };
            if let Some(number) = watched.at(&ip, port) {
                self.named[number].get_or_insert_with(BootInstant::now);
                names[number] += 1;
            }
        }
        names
    }

    fn promoted(&self, server: usize) -> Option<Promoted> {
        Some(Promoted { server, took_writes: self.took_writes[server]?, named: self.named[server]? })
    }
}

/// When a test fails: which elections there were.
impl Drop for Watched {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            for sentinel in &self.sentinels {
                eprintln!("the sentinel {} wrote:\n{}", sentinel.address(), sentinel.written());
            }
        }
    }
}

/// What a sentinel says of the service. None if it does not answer.
fn about(sentinel: &Sentinel) -> Option<HashMap<String, String>> {
    sentinel.try_command(&["SENTINEL", "master", SERVICE]).ok()
}
