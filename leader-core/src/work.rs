//! Work that is running, listed so that a drain can wait for it and a person can see it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::clock::{BootInstant, Clock};
use crate::group::{GroupName, Site};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// What is running, in a message or a status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RunningWork {
    /// The function, job or call.
    pub what: String,
    /// Its group; `None` for work that is not gated (a job that runs on every instance).
    pub group: Option<GroupName>,
    /// For how long it has been running.
    pub running_for: Duration,
    /// Whether this is a lock that is held, and not work under a lease.
    pub is_lock: bool,
}

impl fmt::Display for RunningWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:.1} s", self.what, self.running_for.as_secs_f64())?;
        match &self.group {
            Some(group) => write!(f, ", group {group})"),
            None => f.write_str(")"),
        }
    }
}

/// The name under which work is listed.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Site(Site),
    Named(Arc<str>),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Site(site) => site.fmt(f),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// The work of one group, or the ungated work of an elector.
#[derive(Debug)]
pub(crate) struct Work {
    group: Option<GroupName>,
    state: Mutex<State>,
    clock: Clock,
    /// Rung when the last work of a closed group has ended.
    idle: Arc<Notify>,
    /// Rung when new work may start again, or never will.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    last: u64,
    running: BTreeMap<u64, Running>,
}

#[derive(Debug)]
struct Running {
    what: What,
    since: BootInstant,
    cancellable: bool,
}

impl Work {
    pub(crate) fn new(group: Option<GroupName>, clock: Clock, idle: Arc<Notify>) -> Self {
        Self { group, state: Mutex::default(), clock, idle, changed: Notify::new() }
    }

    /// Registers work that begins; `None` if no new work may start.
    pub(crate) fn begin(self: &Arc<Self>, what: What, cancellable: bool) -> Option<Ticket> {
        let mut state = self.lock();
        (!state.closed).then(|| self.register(&mut state, what, cancellable))
    }

    /// Registers what is left to be done of work that began, also if no new work may start.
    pub(crate) fn begin_rest(self: &Arc<Self>, what: What) -> Ticket {
        self.register(&mut self.lock(), what, true)
    }

    fn register(self: &Arc<Self>, state: &mut State, what: What, cancellable: bool) -> Ticket {
        state.last += 1;
        let number = state.last;
        state.running.insert(number, Running { what, since: self.clock.now(), cancellable });
        let (cancelled, refused) = Default::default();
        Ticket { work: Arc::clone(self), number, cancelled, refused }
    }

    /// No new work starts from here on.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    pub(crate) fn open(&self) {
        self.lock().closed = false;
        self.changed.notify_waiters();
    }

    /// No new work will ever start.
    pub(crate) fn end(&self) {
        self.close();
        self.changed.notify_waiters();
    }

    /// Resolves at the first [`open`](Self::open) or [`end`](Self::end) after this call.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lock().running.is_empty()
    }

    /// Something is running that does not end by being cancelled.
    pub(crate) fn must_finish(&self) -> bool {
        self.lock().running.values().any(|r| !r.cancellable)
    }

    pub(crate) fn running(&self) -> Vec<RunningWork> {
        let now = self.clock.now();
        let state = self.lock();
        let describe = |r: &Running| RunningWork {
            what: r.what.to_string(),
            group: self.group.clone(),
            running_for: now.saturating_since(r.since),
            is_lock: false,
        };
        state.running.values().map(describe).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work that is running; it has ended when this is dropped, by return, panic or cancellation.
#[derive(Debug)]
pub(crate) struct Ticket {
    work: Arc<Work>,
    number: u64,
    cancelled: AtomicBool,
    refused: AtomicBool,
}

impl Ticket {
    pub(crate) fn set_cancellable(&self, cancellable: bool) {
        if let Some(running) = self.work.lock().running.get_mut(&self.number) {
            running.cancellable = cancellable;
        }
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn was_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The work is cancelled before it has begun.
    pub(crate) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
        self.cancel();
    }

    pub(crate) fn was_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.work.lock();
        state.running.remove(&self.number);
        let ended = state.closed && state.running.is_empty();
        drop(state);
        if ended {
            self.work.idle.notify_one();
        }
    }
}
