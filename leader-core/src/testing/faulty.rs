//! A store that fails on command, and counts.

mod locks;
mod ticks;

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::doctor::Finding;
use crate::error::StoreError;
use crate::fence::{GuardedAnswer, GuardedWrite};
use crate::group::GroupName;
use crate::identity::Incarnation;
use crate::store::{
    Announcer, Answers, Batch, Command, Examination, Guarantees, LeaseStore, LockAnswers, LockBatch, LockCommand,
    Session, StoreFuture, TickAnswers, TickBatch, TickCommand,
};

/// What goes wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The store is asked only after this time.
    Delay(Duration),
    /// The store is asked at once, and its answer comes only after this time.
    DelayReply(Duration),
    /// The store is never asked, and no answer ever comes.
    LoseRequest,
    /// The store is asked and does it, but no answer ever comes.
    LoseReply,
    /// The store is not asked; the whole call fails with this error.
    Fail(StoreError),
    /// The store is asked for the other commands of the batch; each command that the fault is about fails with this error.
    FailCommands(StoreError),
}

/// Wraps a store, does on command what networks and servers do unasked, and counts the calls.
///
/// Clones share faults and counts: keep one, and hand the other to the elector. It waits by tokio's clock, so a test with
/// paused time can use it.
///
/// ```
/// use leader_core::StoreError;
/// use leader_core::store::{LeaseStore, MemoryStore};
/// use leader_core::testing::{Fault, FaultyStore};
///
/// let store = FaultyStore::new(MemoryStore::new());
/// let for_the_elector = store.clone();
/// // From now on, every renew fails, and everything else works.
/// let error = StoreError::Unavailable { attempted: "renew".into(), cause: "somebody pulled the plug".into() };
/// store.inject_when(Fault::Fail(error), |command| matches!(command.op, leader_core::store::Op::Renew { .. }));
/// // And now it works again.
/// store.heal();
/// assert_eq!(store.calls(), 0);
/// # drop(for_the_elector);
/// ```
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn LeaseStore>,
    state: Arc<State>,
}

struct State {
    rules: Mutex<Vec<Rule>>,
    connect: Mutex<Option<StoreError>>,
    mute: AtomicBool,
    calls: watch::Sender<u64>,
    commands: AtomicU64,
    lock_calls: watch::Sender<u64>,
    tick_calls: watch::Sender<u64>,
}

struct Rule {
    fault: Fault,
    about: About,
    /// How many calls it is still for; none for all.
    left: Option<u64>,
}

/// Which commands a fault is about.
enum About {
    All,
    Leases(Box<dyn Fn(&Command) -> bool + Send>),
    Locks(Box<dyn Fn(&LockCommand) -> bool + Send>),
    Ticks(Box<dyn Fn(&TickCommand) -> bool + Send>),
}

impl FaultyStore {
    /// Wraps `inner`; without any fault yet.
    #[must_use]
    pub fn new(inner: impl LeaseStore) -> Self {
        Self::around(Arc::new(inner))
    }

    /// Wraps a store that is shared already.
    #[must_use]
    pub fn around(inner: Arc<dyn LeaseStore>) -> Self {
        let state = State {
            rules: Mutex::default(),
            connect: Mutex::default(),
            mute: AtomicBool::new(false),
            calls: watch::Sender::new(0),
            commands: AtomicU64::new(0),
            lock_calls: watch::Sender::new(0),
            tick_calls: watch::Sender::new(0),
        };
        Self { inner, state: Arc::new(state) }
    }

    /// Every call from now on has this fault, of leases, locks or ticks, until [`heal`](Self::heal).
    pub fn inject(&self, fault: Fault) {
        self.add(fault, About::All, None);
    }

    /// The next `calls` calls have this fault.
    pub fn inject_times(&self, calls: u64, fault: Fault) {
        self.add(fault, About::All, Some(calls));
    }

    /// Every call from now on with a command that it is about has this fault, until [`heal`](Self::heal).
    pub fn inject_when(&self, fault: Fault, about: impl Fn(&Command) -> bool + Send + 'static) {
        self.add(fault, About::Leases(Box::new(about)), None);
    }

    /// Every connect from now on fails with this error, until [`heal`](Self::heal).
    pub fn fail_connect(&self, error: StoreError) {
        *lock(&self.state.connect) = Some(error);
    }

    /// Nobody who connects from now on hears of a release, until [`heal`](Self::heal).
    pub fn lose_announcements(&self) {
        self.state.mute.store(true, Ordering::SeqCst);
    }

    /// Takes away all faults. Calls that wait for an answer that was lost go on waiting.
    pub fn heal(&self) {
        lock(&self.state.rules).clear();
        *lock(&self.state.connect) = None;
        self.state.mute.store(false, Ordering::SeqCst);
    }

    /// How many batches of lease commands were asked for, answered or not.
    #[must_use]
    pub fn calls(&self) -> u64 {
        *self.state.calls.borrow()
    }

    /// How many commands were in those batches.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.state.commands.load(Ordering::SeqCst)
    }

    /// Waits until at least so many batches were asked for.
    ///
    /// # Cancel safety
    /// May be dropped and asked again at any time.
    pub async fn called(&self, calls: u64) {
        // The sender lives as long as `self`.
        let _ = self.state.calls.subscribe().wait_for(|&so_far| so_far >= calls).await;
    }

    fn add(&self, fault: Fault, about: About, left: Option<u64>) {
        lock(&self.state.rules).push(Rule { fault, about, left });
    }

    /// The first fault that is about any of the commands, and which they are.
    fn fault<C>(&self, commands: &[C], is_about: impl Fn(&About, &C) -> bool) -> Option<(Fault, Vec<bool>)> {
        let mut rules = lock(&self.state.rules);
        rules.iter_mut().find_map(|rule| {
            let about: Vec<_> = commands.iter().map(|command| is_about(&rule.about, command)).collect();
            if rule.left == Some(0) || !about.contains(&true) {
                return None;
            }
            rule.left = rule.left.map(|left| left - 1);
            Some((rule.fault.clone(), about))
        })
    }
}

fn is_about_lease(about: &About, command: &Command) -> bool {
    match about {
        About::All => true,
        About::Leases(about) => about(command),
        About::Locks(_) | About::Ticks(_) => false,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner.address())
    }
}

impl LeaseStore for FaultyStore {
    fn address(&self) -> String {
        self.inner.address()
    }

    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn connect(&self, mut session: Session) -> StoreFuture<'_, ()> {
        if let Some(error) = lock(&self.state.connect).clone() {
            return Box::pin(async { Err(error) });
        }
        if self.state.mute.load(Ordering::SeqCst) {
            session.announcer = Announcer::new().0;
        }
        self.inner.connect(session)
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        Box::pin(async move {
            self.state.commands.fetch_add(batch.commands.len() as u64, Ordering::SeqCst);
            self.state.calls.send_modify(|calls| *calls += 1);
            let Some((fault, about)) = self.fault(&batch.commands, is_about_lease) else {
                return self.inner.execute(batch).await;
            };
            match fault {
                Fault::Delay(time) => {
                    tokio::time::sleep(time).await;
                    self.inner.execute(batch).await
                }
                Fault::DelayReply(time) => {
                    let answers = self.inner.execute(batch).await;
                    tokio::time::sleep(time).await;
                    answers
                }
                Fault::LoseRequest => pending().await,
                Fault::LoseReply => {
                    let _ = self.inner.execute(batch).await;
                    pending().await
                }
                Fault::Fail(error) => Err(error),
                Fault::FailCommands(error) => self.execute_others(batch, &about, &error).await,
            }
        })
    }

    fn execute_locks(&self, batch: LockBatch) -> StoreFuture<'_, LockAnswers> {
        Box::pin(self.try_locks(batch))
    }

    fn execute_ticks(&self, batch: TickBatch) -> StoreFuture<'_, TickAnswers> {
        Box::pin(self.try_ticks(batch))
    }

    /// Without a fault of its own.
    fn execute_guarded(&self, write: GuardedWrite) -> StoreFuture<'_, GuardedAnswer> {
        self.inner.execute_guarded(write)
    }

    /// Without a fault of its own.
    fn examine(&self, examination: Examination) -> StoreFuture<'_, Vec<Finding>> {
        self.inner.examine(examination)
    }

    /// Without a fault of its own.
    fn describe(&self, incarnation: Incarnation, groups: BTreeMap<GroupName, Vec<String>>) -> StoreFuture<'_, ()> {
        self.inner.describe(incarnation, groups)
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        self.inner.disconnect(incarnation)
    }
}

impl FaultyStore {
    /// Fails the commands that the fault is `about`, and has the others executed.
    async fn execute_others(&self, batch: Batch, about: &[bool], error: &StoreError) -> Result<Answers, StoreError> {
        let others = batch.commands.into_iter().zip(about).filter(|(_, about)| !**about).map(|(command, _)| command);
        let batch = Batch { commands: others.collect(), timeout: batch.timeout };
        let mut answers = self.inner.execute(batch).await?.into_iter();
        // One answer for each of the others, in order.
        Ok(about.iter().filter_map(|about| if *about { Some(Err(error.clone())) } else { answers.next() }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupName;
    use crate::identity::{Candidate, InstanceId};
    use crate::lease::Term;
    use crate::store::{Answer, MemoryStore, Op, SameId};

    fn batch(groups: &[&str], op: &Op) -> Batch {
        let candidate = Candidate { id: InstanceId::new("a").unwrap(), incarnation: Incarnation::from_u128(1) };
        let command = |group: &&str| Command {
            group: GroupName::new(group).unwrap(),
            candidate: candidate.clone(),
            ttl: Duration::from_secs(60),
            op: op.clone(),
        };
        Batch { commands: groups.iter().map(command).collect(), timeout: Duration::from_secs(5) }
    }

    fn acquire() -> Op {
        Op::Acquire { floor: Term::default(), continues: false, same_id: SameId::Leave }
    }

    fn error() -> StoreError {
        StoreError::Unavailable { attempted: "renew".to_owned(), cause: "unplugged".to_owned() }
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(test);
    }

    /// Whether the group is led, asked of the store itself.
    async fn is_led(store: &MemoryStore, group: &str) -> bool {
        let answers = store.execute(batch(&[group], &Op::Inspect)).await.unwrap();
        matches!(answers[0], Ok(Answer::Inspected(Some(_))))
    }

    #[test]
    fn a_lost_request_does_nothing_and_a_lost_reply_hides_what_was_done() {
        run(async {
            let memory = MemoryStore::new();
            let store = FaultyStore::new(memory.clone());
            for (fault, done) in [(Fault::LoseRequest, false), (Fault::LoseReply, true)] {
                store.inject(fault);
                let call = store.execute(batch(&["g"], &acquire()));
                assert!(tokio::time::timeout(Duration::from_secs(60), call).await.is_err());
                assert_eq!(is_led(&memory, "g").await, done);
                store.heal();
            }
        });
    }

    #[test]
    fn a_delay_comes_before_the_store_is_asked_or_after() {
        run(async {
            let memory = MemoryStore::new();
            let store = FaultyStore::new(memory.clone());
            for (fault, group, done) in [
                (Fault::Delay(Duration::from_secs(9)), "before", false),
                (Fault::DelayReply(Duration::from_secs(9)), "after", true),
            ] {
                store.inject_times(1, fault);
                let mut call = store.execute(batch(&[group], &acquire()));
                assert!(tokio::time::timeout(Duration::from_secs(8), &mut call).await.is_err());
                assert_eq!(is_led(&memory, group).await, done);
                assert!(matches!(call.await.unwrap()[0], Ok(Answer::Won(_))));
            }
        });
    }

    #[test]
    fn a_fault_is_only_for_so_many_calls_and_only_for_what_it_is_about() {
        run(async {
            let store = FaultyStore::new(MemoryStore::new());
            store.inject_times(1, Fault::Fail(error()));
            assert_eq!(store.execute(batch(&["g"], &acquire())).await, Err(error()));
            store.inject_when(Fault::FailCommands(error()), |command| command.group.as_str() == "bad");
            let answers = store.execute(batch(&["a", "bad", "b"], &acquire())).await.unwrap();
            assert!(matches!(answers[..], [Ok(Answer::Won(_)), Err(_), Ok(Answer::Won(_))]), "{answers:?}");
            assert_eq!((store.calls(), store.commands()), (2, 4));
            store.called(2).await;
        });
    }

    #[test]
    fn connects_fail_and_announcements_are_lost_until_it_heals() {
        run(async {
            let memory = MemoryStore::new();
            let store = FaultyStore::new(memory.clone());
            let candidate = Candidate { id: InstanceId::new("b").unwrap(), incarnation: Incarnation::from_u128(2) };
            let session = || super::super::Listener::new(candidate.clone(), [GroupName::new("g").unwrap()]);
            store.fail_connect(error());
            assert_eq!(store.connect(session().0).await, Err(error()));
            store.heal();
            for heard in [false, true] {
                if !heard {
                    store.lose_announcements();
                }
                let (session, mut listener) = session();
                store.connect(session).await.unwrap();
                memory.execute(batch(&["g"], &acquire())).await.unwrap()[0].as_ref().unwrap();
                memory.execute(batch(&["g"], &Op::Release { term: None })).await.unwrap()[0].as_ref().unwrap();
                assert_eq!(listener.heard().await.is_some(), heard);
                store.heal();
            }
        });
    }
}
