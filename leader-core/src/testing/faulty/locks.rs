//! Faults of lock commands.

use std::future::pending;

use super::{About, Fault, FaultyStore};
use crate::error::StoreError;
use crate::store::{LockAnswers, LockBatch, LockCommand};

impl FaultyStore {
    /// Every call from now on with a lock command that it is about has this fault, until [`heal`](Self::heal).
    ///
    /// ```
    /// use leader_core::store::{LockOp, MemoryStore};
    /// use leader_core::testing::{Fault, FaultyStore};
    ///
    /// let store = FaultyStore::new(MemoryStore::new());
    /// // Locks are released, and nobody ever hears of it.
    /// store.inject_for_locks(Fault::LoseReply, |command| matches!(command.op, LockOp::Release { .. }));
    /// assert_eq!(store.lock_calls(), 0);
    /// ```
    pub fn inject_for_locks(&self, fault: Fault, about: impl Fn(&LockCommand) -> bool + Send + 'static) {
        self.add(fault, About::Locks(Box::new(about)), None);
    }

    /// The same, for the next `calls` such calls.
    pub fn inject_for_locks_times(
        &self,
        calls: u64,
        fault: Fault,
        about: impl Fn(&LockCommand) -> bool + Send + 'static,
    ) {
        self.add(fault, About::Locks(Box::new(about)), Some(calls));
    }

    /// How many batches of lock commands were asked for, answered or not.
    #[must_use]
    pub fn lock_calls(&self) -> u64 {
        *self.state.lock_calls.borrow()
    }

    /// Waits until at least so many batches of lock commands were asked for.
    ///
    /// # Cancel safety
    /// May be dropped and asked again at any time.
    pub async fn locks_called(&self, calls: u64) {
        // The sender lives as long as `self`.
        let _ = self.state.lock_calls.subscribe().wait_for(|&so_far| so_far >= calls).await;
    }

    pub(super) async fn try_locks(&self, batch: LockBatch) -> Result<LockAnswers, StoreError> {
        // Counted only once it is known what becomes of it.
        let fault = self.fault(&batch.commands, is_about_lock);
        self.state.lock_calls.send_modify(|calls| *calls += 1);
        let Some((fault, about)) = fault else {
            return self.inner.execute_locks(batch).await;
        };
        match fault {
            Fault::Delay(time) => {
                tokio::time::sleep(time).await;
                self.inner.execute_locks(batch).await
            }
            Fault::DelayReply(time) => {
                let answers = self.inner.execute_locks(batch).await;
                tokio::time::sleep(time).await;
                answers
            }
            Fault::LoseRequest => pending().await,
            Fault::LoseReply => {
                let _ = self.inner.execute_locks(batch).await;
                pending().await
            }
            Fault::Fail(error) => Err(error),
            Fault::FailCommands(error) => {
                let others = batch.commands.into_iter().zip(&about).filter(|(_, about)| !**about);
                let others = others.map(|(command, _)| command).collect();
                let others = LockBatch { commands: others, timeout: batch.timeout };
                let mut answers = self.inner.execute_locks(others).await?.into_iter();
                let each = |about: &bool| if *about { Some(Err(error.clone())) } else { answers.next() };
                // One answer for each of the others, in order.
                Ok(about.iter().filter_map(each).collect())
            }
        }
    }
}

fn is_about_lock(about: &About, command: &LockCommand) -> bool {
    match about {
        About::All => true,
        About::Locks(about) => about(command),
        About::Leases(_) | About::Ticks(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::identity::{Candidate, Incarnation, InstanceId};
    use crate::lease::Term;
    use crate::store::{LeaseStore, LockAnswer, LockKey, LockOp, LockOwner, MemoryStore};

    fn batch(keys: &[&str]) -> LockBatch {
        let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
        let command = |key: &&str| LockCommand {
            key: LockKey::new(key).unwrap(),
            owner: LockOwner::new(candidate.clone()),
            ttl: Duration::from_secs(60),
            op: LockOp::Acquire { floor: Term::default(), queue: None, once: false },
        };
        LockBatch { commands: keys.iter().map(command).collect(), timeout: Duration::from_secs(5) }
    }

    #[tokio::test]
    async fn faults_of_locks_are_for_lock_commands_alone() {
        let error = StoreError::Unavailable { attempted: "lock".to_owned(), cause: "unplugged".to_owned() };
        let store = FaultyStore::new(MemoryStore::new());
        store.inject_when(Fault::Fail(error.clone()), |_| true);
        assert!(store.execute_locks(batch(&["a"])).await.is_ok());
        store.inject_for_locks(Fault::FailCommands(error.clone()), |command| command.key.as_str() == "bad");
        let answers = store.execute_locks(batch(&["b", "bad", "c"])).await.unwrap();
        assert!(matches!(answers[..], [Ok(LockAnswer::Won { .. }), Err(_), Ok(LockAnswer::Won { .. })]), "{answers:?}");
        store.heal();
        store.inject_for_locks_times(1, Fault::Fail(error), |_| true);
        assert!(store.execute_locks(batch(&["d"])).await.is_err());
        assert!(store.execute_locks(batch(&["d"])).await.is_ok());
        assert_eq!((store.calls(), store.lock_calls()), (0, 4));
        store.locks_called(4).await;
    }

    #[tokio::test]
    async fn a_lost_answer_hides_a_lock_that_was_taken() {
        for (fault, taken) in [(Fault::LoseRequest, false), (Fault::LoseReply, true)] {
            let memory = MemoryStore::new();
            let store = FaultyStore::new(memory.clone());
            store.inject(fault);
            let call = store.execute_locks(batch(&["k"]));
            assert!(tokio::time::timeout(Duration::from_millis(20), call).await.is_err());
            let answer = memory.execute_locks(batch(&["k"])).await.unwrap().remove(0).unwrap();
            assert_eq!(matches!(answer, LockAnswer::Busy(_)), taken);
        }
    }
}
