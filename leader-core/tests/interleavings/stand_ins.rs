//! What the files that are tried here use of others.

pub(crate) mod clock {
    pub(crate) use leader_core::BootInstant;

    /// It stands still.
    pub(crate) const NOW: u64 = 1_000;

    #[derive(Debug, Clone, Default)]
    pub(crate) enum Clock {
        #[default]
        Boot,
    }

    impl Clock {
        pub(crate) fn now(&self) -> BootInstant {
            BootInstant::from_nanos(NOW)
        }
    }
}

pub(crate) mod election {
    pub(crate) use leader_core::LossReason;
}

pub(crate) mod entry {
    use crate::gate::OnLoss;
    use crate::lease::Lease;
    use crate::work::Ticket;

    /// Permission to run work, and its ticket.
    #[derive(Debug)]
    pub struct Entry {
        pub(crate) lease: Lease,
        ticket: Ticket,
    }

    impl Entry {
        pub(crate) fn new(lease: Lease, ticket: Ticket) -> Self {
            Self { lease, ticket }
        }
    }

    /// No body was entered for a tick.
    pub(crate) enum Claim {
        None,
        Entered(Entry),
        Ended,
    }

    pub(crate) fn claimed(_group: &str, _on_loss: OnLoss) -> Claim {
        Claim::None
    }
}

pub(crate) mod event {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::time::Duration;

    use crate::election::LossReason;
    use crate::identity::InstanceId;
    use crate::lease::Term;
    use crate::sync::Mutex;

    #[derive(Debug, Clone)]
    pub(crate) enum Event {
        Acquired { term: Term },
        Lost { term: Term, reason: LossReason },
        Following { leader: InstanceId, remaining: Duration },
        DuplicateInstance,
        Stopped,
    }

    pub(crate) enum Role {
        Leader { term: Term },
        Follower { leader: Option<InstanceId> },
        Stopped,
    }

    /// A subscriber who looks instead of waiting.
    #[derive(Debug)]
    pub(crate) struct Subscription(Arc<Mutex<VecDeque<Event>>>);

    impl Subscription {
        pub(crate) fn take(&self) -> Option<Event> {
            self.0.lock().unwrap().pop_front()
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Feed(Vec<Arc<Mutex<VecDeque<Event>>>>);

    impl Feed {
        pub(crate) fn subscribe(&mut self, _present: Role) -> Subscription {
            let queue = Arc::new(Mutex::new(VecDeque::new()));
            self.0.push(Arc::clone(&queue));
            Subscription(queue)
        }

        pub(crate) fn send(&self, event: &Event, _present: &Role) {
            self.0.iter().for_each(|queue| queue.lock().unwrap().push_back(event.clone()));
        }
    }
}

pub(crate) mod group {
    pub(crate) use leader_core::{GroupName, Site};

    pub(crate) const fn is_valid(_name: &str) -> bool {
        true
    }
}

pub(crate) mod identity {
    pub(crate) use leader_core::InstanceId;
}

/// There is no scope.
pub(crate) mod scope {
    use crate::cell::Cell;

    pub(crate) struct Special;

    impl Special {
        pub(crate) fn any() -> bool {
            false
        }
    }

    pub(crate) enum Elector {}

    impl Elector {
        pub(crate) fn cell_in_scope(&self, _group: &str) -> &Cell {
            match *self {}
        }
    }

    pub(crate) fn current() -> Option<Elector> {
        None
    }
}
