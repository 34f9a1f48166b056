//! A primary and its replicas, which nobody watches.

use super::server::RedisServer;
use crate::process::eventually;

/// Servers of which the first is the primary. Dropping it ends them all.
#[derive(Debug)]
pub struct Replicated {
    /// It takes the writes.
    pub primary: RedisServer,
    /// They follow it.
    pub replicas: Vec<RedisServer>,
}

impl Replicated {
    /// A primary with so many replicas, which are in step with it. None, with the reason printed, where no Redis is installed.
    ///
    /// # Panics
    /// If that does not come about.
    #[must_use]
    pub fn start(replicas: usize) -> Option<Self> {
        let primary = RedisServer::start(&[("repl-diskless-sync-delay", "0")])?;
        let follow = format!("127.0.0.1 {}", primary.address().port());
        let replica = |_| RedisServer::start(&[("replicaof", &follow), ("repl-diskless-sync-delay", "0")]);
        let replicas = (0..replicas).map(replica).collect::<Option<Vec<_>>>()?;
        let servers = Self { primary, replicas };
        Self::until_in_step(&servers.primary, servers.replicas.len());
        Some(servers)
    }

    /// Waits until this server has so many replicas that are in step with it.
    ///
    /// # Panics
    /// If that does not come about.
    pub fn until_in_step(server: &RedisServer, replicas: usize) {
        eventually("the replicas are in step", || {
            let info: String = server.try_command(&["INFO", "replication"]).ok()?;
            (info.matches("state=online").count() == replicas).then_some(())
        });
    }

    /// Has a replica follow this server from now on.
    pub fn follow(&self, replica: usize, server: &RedisServer) {
        let port = server.address().port().to_string();
        self.replicas[replica].command::<()>(&["REPLICAOF", "127.0.0.1", &port]);
    }
}
