//! Calls of the ledger of ticks, on behalf of a schedule.
//!
//! They run beside the elections and the locks, on the same thread and in calls of their own: no lease waits for a tick.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::StoreError;
use crate::ledger::Question;
use crate::shared::Shared;
use crate::store::TickBatch;

/// So many calls of the store are under way at most: a crowd of jobs holds up the store for no longer than these take.
const CALLS: usize = 4;
/// What waits meanwhile goes out together, up to so many commands in one call: a longer script would keep other clients of the
/// store waiting. A crowd whose runs end one by one would otherwise cost a round trip, or a transaction, each.
const COMMANDS: usize = 100;

pub(super) struct Ticks {
    shared: Arc<Shared>,
    inbox: mpsc::UnboundedReceiver<Question>,
    waiting: VecDeque<Question>,
    calls: JoinSet<()>,
}

impl Ticks {
    /// # Panics
    /// If the elector has a driver already.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let inbox = shared.ledger.take_inbox().expect("an elector has one driver");
        Self { shared, inbox, waiting: VecDeque::new(), calls: JoinSet::new() }
    }

    /// Takes in questions, and the ends of calls. Returns when there is room for what waits.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub(super) async fn happened(&mut self) {
        tokio::select! {
            biased;
            // What a call said went to the asker; of one that panicked the asker learns by the loss of its question.
            Some(_) = self.calls.join_next() => {}
            // The elector itself holds a sender: it is never closed.
            Some(question) = self.inbox.recv() => self.waiting.push_back(question),
        }
    }

    /// Asks the store what there is room for. `away`: why it cannot be asked yet.
    pub(super) fn advance(&mut self, away: Option<&StoreError>) {
        while let Ok(question) = self.inbox.try_recv() {
            self.waiting.push_back(question);
        }
        if let Some(error) = away {
            for question in self.waiting.drain(..) {
                // The asker may have gone.
                let _ = question.reply.send(Err(error.clone()));
            }
        }
        while self.calls.len() < CALLS && !self.waiting.is_empty() {
            let together = self.together();
            let questions = self.waiting.drain(..together).collect();
            self.call(questions);
        }
    }

    /// Nothing is asked of the store any more: who waits, or asks from here on, is told by the loss of the question.
    pub(super) fn close(&mut self) {
        self.inbox.close();
        while self.inbox.try_recv().is_ok() {}
        self.waiting.clear();
    }

    /// How many of the first questions that wait go out in one call. One that has most of its time left does not go out with
    /// one whose time is nearly over, as the call has no more than that.
    fn together(&self) -> usize {
        let first = self.waiting.front().map(|question| question.asked).unwrap_or_default();
        let youngest = first.saturating_add(self.shared.timing.operation_timeout / 2);
        let commands =
            self.waiting.iter().take_while(|question| question.asked <= youngest).scan(0, |sum, question| {
                *sum += question.commands.len();
                Some(*sum)
            });
        // The first one goes out whatever its length.
        commands.skip(1).take_while(|commands| *commands <= COMMANDS).count() + 1
    }

    /// Starts a call; past the operation time-out it is dropped, whatever the store makes of that.
    fn call(&mut self, questions: Vec<Question>) {
        let clock = self.shared.clock.clone();
        let after = self.shared.timing.operation_timeout;
        // What they have waited for is gone from their time: slots count from when they were asked.
        let now = clock.now();
        let asked = questions.iter().map(|question| question.asked).min().unwrap_or(now);
        let timeout = after.saturating_sub(now.saturating_since(asked));
        let give_up = asked.saturating_add(after);
        let store = self.shared.store.clone();
        let address = self.shared.address.clone();
        let (mut commands, mut replies) = (Vec::new(), Vec::with_capacity(questions.len()));
        for question in questions {
            replies.push((question.commands.len(), question.reply));
            commands.extend(question.commands);
        }
        self.calls.spawn(async move {
            let (asked_for, name) = (commands.len(), commands.first().map_or("ticks", |command| command.op.name()));
            let done = tokio::select! {
                biased;
                done = store.execute_ticks(TickBatch { commands, timeout }) => done,
                () = clock.sleep_until(give_up) => Err(StoreError::TimedOut { attempted: format!("{name} on {address}"), after }),
            };
            let done = done.and_then(|answers| {
                if answers.len() == asked_for {
                    return Ok(answers);
                }
                Err(StoreError::Refused {
                    attempted: format!("{asked_for} commands to the ledger on {address}"),
                    cause: "the store gave another number of answers".to_owned(),
                    advice: "correct the store: each command is answered, in order".to_owned(),
                })
            });
            match done {
                Ok(answers) => {
                    let mut answers = answers.into_iter();
                    for (commands, reply) in replies {
                        // The asker may have gone.
                        let _ = reply.send(Ok(answers.by_ref().take(commands).collect()));
                    }
                }
                Err(error) => replies.into_iter().for_each(|(_, reply)| drop(reply.send(Err(error.clone())))),
            }
        });
    }
}
