//! Locks in a Redis server: one key for each that is held, and two for those who wait.
//!
//! They have connections of their own, opened with the first of them, so that no lease ever waits behind a lock. One call of
//! one script ([`script`], `scripts/lock_*.lua`) executes a batch.

mod keys;
mod script;

use std::time::Duration;

#[cfg(test)]
pub(super) use self::keys::COMMANDS;
pub(super) use self::keys::LockKeys;
use super::connection::Failure;
use super::failure::{code, denied};
use super::replicas::Needs;
use super::tie::Kind;
use super::{Inner, RedisStore};
use crate::error::StoreError;
use crate::store::{LockAnswer, LockAnswers, LockCommand};

pub(super) use self::script::{TEXT, answers, arguments};

impl RedisStore {
    pub(super) async fn execute_lock_commands(
        &self,
        commands: &[LockCommand],
        timeout: Duration,
    ) -> Result<LockAnswers, StoreError> {
        let Some(first) = commands.first() else { return Ok(Vec::new()) };
        let inner = &*self.0;
        let fails = |failure| inner.lock_error(failure, what(commands), timeout);
        let ties = self.ties(first.owner.candidate.incarnation).map_err(fails)?;
        let channels = inner.keys.wake_channels();
        let kind = Kind {
            key: &|command: &LockCommand| inner.lock_keys.names(&command.key).lock,
            arguments: &|commands| arguments(commands, &inner.lock_keys, &channels),
            read: answers,
            needs: Needs::new(inner.options.replicas, is_a_change),
        };
        let answers = ties.locks.batch(commands, &kind, timeout).await.map_err(fails)?;
        let of = |(answer, command): (Result<_, Failure>, &LockCommand)| {
            answer.map_err(|failure| inner.lock_error(failure, what(std::slice::from_ref(command)), timeout))
        };
        Ok(answers.into_iter().zip(commands).map(of).collect())
    }
}

impl Inner {
    fn lock_error(&self, failure: Failure, attempted: String, timeout: Duration) -> StoreError {
        let attempted = format!("{attempted} on {}", self.address);
        let advice = match &failure {
            Failure::Server(error) => self.lock_advice(error),
            _ => None,
        };
        match (failure, advice) {
            (Failure::Server(cause), Some(advice)) => StoreError::Refused { attempted, cause, advice },
            (failure, _) => self.store_error(failure, attempted, timeout),
        }
    }

    /// What to do about an error, where that is another thing than for a lease.
    fn lock_advice(&self, error: &str) -> Option<String> {
        if let Some(denied) = denied(error) {
            return Some(self.lock_keys.rights(self.keys.rights()).advice(denied));
        }
        match code(error) {
            "WRONGTYPE" => Some(
                "another application uses this key: choose another prefix of locks (Config::lock_prefix, \
                 LEADER_LOCK_PREFIX) or another key, or delete it if nobody needs it"
                    .to_owned(),
            ),
            "OOM" => Some(
                "the server's memory is full: raise maxmemory, or free memory. A lock that is held is renewed, a new one \
                 is not given"
                    .to_owned(),
            ),
            "ERR" if error.contains("largest number that can be told") => Some(
                "an elector was handed a token that no store has given out: restart its instances".to_owned(),
            ),
            _ => None,
        }
    }
}

/// Whoever is answered so goes by it for longer than the server's word may last. A release that is lost ends by itself; and to
/// others it is a lock all the same that no replica has yet.
fn is_a_change(answer: &LockAnswer) -> bool {
    matches!(answer, LockAnswer::Won { .. } | LockAnswer::Renewed | LockAnswer::Completed)
}

/// What a batch does, for a message.
fn what(commands: &[LockCommand]) -> String {
    match commands {
        [one] => format!("{} of `{}`", one.op.name(), one.key),
        _ => "lock commands".to_owned(),
    }
}
