//! What a schedule asks of the ledger of ticks, by way of the driver.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::clock::BootInstant;
use crate::elector::Elector;
use crate::error::StoreError;
use crate::identity::Candidate;
use crate::store::{TickAnswers, TickCommand};

/// Commands that go out in one call.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) commands: Vec<TickCommand>,
    /// When it was asked.
    pub(crate) asked: BootInstant,
    pub(crate) reply: oneshot::Sender<Result<TickAnswers, StoreError>>,
}

/// The askers' end.
#[derive(Debug)]
pub(crate) struct Ledger {
    outbox: mpsc::UnboundedSender<Question>,
    /// Until the driver takes it.
    inbox: Mutex<Option<mpsc::UnboundedReceiver<Question>>>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let (outbox, inbox) = mpsc::unbounded_channel();
        Self { outbox, inbox: Mutex::new(Some(inbox)) }
    }

    /// For the driver, once.
    pub(crate) fn take_inbox(&self) -> Option<mpsc::UnboundedReceiver<Question>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// For leader-cron. Not part of the stable API.
#[doc(hidden)]
impl Elector {
    /// How long a lease lasts, the part of that which its holder does not use, and how long a call of the store may take.
    #[must_use]
    pub fn __timing(&self) -> (Duration, Duration, Duration) {
        let timing = &self.0.shared.timing;
        (timing.ttl, timing.guard_of(timing.ttl), timing.operation_timeout)
    }

    /// This elector, as the store knows it.
    #[must_use]
    pub fn __candidate(&self) -> &Candidate {
        &self.0.shared.candidate
    }

    /// Asks the ledger; at most a hundred commands at a time, or they keep others waiting.
    pub fn __ask_ledger(
        &self,
        commands: Vec<TickCommand>,
    ) -> impl Future<Output = Result<TickAnswers, StoreError>> + Send + use<> {
        let shared = Arc::clone(&self.0.shared);
        let (reply, answer) = oneshot::channel();
        // If the driver has ended, the reply is dropped with the question.
        let _ = shared.ledger.outbox.send(Question { commands, asked: shared.clock.now(), reply });
        async move {
            answer.await.unwrap_or_else(|_| {
                Err(StoreError::Unavailable {
                    attempted: format!("a tick on {}", shared.address),
                    cause: "the elector has ended".to_owned(),
                })
            })
        }
    }
}
