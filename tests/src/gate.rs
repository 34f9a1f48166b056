//! Who leads, as the tests of the macros want it.

use std::sync::LazyLock;

use leader_core::EnterGuard;
use leader_core::testing::FixedElector;

use crate::future::block_on;

static ELECTOR: LazyLock<FixedElector> = LazyLock::new(|| FixedElector::following(Vec::<String>::new()));

thread_local! {
    /// As long as the thread of the test lives.
    static ENTERED: EnterGuard = ELECTOR.enter();
}

/// Makes this thread the leader of `group`, or a follower.
pub fn leads(group: &str, leads: bool) {
    ENTERED.with(|_| {});
    if leads {
        ELECTOR.lead(group);
    } else {
        ELECTOR.follow(group);
    }
}

/// Has annotated functions on this thread ask an elector whose locks are free, and whose time stands still.
pub fn enter() {
    ENTERED.with(|_| {});
}

/// Runs `call` while somebody else holds the lock `key`, and then without that.
///
/// # Panics
/// If the lock is not free.
pub fn busy_then_free<T>(key: &str, call: impl Fn() -> T) -> (T, T) {
    enter();
    let guard = block_on(ELECTOR.lock(key).acquire()).expect("the lock is free");
    let busy = call();
    block_on(guard.release()).expect("time stands still");
    (busy, call())
}
