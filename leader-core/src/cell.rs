//! What the driver writes and everybody else reads of one group.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{BootInstant, Clock};
use crate::election::LossReason;
use crate::entry::Entry;
use crate::event::{Event, Feed, Role, Subscription};
use crate::gate::{OnLoss, Slot};
use crate::group::GroupName;
use crate::identity::InstanceId;
use crate::lease::{Acquisition, Lease, LocalView, Term};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::work::{What, Work};

#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) group: GroupName,
    pub(crate) view: LocalView,
    pub(crate) work: Arc<Work>,
    /// The process-wide place of this group, if this elector is the process's own.
    pub(crate) slot: Option<&'static Slot>,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    acquisition: Option<Arc<Acquisition>>,
    leader: Option<Sighting>,
    problem: Option<Arc<str>>,
    abstaining: bool,
    duplicate: bool,
    stopped: bool,
    feed: Feed,
}

/// Another instance, as it was seen to lead.
#[derive(Debug, Clone)]
pub(crate) struct Sighting {
    pub(crate) id: InstanceId,
    pub(crate) term: Option<Term>,
    pub(crate) until: BootInstant,
}

/// A copy of what a status shows.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) lease: Option<Lease>,
    pub(crate) leader: Option<Sighting>,
    pub(crate) problem: Option<Arc<str>>,
    pub(crate) abstaining: bool,
    pub(crate) duplicate: bool,
}

impl Cell {
    pub(crate) fn new(group: GroupName, clock: Clock, process_wide: bool, idle: Arc<Notify>) -> Arc<Self> {
        let cell = Arc::new(Self {
            view: LocalView::follower(clock.clone()),
            work: Arc::new(Work::new(Some(group.clone()), clock.clone(), idle)),
            slot: process_wide.then(|| Slot::of(group.as_str())),
            group,
            clock,
            state: Mutex::default(),
        });
        if let Some(slot) = cell.slot {
            slot.attach(&cell);
        }
        cell
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease that is held now; none once the elector has ended, though work may still run under it.
    pub(crate) fn lease(&self) -> Option<Lease> {
        let state = self.lock();
        let acquisition = state.acquisition.clone().filter(|_| !state.stopped)?;
        Some(Lease(acquisition)).filter(Lease::is_held)
    }

    /// Registers work that is about to begin, if this instance leads and no drain is on.
    pub(crate) fn enter(&self, what: What, on_loss: OnLoss) -> Option<Entry> {
        self.lease()?;
        let ticket = self.work.begin(what, on_loss == OnLoss::Cancel)?;
        // Looked at again after it was registered: a release waits for what is registered.
        Some(Entry::new(self.lease()?, ticket))
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        let mut state = self.lock();
        let present = self.role(&state);
        state.feed.subscribe(present)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        Snapshot {
            lease: state.acquisition.clone().map(Lease).filter(Lease::is_held),
            leader: state.leader.clone(),
            problem: state.problem.clone(),
            abstaining: state.abstaining,
            duplicate: state.duplicate,
        }
    }

    /// The view should have ended so long ago, but nobody has ended it: the driver stands still.
    pub(crate) fn overdue(&self, now: BootInstant) -> Duration {
        let state = self.lock();
        let deadline = state.acquisition.as_ref().map(|a| Lease(Arc::clone(a)).deadline());
        deadline.map_or(Duration::ZERO, |d| now.saturating_since(d))
    }

    fn role(&self, state: &State) -> Role {
        match &state.acquisition {
            _ if state.stopped => Role::Stopped,
            Some(acquisition) => Role::Leader { term: acquisition.term() },
            None => Role::Follower { leader: state.leader.as_ref().map(|l| l.id.clone()) },
        }
    }
}

/// The writing side: called by the driver only. The view always changes before anybody is told.
impl Cell {
    /// This instance may believe that it leads: a new acquisition, or the same one for longer.
    pub(crate) fn lead(&self, term: Term, deadline: BootInstant, unbroken_since: Term) {
        let mut state = self.lock();
        match &state.acquisition {
            Some(acquisition) if acquisition.term() == term => acquisition.extend(deadline),
            _ => {
                self.end(&mut state);
                let acquisition =
                    Acquisition::new(self.group.clone(), (term, unbroken_since), deadline, self.clock.clone());
                state.acquisition = Some(Arc::new(acquisition));
                state.leader = None;
            }
        }
        self.view.lead_until(deadline);
        if let Some(slot) = self.slot {
            slot.publish(self, Some(deadline));
        }
    }

    /// This instance may believe nothing.
    pub(crate) fn follow(&self) {
        let mut state = self.lock();
        self.end(&mut state);
    }

    fn end(&self, state: &mut State) {
        let Some(acquisition) = state.acquisition.take() else { return };
        if let Some(slot) = self.slot {
            slot.publish(self, None);
        }
        self.view.follow();
        acquisition.end();
    }

    pub(crate) fn tell_acquired(&self, term: Term) {
        self.tell(|_| {}, Event::Acquired { term });
    }

    pub(crate) fn tell_lost(&self, term: Term, reason: LossReason) {
        self.tell(|_| {}, Event::Lost { term, reason });
    }

    /// Tells only of a leader that was not known: a lease that is renewed is no news.
    pub(crate) fn tell_following(&self, leader: Sighting, remaining: Duration) -> bool {
        let news = self.lock().leader.as_ref().is_none_or(|known| known.id != leader.id || known.term != leader.term);
        if news {
            let event = Event::Following { leader: leader.id.clone(), remaining };
            self.tell(|state| state.leader = Some(leader), event);
        } else {
            self.lock().leader = Some(leader);
        }
        news
    }

    pub(crate) fn tell_duplicate(&self) {
        self.tell(|state| state.duplicate = true, Event::DuplicateInstance);
    }

    /// Nobody is known to lead.
    pub(crate) fn forget_leader(&self) {
        self.lock().leader = None;
    }

    pub(crate) fn set_abstaining(&self, abstaining: bool) {
        self.lock().abstaining = abstaining;
    }

    /// Whether this is news.
    pub(crate) fn set_problem(&self, problem: Option<&str>) -> bool {
        let mut state = self.lock();
        let news = state.problem.as_deref() != problem;
        if news {
            state.problem = problem.map(Arc::from);
        }
        news
    }

    pub(crate) fn acquisition(&self) -> Option<Arc<Acquisition>> {
        self.lock().acquisition.clone()
    }

    /// The elector ends: gates skip from here on. A lease that is still held runs out by itself.
    pub(crate) fn stop(&self) {
        self.work.close();
        if let Some(slot) = self.slot {
            slot.detach(self);
        }
        self.view.unmanage();
        self.tell(|state| state.stopped = true, Event::Stopped);
        self.work.end();
    }

    fn tell(&self, change: impl FnOnce(&mut State), event: Event) {
        let mut state = self.lock();
        if state.stopped {
            return;
        }
        change(&mut state);
        let present = self.role(&state);
        state.feed.send(&event, &present);
    }
}
