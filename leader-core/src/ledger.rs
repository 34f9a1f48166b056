//! What leader-cron asks of an elector: the gate, and, by way of the driver, the ledger of ticks.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::clock::BootInstant;
use crate::elector::Elector;
use crate::entry::Entry;
use crate::error::StoreError;
use crate::gate::OnLoss;
use crate::identity::Candidate;
use crate::jobs::{JobClaim, NamedJob};
use crate::shared::{ByHand, Phase};
use crate::store::{TickAnswers, TickCommand};
use crate::work::What;

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

    /// Registers a gated body named `what`; `None` if this instance does not lead, or a drain is on.
    pub fn __enter(&self, group: &str, what: &Arc<str>, on_loss: OnLoss) -> Option<Entry> {
        self.known(group)?.enter(What::Named(Arc::clone(what)), on_loss)
    }

    /// Registers a body that is not gated; `None` once the shutdown has begun. It is waited for until the result is dropped.
    pub fn __begin_ungated(&self, what: &Arc<str>) -> Option<impl Send + Sync + use<>> {
        self.shared().ungated.begin(What::Named(Arc::clone(what)), false)
    }

    /// The ledger has to be told something: until the result is dropped, or the grace is over, a shutdown waits for that.
    #[must_use]
    pub fn __owe(&self) -> impl Send + Sync + use<> {
        self.shared().owed.begin_rest(What::Named(Arc::from("ticks that the ledger was not told of")))
    }

    /// Keeps these names for one scheduler. The error names those that another one has.
    pub fn __claim_jobs(&self, jobs: &[NamedJob]) -> Result<JobClaim, Vec<Arc<str>>> {
        self.shared().jobs.take(jobs)?;
        let names = jobs.iter().map(|(name, _)| Arc::clone(name)).collect();
        Ok(JobClaim::new(Arc::clone(&self.0.shared), names))
    }

    /// Begins a run by hand that excludes others, for this owner; `None` if one of this job is on, of whichever scheduler of
    /// this elector: also of one that was stopped, or has removed the job.
    pub fn __begin_by_hand(&self, job: &Arc<str>, owner: u128) -> Option<ByHand> {
        let mut by_hand = self.shared().by_hand.lock().unwrap_or_else(PoisonError::into_inner);
        if by_hand.contains_key(job) {
            return None;
        }
        by_hand.insert(Arc::clone(job), owner);
        Some(ByHand::new(Arc::clone(&self.0.shared), Arc::clone(job)))
    }

    /// Whether such a run is on, of another owner.
    #[must_use]
    pub fn __is_by_hand_of_another(&self, job: &str, owner: u128) -> bool {
        let by_hand = self.shared().by_hand.lock().unwrap_or_else(PoisonError::into_inner);
        by_hand.get(job).is_some_and(|of| *of != owner)
    }

    /// Whether annotated functions ask this elector everywhere, not only inside its scopes.
    #[must_use]
    pub fn __is_process_wide(&self) -> bool {
        self.shared().cells.values().any(|cell| cell.slot.is_some())
    }

    /// Resolves when the shutdown has begun, or the elector has ended in another way.
    pub async fn __closing(&self) {
        self.reached(Phase::Ending).await;
    }

    /// Resolves when the elector has ended: it asks the store nothing any more.
    pub async fn __ended(&self) {
        self.reached(Phase::Stopped).await;
    }

    async fn reached(&self, phase: Phase) {
        let mut progress = self.shared().progress.subscribe();
        // The sender lives as long as this handle.
        let _ = progress.wait_for(|p| p.phase >= phase).await;
    }
}
