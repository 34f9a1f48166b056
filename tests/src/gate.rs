//! Who leads, as the tests of the macros want it.

/// Makes this process the leader of `group`, or a follower.
pub fn leads(group: &str, leads: bool) {
    leader_core::__private::set_leader(group, leads);
}
