//! Faults of commands to the ledger of ticks.

use std::future::pending;

use super::{About, Fault, FaultyStore};
use crate::error::StoreError;
use crate::store::{TickAnswers, TickBatch, TickCommand};

impl FaultyStore {
    /// Every call from now on with a command to the ledger that it is about has this fault, until [`heal`](Self::heal).
    ///
    /// ```
    /// use leader_core::store::{MemoryStore, TickOp};
    /// use leader_core::testing::{Fault, FaultyStore};
    ///
    /// let store = FaultyStore::new(MemoryStore::new());
    /// // Ticks are claimed, and nobody ever hears of it.
    /// store.inject_for_ticks(Fault::LoseReply, |command| matches!(command.op, TickOp::Claim(_)));
    /// assert_eq!(store.tick_calls(), 0);
    /// ```
    pub fn inject_for_ticks(&self, fault: Fault, about: impl Fn(&TickCommand) -> bool + Send + 'static) {
        self.add(fault, About::Ticks(Box::new(about)), None);
    }

    /// The same, for the next `calls` such calls.
    pub fn inject_for_ticks_times(
        &self,
        calls: u64,
        fault: Fault,
        about: impl Fn(&TickCommand) -> bool + Send + 'static,
    ) {
        self.add(fault, About::Ticks(Box::new(about)), Some(calls));
    }

    /// How many batches of commands to the ledger were asked for, answered or not.
    #[must_use]
    pub fn tick_calls(&self) -> u64 {
        *self.state.tick_calls.borrow()
    }

    /// Waits until at least so many batches of commands to the ledger were asked for.
    ///
    /// # Cancel safety
    /// May be dropped and asked again at any time.
    pub async fn ticks_called(&self, calls: u64) {
        // The sender lives as long as `self`.
        let _ = self.state.tick_calls.subscribe().wait_for(|&so_far| so_far >= calls).await;
    }

    pub(super) async fn try_ticks(&self, batch: TickBatch) -> Result<TickAnswers, StoreError> {
        // Counted only once it is known what becomes of it.
        let fault = self.fault(&batch.commands, is_about_tick);
        self.state.tick_calls.send_modify(|calls| *calls += 1);
        let Some((fault, about)) = fault else {
            return self.inner.execute_ticks(batch).await;
        };
        match fault {
            Fault::Delay(time) => {
                tokio::time::sleep(time).await;
                self.inner.execute_ticks(batch).await
            }
            Fault::DelayReply(time) => {
                let answers = self.inner.execute_ticks(batch).await;
                tokio::time::sleep(time).await;
                answers
            }
            Fault::LoseRequest => pending().await,
            Fault::LoseReply => {
                let _ = self.inner.execute_ticks(batch).await;
                pending().await
            }
            Fault::Fail(error) => Err(error),
            Fault::FailCommands(error) => {
                let others = batch.commands.into_iter().zip(&about).filter(|(_, about)| !**about);
                let others = others.map(|(command, _)| command).collect();
                let others = TickBatch { commands: others, timeout: batch.timeout };
                let mut answers = self.inner.execute_ticks(others).await?.into_iter();
                let each = |about: &bool| if *about { Some(Err(error.clone())) } else { answers.next() };
                // One answer for each of the others, in order.
                Ok(about.iter().filter_map(each).collect())
            }
        }
    }
}

fn is_about_tick(about: &About, command: &TickCommand) -> bool {
    match about {
        About::All => true,
        About::Ticks(about) => about(command),
        About::Leases(_) | About::Locks(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::group::GroupName;
    use crate::identity::{Candidate, Incarnation, InstanceId};
    use crate::store::{JobName, LeaseStore, MemoryStore, TickOp, TickReply};

    fn batch(jobs: &[&str], op: &TickOp) -> TickBatch {
        let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
        let command = |job: &&str| TickCommand {
            group: GroupName::new("g").unwrap(),
            job: JobName::new(job).unwrap(),
            candidate: candidate.clone(),
            op: op.clone(),
        };
        TickBatch { commands: jobs.iter().map(command).collect(), timeout: Duration::from_secs(5) }
    }

    fn register() -> TickOp {
        TickOp::Register { schedule: String::new(), known: None }
    }

    #[tokio::test]
    async fn faults_of_ticks_are_for_commands_to_the_ledger_alone() {
        let error = StoreError::Unavailable { attempted: "claim".to_owned(), cause: "unplugged".to_owned() };
        let store = FaultyStore::new(MemoryStore::new());
        store.inject_when(Fault::Fail(error.clone()), |_| true);
        store.inject_for_locks(Fault::Fail(error.clone()), |_| true);
        store.inject_for_ticks(Fault::FailCommands(error.clone()), |command| command.job.as_str() == "bad");
        let answers = store.execute_ticks(batch(&["a", "bad", "b"], &register())).await.unwrap();
        assert!(answers[0].is_ok() && answers[1] == Err(error.clone()) && answers[2].is_ok(), "{answers:?}");
        store.heal();
        store.inject_for_ticks_times(1, Fault::Fail(error), |_| true);
        assert!(store.execute_ticks(batch(&["a"], &register())).await.is_err());
        assert!(store.execute_ticks(batch(&["a"], &register())).await.is_ok());
        assert_eq!((store.calls(), store.lock_calls(), store.tick_calls()), (0, 0, 3));
        store.ticks_called(3).await;
    }

    #[tokio::test]
    async fn a_lost_answer_hides_what_was_written() {
        for (fault, written) in [(Fault::LoseRequest, false), (Fault::LoseReply, true)] {
            let memory = MemoryStore::new();
            let store = FaultyStore::new(memory.clone());
            store.inject(fault);
            let call = store.execute_ticks(batch(&["a"], &register()));
            assert!(tokio::time::timeout(Duration::from_millis(20), call).await.is_err());
            let answer = memory.execute_ticks(batch(&["a"], &TickOp::Load)).await.unwrap().remove(0).unwrap();
            assert_eq!(answer.reply != TickReply::Unknown, written);
        }
    }
}
