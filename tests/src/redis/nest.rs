//! A peer of the kind that this system shares elections with: one key, one value, three scripts that look at the value only.

use redis::RedisResult;
use std::time::Duration;

use leader_core::BootInstant;

use super::client::Client;

/// An own value is extended; a free key is taken.
const ACQUIRE: &str = "
if redis.call('get', KEYS[1]) == ARGV[1] then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
return redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) and 1 or 0";

/// An own value is extended.
const HEARTBEAT: &str = "
return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0";

/// An own value is deleted.
const RELEASE: &str = "
return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0";

/// One instance of such a system. It does nothing by itself: the test says when.
#[derive(Debug)]
pub struct NestPeer {
    client: Client,
    id: String,
    key: String,
    ttl: Duration,
    deadline: Option<BootInstant>,
}

impl NestPeer {
    /// A peer with this id, which competes for `group`.
    #[must_use]
    pub fn new(client: Client, id: &str, group: &str, ttl: Duration) -> Self {
        Self { client, id: id.to_owned(), key: format!("leader:{group}"), ttl, deadline: None }
    }

    /// Tries to lead; whether it does.
    ///
    /// # Errors
    /// If the server refuses or gives no answer.
    pub fn acquire(&mut self) -> RedisResult<bool> {
        self.hold(ACQUIRE)
    }

    /// Tries to lead on; whether it does.
    ///
    /// # Errors
    /// If the server refuses or gives no answer.
    pub fn heartbeat(&mut self) -> RedisResult<bool> {
        self.hold(HEARTBEAT)
    }

    /// Leads no more; whether it did.
    ///
    /// # Errors
    /// If the server refuses or gives no answer.
    pub fn release(&mut self) -> RedisResult<bool> {
        self.deadline = None;
        self.client.command(&["EVAL", RELEASE, "1", &self.key, &self.id])
    }

    /// Whether it believes that it leads: a whole ttl from before its last request that was confirmed.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.deadline.is_some_and(|deadline| BootInstant::now() < deadline)
    }

    fn hold(&mut self, script: &str) -> RedisResult<bool> {
        let sent = BootInstant::now();
        // Until it is confirmed: an unconfirmed lease is none.
        self.deadline = None;
        let ttl = self.ttl.as_millis().to_string();
        let held: bool = self.client.command(&["EVAL", script, "1", &self.key, &self.id, &ttl])?;
        self.deadline = held.then(|| sent.saturating_add(self.ttl));
        Ok(held)
    }
}
