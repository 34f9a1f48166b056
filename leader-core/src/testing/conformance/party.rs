//! One elector as the suite plays it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::{Announcement, Answer, Answers, Batch, Command, Examination, Held, LeaseStore, Op, SameId, Won};
use crate::testing::Listener;

/// A lease that does not run out while the suite looks at it.
pub(super) const LONG: Duration = Duration::from_secs(120);
/// A lease that is waited for.
pub(super) const SHORT: Duration = Duration::from_millis(400);
/// For what has to happen: long enough for the slowest machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the suite with what was promised and what was seen.
macro_rules! broken {
    ($promise:literal, $($seen:tt)*) => {
        panic!("the store breaks its contract: {}: {}", $promise, format_args!($($seen)*))
    };
}
pub(super) use broken;

/// Ends the suite unless the condition holds.
macro_rules! promised {
    ($condition:expr, $promise:literal, $($seen:tt)*) => {
        if !$condition {
            $crate::testing::conformance::party::broken!($promise, $($seen)*);
        }
    };
}
pub(super) use promised;

/// A connected candidate with its own handle on the store.
pub(super) struct Party {
    pub(super) store: Arc<dyn LeaseStore>,
    pub(super) candidate: Candidate,
    pub(super) listener: Listener,
}

impl Party {
    /// Connects a new incarnation of `id` that follows `groups`.
    pub(super) async fn join(store: Arc<dyn LeaseStore>, id: &InstanceId, groups: &[GroupName]) -> Self {
        let candidate = Candidate { id: id.clone(), incarnation: Incarnation::random() };
        let (session, listener) = Listener::new(candidate.clone(), groups.iter().cloned());
        match within(store.connect(session)).await {
            Some(Ok(())) => Self { store, candidate, listener },
            Some(Err(error)) => broken!("an elector can connect", "{error}"),
            None => broken!("connect answers", "nothing came within {PATIENCE:?}"),
        }
    }

    pub(super) fn command(&self, group: &GroupName, ttl: Duration, op: Op) -> Command {
        Command { group: group.clone(), candidate: self.candidate.clone(), ttl, op }
    }

    pub(super) async fn batch(&self, commands: Vec<Command>) -> Answers {
        let asked = commands.len();
        let batch = Batch { commands, timeout: PATIENCE };
        match within(self.store.execute(batch)).await {
            Some(Ok(answers)) if answers.len() == asked => answers,
            Some(Ok(answers)) => broken!("each command of a batch is answered", "{asked} commands, {answers:?}"),
            Some(Err(error)) => broken!("a batch is executed", "{error}"),
            None => broken!("a batch is answered", "nothing came within {PATIENCE:?}"),
        }
    }

    pub(super) async fn ask(&self, group: &GroupName, ttl: Duration, op: Op) -> Answer {
        let name = op.name();
        match self.batch(vec![self.command(group, ttl, op)]).await.remove(0) {
            Ok(answer) => answer,
            Err(error) => broken!("a command is executed", "{name}: {error}"),
        }
    }

    /// An acquire as a candidate that has seen `floor` asks it.
    pub(super) async fn acquire(&self, group: &GroupName, ttl: Duration, floor: Term) -> Answer {
        self.ask(group, ttl, Op::Acquire { floor, continues: false, same_id: SameId::Leave }).await
    }

    /// An acquire that has to be won.
    pub(super) async fn win(&self, group: &GroupName) -> Won {
        match self.acquire(group, LONG, Term::default()).await {
            Answer::Won(won) => won,
            other => broken!("a free or an own lease is won", "{other:?}"),
        }
    }

    pub(super) async fn renew(&self, group: &GroupName, term: Term) -> Answer {
        self.ask(group, LONG, Op::Renew { term }).await
    }

    pub(super) async fn release(&self, group: &GroupName, term: Option<Term>) -> Answer {
        self.ask(group, LONG, Op::Release { term }).await
    }

    pub(super) async fn inspect(&self, group: &GroupName) -> Option<Held> {
        match self.ask(group, LONG, Op::Inspect).await {
            Answer::Inspected(found) => found,
            other => broken!("an inspect tells the holder", "{other:?}"),
        }
    }

    /// Tells the store of a job of the group.
    pub(super) async fn describe(&self, group: &GroupName) {
        let lines = vec!["@".to_owned(), "@digest 0 0 3 * * *".to_owned()];
        match within(self.store.describe(self.candidate.incarnation, BTreeMap::from([(group.clone(), lines)]))).await {
            Some(Ok(())) => {}
            Some(Err(error)) => broken!("what an elector does can be described", "{error}"),
            None => broken!("a description is answered", "nothing came within {PATIENCE:?}"),
        }
    }

    /// Whatever is found.
    pub(super) async fn examine(&self, group: &GroupName) {
        let examination = Examination {
            candidate: self.candidate.clone(),
            groups: BTreeMap::from([(group.clone(), Vec::new())]),
            program: "a test".to_owned(),
            ttl: LONG,
            timeout: PATIENCE,
        };
        match within(self.store.examine(examination)).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => broken!("a store that is there can be examined", "{error}"),
            None => broken!("an examination has an end", "nothing came within {PATIENCE:?}"),
        }
    }

    /// Waits out whatever quarantine a new group has, so that the lease is free and nobody has to wait for it.
    pub(super) async fn settle(&self, group: &GroupName) {
        let acquire = async {
            loop {
                match self.acquire(group, SHORT, Term::default()).await {
                    Answer::Won(won) => return won.term,
                    Answer::Quarantined { remaining, .. } => tokio::time::sleep(remaining).await,
                    other => broken!("a group that nobody has led is free, after a quarantine at most", "{other:?}"),
                }
            }
        };
        match within(acquire).await {
            // If the lease ran out meanwhile, it is free, too.
            Some(term) => drop(self.release(group, Some(term)).await),
            None => broken!("a quarantine ends", "it did not within {PATIENCE:?}"),
        }
    }

    /// Waits until it is told that `group` may be free.
    pub(super) async fn hears_release_of(&mut self, group: &GroupName) {
        let heard = async {
            loop {
                match self.listener.heard().await {
                    Some(Announcement::Released(released)) if released == *group => return,
                    Some(Announcement::Gap) => return,
                    Some(Announcement::Released(_) | Announcement::LockFree { .. } | Announcement::Examine) => {}
                    None => broken!("the announcer is kept until disconnect", "it was dropped"),
                }
            }
        };
        if within(heard).await.is_none() {
            broken!("a release is announced to the other instances", "nothing was heard within {PATIENCE:?}");
        }
    }

    pub(super) async fn leave(self) {
        match within(self.store.disconnect(self.candidate.incarnation)).await {
            Some(Ok(())) => {}
            Some(Err(error)) => broken!("an elector can disconnect", "{error}"),
            None => broken!("disconnect answers", "nothing came within {PATIENCE:?}"),
        }
    }
}

pub(super) async fn within<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(PATIENCE, future).await.ok()
}
