//! The ledger of ticks in a Redis server: a hash and a list for each job, in the slot of its group's lease.
//!
//! It has connections of its own, opened with the first command, so that no lease ever waits behind a tick. One call of one
//! script ([`script`], `scripts/tick_*.lua`) executes a batch.

pub(super) mod script;

use std::time::Duration;

pub(super) use self::script::TEXT;
use super::connection::Failure;
use super::failure::{code, denied};
use super::replicas::Needs;
use super::tie::Kind;
use super::{Inner, RedisStore};
use crate::error::StoreError;
use crate::store::{TickAnswer, TickAnswers, TickCommand, TickReply};

/// What a user of the server must be allowed to, besides what it is for the leases.
pub(super) const COMMANDS: &str = "+rpush +ltrim +lrange";

impl RedisStore {
    pub(super) async fn execute_tick_commands(
        &self,
        commands: &[TickCommand],
        timeout: Duration,
    ) -> Result<TickAnswers, StoreError> {
        let Some(first) = commands.first() else { return Ok(Vec::new()) };
        let inner = &*self.0;
        let fails = |failure| inner.tick_error(failure, what(commands), timeout);
        let ties = self.ties(first.candidate.incarnation).map_err(fails)?;
        let kind = Kind {
            key: &|command: &TickCommand| inner.keys.lease(&command.group),
            arguments: &|commands| script::arguments(commands, &inner.keys),
            read: script::answers,
            needs: Needs::new(inner.options.replicas, is_a_claim),
        };
        let answers = ties.ticks.batch(commands, &kind, timeout).await.map_err(fails)?;
        let of = |(answer, command): (Result<_, Failure>, &TickCommand)| {
            answer.map_err(|failure| inner.tick_error(failure, what(std::slice::from_ref(command)), timeout))
        };
        Ok(answers.into_iter().zip(commands).map(of).collect())
    }
}

impl Inner {
    fn tick_error(&self, failure: Failure, attempted: String, timeout: Duration) -> StoreError {
        let attempted = format!("{attempted} on {}", self.address);
        let advice = match &failure {
            Failure::Server(error) => self.tick_advice(error),
            _ => None,
        };
        match (failure, advice) {
            (Failure::Server(cause), Some(advice)) => StoreError::Refused { attempted, cause, advice },
            (failure, _) => self.store_error(failure, attempted, timeout),
        }
    }

    /// What to do about an error, where that is another thing than for a lease.
    fn tick_advice(&self, error: &str) -> Option<String> {
        if let Some(denied) = denied(error) {
            return Some(self.keys.rights().with(COMMANDS).advice(denied));
        }
        match code(error) {
            "OOM" => Some(
                "the server's memory is full: raise maxmemory, or free memory. The ticks of jobs that are known are claimed"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// Whoever is answered so runs a body, or goes on to run it, or leaves the tick to others. A server that was given up may still
/// answer one call of a leader that has found its successor before and after: the successor's record is of its own memory, so
/// nothing there tells that it lacks this. An end that is lost is an unknown end, as if its leader had died.
fn is_a_claim(answer: &TickAnswer) -> bool {
    matches!(answer.reply, TickReply::Run { .. } | TickReply::Kept | TickReply::Returned)
}

/// What a batch does, for a message.
fn what(commands: &[TickCommand]) -> String {
    match commands {
        [one] => format!("{} of job `{}` of group `{}`", one.op.name(), one.job, one.group),
        _ => "commands to the ledger".to_owned(),
    }
}
