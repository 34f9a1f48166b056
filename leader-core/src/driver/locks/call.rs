//! Calls of the store for locks: batches out, answers in.

use tokio::sync::oneshot;
use tokio::task::{Id, JoinError};

use super::super::describe_panic;
use super::report::LockReport;
use super::{Event, Failure, Locks};
use crate::clock::BootInstant;
use crate::error::StoreError;
use crate::lease::Term;
use crate::lock::LockError;
use crate::lock::machine::{Request, RequestNo};
use crate::store::{LockAnswer, LockAnswers, LockBatch, LockCommand, LockKey, LockOp, LockOwner};

/// So many commands go into one call: a longer script would keep other clients of the store waiting.
pub(super) const BATCH: usize = 100;

/// In so many ways an outage is told of.
const MOST_TOLD: usize = 8;

pub(super) type Done = Result<LockAnswers, StoreError>;

/// What a command in flight is about.
#[derive(Debug)]
pub(super) enum Member {
    Lock { nonce: u128, no: RequestNo, acquires: bool },
    Forget { key: LockKey, reply: oneshot::Sender<Result<bool, LockError>> },
}

impl Locks {
    /// Sends the requests, whose locks count from `now`, in as few calls as may be.
    pub(super) fn send(&mut self, now: BootInstant, mut requests: Vec<(u128, Request)>) {
        // What gives a lock back comes before what asks for it.
        requests.sort_by_key(|(_, request)| rank(&request.command.op));
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let member = |(nonce, request): (u128, Request)| {
                let acquires = matches!(request.command.op, LockOp::Acquire { .. });
                (Member::Lock { nonce, no: request.no, acquires }, request.command)
            };
            let (members, commands): (Vec<_>, Vec<_>) = requests.by_ref().take(BATCH).map(member).unzip();
            self.call(now, members, commands);
        }
    }

    pub(super) fn forget(&mut self, now: BootInstant, key: LockKey, reply: oneshot::Sender<Result<bool, LockError>>) {
        let owner = LockOwner::new(self.shared.candidate.clone());
        let command = LockCommand { key: key.clone(), owner, ttl: self.shared.timing.ttl, op: LockOp::Forget };
        self.call(now, vec![Member::Forget { key, reply }], vec![command]);
    }

    /// Starts a call; past the operation time-out it is dropped, whatever the store makes of that.
    fn call(&mut self, now: BootInstant, members: Vec<Member>, commands: Vec<LockCommand>) {
        let clock = self.shared.clock.clone();
        let after = self.shared.timing.operation_timeout;
        // What the calls before took to hand over is gone from this one's time.
        let timeout = after.saturating_sub(clock.now().saturating_since(now));
        let give_up = now.saturating_add(after);
        let store = self.shared.store.clone();
        let attempted = format!("{} on {}", name(&commands), self.shared.address);
        let handle = self.calls.spawn(async move {
            tokio::select! {
                biased;
                done = store.execute_locks(LockBatch { commands, timeout }) => done,
                () = clock.sleep_until(give_up) => Err(StoreError::TimedOut { attempted, after }),
            }
        });
        self.in_flight.insert(handle.id(), members);
    }

    pub(super) fn finished(&mut self, now: BootInstant, done: Result<(Id, Done), JoinError>) {
        let address = &self.shared.address;
        let (id, done) = done.unwrap_or_else(|error| {
            let id = error.id();
            let cause = match error.try_into_panic() {
                Ok(panic) => format!("the store panicked: {}", describe_panic(panic.as_ref())),
                Err(_) => "the call was aborted".to_owned(),
            };
            (id, Err(StoreError::Unavailable { attempted: format!("a call of {address}"), cause }))
        });
        let Some(members) = self.in_flight.remove(&id) else { return };
        let done = done.and_then(|answers| {
            let wrong = || StoreError::Refused {
                attempted: format!("{} lock commands on {address}", members.len()),
                cause: "the store gave another number of answers".to_owned(),
                advice: "correct the store: each command is answered, in order".to_owned(),
            };
            if answers.len() == members.len() { Ok(answers) } else { Err(wrong()) }
        });
        match done {
            Ok(answers) => {
                if answers.iter().any(Result::is_ok) && !self.told.is_empty() {
                    self.told.clear();
                    self.reporter.send_lock(LockReport::Recovered);
                }
                for (member, answer) in members.into_iter().zip(answers) {
                    if let (Err(error), Member::Lock { nonce, acquires: false, .. }) = (&answer, &member) {
                        // Who asks for a lock is told so itself.
                        self.refused(*nonce, error);
                    }
                    self.answered(now, member, answer);
                }
            }
            Err(error) => {
                let held = members.iter().any(|member| !matches!(member, Member::Lock { acquires: true, .. }));
                // An outage is told of when it begins, and once more for each way in which it shows.
                if held && self.told.len() < MOST_TOLD && !self.told.iter().any(|told| told.is_like(&error)) {
                    self.reporter.send_lock(LockReport::Failed { key: None, error: error.clone() });
                    self.told.push(error.clone());
                }
                for member in members {
                    self.answered(now, member, Err(error.clone()));
                }
            }
        }
    }

    /// One command by itself failed: that is told of its lock when it begins, and not at each attempt.
    fn refused(&self, nonce: u128, error: &StoreError) {
        if let Some(entry) = self.entries.get(&nonce)
            && !entry.trouble.as_ref().is_some_and(|trouble| trouble.is_like(error))
        {
            let key = Some(entry.cell.key.clone());
            self.reporter.send_lock(LockReport::Failed { key, error: error.clone() });
        }
    }

    fn answered(&mut self, now: BootInstant, member: Member, answer: Result<LockAnswer, StoreError>) {
        let token = match &answer {
            Ok(LockAnswer::Won { token }) => Some(*token),
            Ok(LockAnswer::Busy(busy)) => busy.token,
            _ => None,
        };
        self.floor = self.floor.max(token.unwrap_or(Term::default()));
        match (member, answer) {
            (Member::Lock { nonce, no, .. }, Ok(answer)) => self.handle(nonce, now, Event::Answered(no, answer)),
            (Member::Lock { nonce, no, .. }, Err(error)) => {
                let failure = if error.is_permanent() { Failure::Permanent } else { Failure::Passing };
                self.handle_with(nonce, now, Event::Failed(no, failure), Some(&error));
            }
            (Member::Forget { key, reply }, answer) => {
                let forgotten = match answer {
                    Ok(LockAnswer::Forgotten(there)) => Ok(there),
                    Ok(_) => Err(LockError::NotForgotten { key, error: wrong_answer() }),
                    Err(error) => Err(LockError::NotForgotten { key, error }),
                };
                // The asker may have gone.
                let _ = reply.send(forgotten);
            }
        }
    }
}

fn wrong_answer() -> StoreError {
    StoreError::Refused {
        attempted: LockOp::Forget.name().to_owned(),
        cause: "the store answered something else".to_owned(),
        advice: "correct the store: a forget is answered with LockAnswer::Forgotten".to_owned(),
    }
}

fn rank(op: &LockOp) -> u8 {
    match op {
        LockOp::Release { .. } | LockOp::Complete { .. } | LockOp::Forget => 0,
        LockOp::Renew { .. } => 1,
        LockOp::Acquire { .. } => 2,
    }
}

/// What a batch does, for a message.
fn name(commands: &[LockCommand]) -> &'static str {
    let first = commands.first().map_or("lock commands", |command| command.op.name());
    if commands.iter().all(|command| command.op.name() == first) { first } else { "lock commands" }
}
