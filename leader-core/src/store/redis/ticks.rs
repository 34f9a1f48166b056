//! The ledger of ticks in a Redis server: a hash and a list for each job, in the slot of its group's lease.
//!
//! It has connections of its own, opened with the first command, so that no lease ever waits behind a tick. One call of one
//! script ([`script`], `scripts/tick_*.lua`) executes a batch.

pub(super) mod script;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) use self::script::TEXT;
use super::connection::Failure;
use super::failure::{Denied, code, denied};
use super::session::Session;
use super::{Inner, RedisStore};
use crate::error::StoreError;
use crate::store::{TickAnswer, TickAnswers, TickCommand};

impl RedisStore {
    pub(super) async fn execute_tick_commands(
        &self,
        commands: &[TickCommand],
        timeout: Duration,
    ) -> Result<TickAnswers, StoreError> {
        let Some(first) = commands.first() else { return Ok(Vec::new()) };
        let inner = &*self.0;
        let fails = |failure| inner.tick_error(failure, what(commands), timeout);
        let session = self.tick_sessions().get(&first.candidate.incarnation).cloned();
        let Some(session) = session else {
            return Err(fails(Failure::Unreachable("this elector is not connected".to_owned())));
        };
        let until = Instant::now() + timeout;
        let answers = match inner.run_ticks(&session, commands, timeout).await {
            // One key that the server's user may not touch fails a call as a whole.
            Err(Failure::Server(error)) if commands.len() > 1 && denied(&error) == Some(Denied::Key) => {
                let mut answers = Vec::with_capacity(commands.len());
                for command in commands {
                    let left = until.saturating_duration_since(Instant::now());
                    match inner.run_ticks(&session, std::slice::from_ref(command), left).await {
                        Ok(answer) => answers.extend(answer),
                        Err(Failure::Server(error)) => answers.push(Err(error)),
                        Err(failure) => return Err(fails(failure)),
                    }
                }
                answers
            }
            answers => answers.map_err(fails)?,
        };
        let of = |(answer, command): (Result<_, String>, &TickCommand)| {
            answer
                .map_err(|error| inner.tick_error(Failure::Server(error), what(std::slice::from_ref(command)), timeout))
        };
        Ok(answers.into_iter().zip(commands).map(of).collect())
    }
}

impl Inner {
    async fn run_ticks(
        &self,
        session: &Arc<Session>,
        commands: &[TickCommand],
        timeout: Duration,
    ) -> Result<Vec<Result<TickAnswer, String>>, Failure> {
        let arguments = || script::arguments(commands, &self.keys);
        let key = commands.first().map(|command| self.keys.lease(&command.group));
        session.run(&arguments, key, |reply| script::answers(reply, commands.len()), timeout).await
    }

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
        if denied(error).is_some() {
            let (leases, ticks) = (self.keys.permissions(), self.keys.tick_permissions());
            return Some(format!("allow it: ACL SETUSER <user> {leases} {ticks}"));
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

/// What a batch does, for a message.
fn what(commands: &[TickCommand]) -> String {
    match commands {
        [one] => format!("{} of job `{}` of group `{}`", one.op.name(), one.job, one.group),
        _ => "commands to the ledger".to_owned(),
    }
}
