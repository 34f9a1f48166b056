//! What happens to a group, told to whoever subscribed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::election::LossReason;
use crate::identity::InstanceId;
use crate::lease::Term;

/// What [`Elector::subscribe`](crate::Elector::subscribe) tells of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "event", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Event {
    /// The present state: the first event, and the one after [`Event::Lagged`].
    Now(Role),
    /// This instance leads.
    Acquired {
        /// The number of this acquisition.
        term: Term,
    },
    /// This instance leads no more. Its view had ended before this was told.
    Lost {
        /// The acquisition that ended.
        term: Term,
        /// Why.
        reason: LossReason,
    },
    /// Another instance leads.
    Following {
        /// Who.
        leader: InstanceId,
        /// How long its lease lasts unless renewed.
        remaining: Duration,
    },
    /// Another process with this instance id took the lease: this one stays out until restarted.
    DuplicateInstance,
    /// So many events were dropped because the subscriber did not take them.
    Lagged(u64),
    /// The elector has ended; nothing follows.
    Stopped,
}

/// What an instance is in one group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "role", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Role {
    /// It leads.
    Leader {
        /// Under this term.
        term: Term,
    },
    /// It follows, or waits for the store.
    Follower {
        /// Who leads, as far as it is known.
        leader: Option<InstanceId>,
    },
    /// Its elector has ended.
    Stopped,
}

/// How many events wait for a subscriber before the oldest are dropped.
const CAPACITY: usize = 1024;

/// The events of one group, in order. See [`Elector::subscribe`](crate::Elector::subscribe).
#[derive(Debug)]
pub struct Subscription(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug)]
struct Waiting {
    events: VecDeque<Event>,
    dropped: u64,
    /// The state after the newest event.
    present: Role,
    stopped: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// The next event; `None` after [`Event::Stopped`].
    ///
    /// # Cancel safety
    /// No event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.take() {
                return event;
            }
            self.0.changed.notified().await;
        }
    }

    /// `None` if nothing waits, `Some(None)` at the end.
    fn take(&mut self) -> Option<Option<Event>> {
        let mut waiting = self.0.lock();
        if waiting.dropped > 0 {
            // What waits is older than what was dropped after it: the present state replaces it all.
            let lost = std::mem::take(&mut waiting.dropped) + waiting.events.len() as u64;
            let present = Event::Now(waiting.present.clone());
            waiting.events = VecDeque::from([present]);
            return Some(Some(Event::Lagged(lost)));
        }
        match waiting.events.pop_front() {
            Some(event) => Some(Some(event)),
            None if waiting.stopped => Some(None),
            None => None,
        }
    }
}

/// The sending side: the subscribers of one group.
#[derive(Debug, Default)]
pub(crate) struct Feed(Vec<Weak<Queue>>);

impl Feed {
    pub(crate) fn subscribe(&mut self, present: Role) -> Subscription {
        self.0.retain(|queue| queue.strong_count() > 0);
        let stopped = present == Role::Stopped;
        let events = VecDeque::from([if stopped { Event::Stopped } else { Event::Now(present.clone()) }]);
        let waiting = Mutex::new(Waiting { events, dropped: 0, present, stopped });
        let queue = Arc::new(Queue { waiting, changed: Notify::new() });
        self.0.push(Arc::downgrade(&queue));
        Subscription(queue)
    }

    /// Never blocks on a subscriber: one that does not take its events loses them, and is told how many.
    pub(crate) fn send(&self, event: &Event, present: &Role) {
        for queue in self.0.iter().filter_map(Weak::upgrade) {
            let mut waiting = queue.lock();
            waiting.present = present.clone();
            waiting.stopped |= *event == Event::Stopped;
            if waiting.events.len() < CAPACITY || waiting.stopped {
                waiting.events.push_back(event.clone());
            } else {
                waiting.dropped += 1;
            }
            drop(waiting);
            queue.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follower() -> Role {
        Role::Follower { leader: None }
    }

    fn acquired(n: u64) -> (Event, Role) {
        (Event::Acquired { term: Term::new(n) }, Role::Leader { term: Term::new(n) })
    }

    #[tokio::test]
    async fn the_present_state_comes_first_then_each_change_in_order() {
        let mut feed = Feed::default();
        let mut events = feed.subscribe(follower());
        for n in 1..=3 {
            let (event, role) = acquired(n);
            feed.send(&event, &role);
        }
        assert_eq!(events.next().await, Some(Event::Now(follower())));
        for n in 1..=3 {
            assert_eq!(events.next().await, Some(acquired(n).0));
        }
    }

    #[tokio::test]
    async fn a_slow_subscriber_learns_how_many_it_lost_and_the_present_state() {
        let mut feed = Feed::default();
        let mut events = feed.subscribe(follower());
        for n in 0..2_000 {
            let (event, role) = acquired(n);
            feed.send(&event, &role);
        }
        assert_eq!(events.next().await, Some(Event::Lagged(2_001)));
        assert_eq!(events.next().await, Some(Event::Now(acquired(1_999).1)));
        feed.send(&acquired(7).0, &acquired(7).1);
        assert_eq!(events.next().await, Some(acquired(7).0));
    }

    #[tokio::test]
    async fn the_end_is_told_and_nothing_follows() {
        let mut feed = Feed::default();
        let mut events = feed.subscribe(follower());
        feed.send(&Event::Stopped, &Role::Stopped);
        assert_eq!(events.next().await, Some(Event::Now(follower())));
        assert_eq!(events.next().await, Some(Event::Stopped));
        assert_eq!(events.next().await, None);
        assert_eq!(feed.subscribe(Role::Stopped).next().await, Some(Event::Stopped));
    }
}
