//! A peer of the kind that this system shares elections with: one key, one value, three scripts that look at the value only.

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use redis::RedisResult;

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
    group: String,
    key: String,
    ttl: Duration,
    deadline: Option<BootInstant>,
    views: Vec<View>,
}

impl NestPeer {
    /// A peer with this id, which competes for `group`.
    #[must_use]
    pub fn new(client: Client, id: &str, group: &str, ttl: Duration) -> Self {
        let (id, group) = (id.to_owned(), group.to_owned());
        Self { client, key: format!("leader:{group}"), id, group, ttl, deadline: None, views: Vec::new() }
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
        self.believe(None);
        self.client.command(&["EVAL", RELEASE, "1", &self.key, &self.id])
    }

    /// Whether it believes that it leads: a whole ttl from before its last request that was confirmed.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.deadline.is_some_and(|deadline| BootInstant::now() < deadline)
    }

    /// When it believed that it leads; the last of these may not be over. It knows no terms.
    #[must_use]
    pub fn views(&self) -> &[View] {
        &self.views
    }

    fn hold(&mut self, script: &str) -> RedisResult<bool> {
        let sent = BootInstant::now();
        // Until it is confirmed: an unconfirmed lease is none.
        self.believe(None);
        let ttl = self.ttl.as_millis().to_string();
        let held: bool = self.client.command(&["EVAL", script, "1", &self.key, &self.id, &ttl])?;
        self.believe(held.then(|| sent.saturating_add(self.ttl)));
        Ok(held)
    }

    /// From now on, until this deadline.
    fn believe(&mut self, deadline: Option<BootInstant>) {
        let now = BootInstant::now();
        if let (Some(_), Some(view)) = (self.deadline, self.views.last_mut()) {
            view.ended_ns = view.ended_ns.min(now.as_nanos());
        }
        self.deadline = deadline.filter(|deadline| now < *deadline);
        if let Some(deadline) = self.deadline {
            self.views.push(View {
                group: self.group.clone(),
                instance: self.id.clone(),
                term: 0,
                began_ns: now.as_nanos(),
                ended_ns: deadline.as_nanos() - 1,
            });
        }
    }
}
