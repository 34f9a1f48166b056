//! An elector whose answers a test decides.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ManualClock;
use crate::block_on::block_on;
use crate::clock::BootInstant;
use crate::config::Config;
use crate::elector::Elector;
use crate::event::{Event, Role};
use crate::group::GroupName;
use crate::identity::{Incarnation, InstanceId};
use crate::lease::Term;
use crate::store::memory::ticks::Ledger;
use crate::store::rules::wall_clock;
use crate::store::{
    Announcer, Answer, Answers, Batch, Command, Guarantees, Held, LeaseStore, LockAnswers, LockBatch, MemoryStore, Op,
    Session, StoreFuture, TickAnswers, TickBatch, TickCommand, Won,
};

const TTL: Duration = Duration::from_secs(10);

/// An elector that leads just the groups that a test says, without a store. Its time stands still until the test moves
/// it, so that a slow machine loses no lease.
///
/// Its locks are its own, and free at the beginning.
///
/// It is a real [`Elector`] (it dereferences to one): use its [`scope`](Elector::scope) or [`enter`](Elector::enter) to
/// have annotated functions ask it. Its methods may block for the moment that the change takes, in async tests too.
///
/// ```standalone_crate
/// use leader_core::{leader_only, testing::FixedElector};
///
/// #[leader_only(group = "reports")]
/// fn build_report() -> Option<&'static str> {
///     Some("built")
/// }
///
/// let elector = FixedElector::following(["reports"]);
/// let _current = elector.enter();
/// assert_eq!(build_report(), None);
///
/// elector.lead("reports");
/// assert_eq!(build_report(), Some("built"));
///
/// elector.follow("reports");
/// assert_eq!(build_report(), None);
/// ```
#[derive(Debug)]
pub struct FixedElector {
    elector: Elector,
    seats: Seats,
    clock: ManualClock,
}

impl FixedElector {
    /// Leads these groups, and follows in every other that the program declares, and in `default`.
    ///
    /// # Panics
    /// If a name is not a [`GroupName`], or the system gives no thread.
    #[must_use]
    pub fn leading<S: Into<String>>(groups: impl IntoIterator<Item = S>) -> Self {
        Self::new(groups, true)
    }

    /// Follows in these groups, in every other that the program declares, and in `default`.
    ///
    /// # Panics
    /// If a name is not a [`GroupName`], or the system gives no thread.
    #[must_use]
    pub fn following<S: Into<String>>(groups: impl IntoIterator<Item = S>) -> Self {
        Self::new(groups, false)
    }

    fn new<S: Into<String>>(groups: impl IntoIterator<Item = S>, lead: bool) -> Self {
        let groups: Vec<String> = groups.into_iter().map(Into::into).collect();
        let clock = ManualClock::new();
        let seats = Seats { state: Arc::default(), locks: MemoryStore::with_clock(clock.clone()) };
        if lead {
            seats.lock().ours = groups.iter().map(|group| (group.clone(), true)).collect();
        }
        let mut config = Config::with_store(seats.clone()).groups(groups).ttl(TTL).manual_clock(clock.clone());
        config.timing.spread = Some(Duration::ZERO);
        match block_on(Elector::start(config)) {
            Ok(elector) => Self { elector, seats, clock },
            Err(error) => panic!("{error}"),
        }
    }

    /// Makes it lead `group`, under a new term unless it leads already.
    ///
    /// # Panics
    /// If it has no such group, or has stepped aside.
    pub fn lead(&self, group: &str) {
        self.change(group, true);
    }

    /// Makes it lose `group`, as if another instance had taken it.
    ///
    /// # Panics
    /// If it has no such group.
    pub fn follow(&self, group: &str) {
        self.change(group, false);
    }

    /// The clock that its deadlines are read from.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn change(&self, group: &str, lead: bool) {
        let mut events = match self.elector.subscribe(group) {
            Ok(events) => events,
            Err(unknown) => panic!("{unknown}"),
        };
        self.seats.give(group, lead);
        if lead {
            let standing = self.elector.status().groups.into_iter().find(|g| g.group.as_str() == group);
            assert!(
                standing.is_none_or(|g| g.standing != crate::status::Standing::Abstaining),
                "the elector has stepped aside from {group}: resume it first"
            );
        } else {
            // The next renew is due, and is refused.
            self.clock.advance(TTL / 3);
        }
        block_on(async {
            while let Some(event) = events.next().await {
                let leads = match event {
                    Event::Now(Role::Leader { .. }) | Event::Acquired { .. } => true,
                    Event::Stopped => return,
                    _ => false,
                };
                if leads == lead {
                    return;
                }
            }
        });
    }
}

impl Deref for FixedElector {
    type Target = Elector;

    fn deref(&self) -> &Elector {
        &self.elector
    }
}

/// The store behind it: a list of the groups that are ours, and locks.
#[derive(Clone)]
struct Seats {
    state: Arc<Mutex<State>>,
    locks: MemoryStore,
}

#[derive(Default)]
struct State {
    ours: HashMap<String, bool>,
    last_term: u64,
    announcer: Option<Announcer>,
    terms: HashMap<GroupName, Term>,
    ledger: Ledger,
}

impl fmt::Debug for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seats")
    }
}

impl Seats {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, group: &str, lead: bool) {
        let mut state = self.lock();
        state.ours.insert(group.to_owned(), lead);
        let name = GroupName::new(group).ok();
        if let (Some(announcer), Some(name)) = (&state.announcer, name.filter(|_| lead)) {
            announcer.released(name);
        }
    }
}

impl State {
    fn answer(&mut self, command: &Command) -> Answer {
        let ours = self.ours.get(command.group.as_str()).copied().unwrap_or(false);
        let held = |holder: InstanceId| Held {
            holder,
            term: Some(Term::new(self.last_term)),
            remaining: Duration::from_secs(3600),
            same_id: false,
            foreign: false,
        };
        match command.op {
            Op::Acquire { .. } if ours => {
                self.last_term += 1;
                let term = Term::new(self.last_term);
                self.terms.insert(command.group.clone(), term);
                Answer::Won(Won { term, in_quarantine: false, older_lease: Duration::ZERO })
            }
            Op::Acquire { .. } => Answer::Held(held(another())),
            Op::Renew { .. } if ours => Answer::Renewed,
            Op::Renew { .. } => Answer::Lost { duplicate: false },
            Op::Release { .. } => Answer::Released,
            Op::Inspect if ours => Answer::Inspected(Some(held(command.candidate.id.clone()))),
            Op::Inspect => Answer::Inspected(Some(held(another()))),
        }
    }
}

fn another() -> InstanceId {
    InstanceId::with_random_suffix("another-instance")
}

impl LeaseStore for Seats {
    fn address(&self) -> String {
        "a test".to_owned()
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            between_processes: false,
            between_hosts: false,
            survives_restart: false,
            loses_acknowledged_writes: false,
        }
    }

    fn connect(&self, session: Session) -> StoreFuture<'_, ()> {
        self.lock().announcer = Some(session.announcer.clone());
        self.locks.connect(session)
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        let mut state = self.lock();
        let answers = batch.commands.iter().map(|command| Ok(state.answer(command))).collect();
        Box::pin(async { Ok(answers) })
    }

    fn execute_locks(&self, batch: LockBatch) -> StoreFuture<'_, LockAnswers> {
        self.locks.execute_locks(batch)
    }

    fn execute_ticks(&self, batch: TickBatch) -> StoreFuture<'_, TickAnswers> {
        let State { ours, terms, ledger, .. } = &mut *self.lock();
        // By the real clock: the elector's own stands still, and ticks are to come all the same.
        let answer = |command: &TickCommand| {
            let led = ours.get(command.group.as_str()).copied().unwrap_or(false);
            let term = terms.get(&command.group).copied().filter(|_| led);
            let lease = term.map(|term| (&command.candidate, term));
            Ok(ledger.execute(command, lease, BootInstant::now(), wall_clock().get()))
        };
        let answers = batch.commands.iter().map(answer).collect();
        Box::pin(async { Ok(answers) })
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        self.lock().announcer = None;
        self.locks.disconnect(incarnation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leads_what_it_is_told_and_nothing_else() {
        let elector = FixedElector::leading(["a"]);
        assert!(elector.is_leader("a") && !elector.is_leader("default"));
        let first = elector.lease("a").unwrap();
        elector.follow("a");
        assert!(!elector.is_leader("a") && !first.is_held());
        elector.lead("a");
        elector.lead("default");
        assert!(elector.is_leader("a") && elector.is_leader("default"));
        assert!(elector.lease("a").unwrap().term() > first.term());
    }

    #[test]
    fn time_passes_only_by_hand() {
        let elector = FixedElector::leading(["a"]);
        let lease = elector.lease("a").unwrap();
        let left = lease.remaining();
        assert!(left > Duration::from_secs(9) && lease.remaining() == left);
        elector.clock().advance(TTL);
        assert!(!lease.is_held(), "a view ends by itself, before anybody has looked");
    }

    #[tokio::test]
    async fn it_steps_down_and_shuts_down_like_any_other() {
        let elector = FixedElector::leading(["a"]);
        assert_eq!(elector.step_down("a").await, Ok(true));
        assert_eq!(elector.step_down("a").await, Ok(false));
        assert!(elector.leader_id("a").await.unwrap().is_some());
        assert_eq!(elector.shutdown(Duration::ZERO).await, Ok(()));
        assert!(!elector.is_leader("a") && elector.ready().is_err());
    }
}
