//! What an expanded `#[leader_only]` calls.

use std::collections::BTreeSet;
use std::sync::Mutex;

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
    pub async fn run<F: Future>(self, body: F) -> F::Output {
        body.await
    }

    /// Runs the body until the lease is lost: then `None`.
    pub async fn run_cancellable<F: Future>(self, body: F) -> Option<F::Output> {
        let lost = async {
            loop {
                let changed = CHANGED.notified();
                if !is_leader(self.group) {
                    return;
                }
                changed.await;
            }
        };
        tokio::select! {
            biased;
            () = lost => None,
            done = body => Some(done),
        }
    }

    /// Runs a body that is not async.
    pub fn run_sync<T>(self, body: impl FnOnce() -> T) -> T {
        body()
    }
}
