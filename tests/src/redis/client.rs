//! A connection for the tests' own commands, which do not depend on what is tested.

use std::net::SocketAddr;
use std::path::Path;

use redis::{FromRedisValue, RedisResult};

use crate::process::PATIENCE;

/// A blocking connection to one server.
pub struct Client(redis::Connection);

impl Client {
    /// Connects, and says who it is if there is somebody to be.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub fn open(address: SocketAddr, user: Option<(&str, &str)>) -> RedisResult<Self> {
        let credentials = user.map_or_else(String::new, |(name, password)| format!("{name}:{password}@"));
        Self::at(&format!("redis://{credentials}{address}"))
    }

    /// The same by a socket in the file system.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub(super) fn on_socket(path: &Path, user: Option<(&str, &str)>) -> RedisResult<Self> {
        let credentials = user.map_or_else(String::new, |(name, password)| format!("?user={name}&pass={password}"));
        Self::at(&format!("redis+unix://{}{credentials}", path.display()))
    }

    /// Connects to the server and the database that `url` names, as the user that it names.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub fn at(url: &str) -> RedisResult<Self> {
        let client = redis::Client::open(url)?;
        let connection = client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(connection))
    }

    /// Runs one command and waits for its reply.
    ///
    /// # Errors
    /// What the server answered, or that it gave no answer.
    pub fn command<T: FromRedisValue>(&mut self, parts: &[&str]) -> RedisResult<T> {
        let (name, arguments) = parts.split_first().expect("a command has a name");
        redis::cmd(name).arg(arguments).query(&mut self.0)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
