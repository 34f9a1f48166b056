//! Who leads, as the tests of the macros want it.

use std::sync::LazyLock;

use leader_core::EnterGuard;
use leader_core::testing::FixedElector;

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
