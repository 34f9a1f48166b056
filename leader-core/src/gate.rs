//! What an expanded `#[leader_only]` calls.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use tokio::sync::Notify;

use crate::group::Site;

static LED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static CHANGED: Notify = Notify::const_new();

/// Makes this process the leader of `group`, or a follower.
///
/// # Panics
/// If a thread panicked while it changed the set of groups.
pub fn set_leader(group: &str, leads: bool) {
    let mut led = LED.lock().expect("nothing panics under this lock");
    if leads {
        led.insert(group.to_owned());
    } else {
        led.remove(group);
    }
    drop(led);
    CHANGED.notify_waiters();
}

fn is_leader(group: &str) -> bool {
    LED.lock().expect("nothing panics under this lock").contains(group)
}

/// What happens to running work when the lease is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// It runs to its end.
    Finish,
    /// It is dropped at its next await.
    Cancel,
}

/// One gated function.
#[derive(Debug)]
pub struct CallSite {
    group: &'static str,
    #[expect(dead_code, reason = "for messages")]
    site: Site,
}

impl CallSite {
    /// The gate of a function.
    #[must_use]
    pub const fn new(group: &'static str, site: Site) -> Self {
        Self { group, site }
    }

    /// Asks the gate: `None` on a follower.
    pub fn enter(&'static self, on_loss: OnLoss) -> Option<Entry> {
        is_leader(self.group).then_some(Entry { group: self.group, _on_loss: on_loss })
    }
}

/// The right to run a body once.
#[derive(Debug)]
pub struct Entry {
    group: &'static str,
    _on_loss: OnLoss,
}

impl Entry {
    /// Runs the body to its end.
    pub fn run<F: Future>(self, body: F) -> Running<F> {
        Running { body, _entry: self }
    }

    /// Runs the body until the lease is lost: then `None`.
    pub fn run_cancellable<F: Future>(self, body: F) -> RunningCancellable<F> {
        let group = self.group;
        let lost = Box::pin(async move {
            loop {
                let changed = CHANGED.notified();
                if !is_leader(group) {
                    return;
                }
                changed.await;
            }
        });
        RunningCancellable { body: Some(body), lost, _entry: self }
    }

    /// Runs a body that is not async.
    pub fn run_sync<T>(self, body: impl FnOnce() -> T) -> T {
        body()
    }
}

// Futures of their own: an `async fn` that is given the body keeps it twice, as its argument and as what it awaits.
pin_project_lite::pin_project! {
    /// A gated body that runs to its end.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Running<F> {
        #[pin]
        body: F,
        _entry: Entry,
    }
}

impl<F: Future> Future for Running<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().body.poll(cx)
    }
}

pin_project_lite::pin_project! {
    /// A gated body that runs until the lease is lost.
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct RunningCancellable<F> {
        #[pin]
        body: Option<F>,
        lost: Pin<Box<dyn Future<Output = ()> + Send>>,
        _entry: Entry,
    }
}

impl<F: Future> Future for RunningCancellable<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let mut this = self.project();
        if this.lost.as_mut().poll(cx).is_ready() {
            this.body.set(None);
            return Poll::Ready(None);
        }
        match this.body.as_pin_mut() {
            Some(body) => body.poll(cx).map(Some),
            None => Poll::Ready(None),
        }
    }
}
