//! One elector as these tests play it, in group `g`.

use std::path::Path;
use std::time::Duration;

use leader_core::store::{Announcement, Answer, Answers, Batch, Command, LeaseStore, Op, SameId, SqliteStore};
use leader_core::testing::Listener;
use leader_core::{Candidate, GroupName, Incarnation, InstanceId, StoreError, Term};

/// A lease that does not run out during a test.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// For what has to happen: long enough for the slowest machine, and shorter than [`LONG`].
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Party {
    pub(crate) store: SqliteStore,
    pub(crate) candidate: Candidate,
    pub(crate) listener: Listener,
}

pub(crate) fn group(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

impl Party {
    /// Connects by a handle of its own.
    pub(crate) async fn join(path: &Path, id: &str) -> Result<Self, StoreError> {
        Self::by(SqliteStore::new(path), id).await
    }

    pub(crate) async fn by(store: SqliteStore, id: &str) -> Result<Self, StoreError> {
        let candidate = Candidate { id: InstanceId::new(id).unwrap(), incarnation: Incarnation::random() };
        let (session, listener) = Listener::new(candidate.clone(), [group("g")]);
        tokio::time::timeout(PATIENCE, store.connect(session)).await.unwrap()?;
        Ok(Self { store, candidate, listener })
    }

    pub(crate) fn command(&self, name: &str, ttl: Duration, op: Op) -> Command {
        Command { group: group(name), candidate: self.candidate.clone(), ttl, op }
    }

    pub(crate) async fn batch(&self, commands: Vec<Command>, timeout: Duration) -> Result<Answers, StoreError> {
        let call = self.store.execute(Batch { commands, timeout });
        tokio::time::timeout(PATIENCE, call).await.unwrap()
    }

    pub(crate) async fn ask(&self, ttl: Duration, op: Op) -> Result<Answer, StoreError> {
        self.batch(vec![self.command("g", ttl, op)], PATIENCE).await?.remove(0)
    }

    pub(crate) async fn acquire(&self, ttl: Duration) -> Result<Answer, StoreError> {
        self.ask(ttl, acquire()).await
    }

    /// Wins the lease for [`LONG`].
    pub(crate) async fn win(&self) -> Term {
        match self.acquire(LONG).await {
            Ok(Answer::Won(won)) => won.term,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn renew(&self, term: Term) -> Result<Answer, StoreError> {
        self.ask(LONG, Op::Renew { term }).await
    }

    /// The next group that is announced as free.
    pub(crate) async fn hears(&mut self) -> GroupName {
        match tokio::time::timeout(PATIENCE, self.listener.heard()).await.unwrap() {
            Some(Announcement::Released(group)) => group,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn leave(self) {
        self.store.disconnect(self.candidate.incarnation).await.unwrap();
    }
}

pub(crate) fn acquire() -> Op {
    Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Leave }
}

/// The text of an error that will not pass by itself.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(error) if error.is_permanent() => error.to_string(),
        other => panic!("{other:?}"),
    }
}
