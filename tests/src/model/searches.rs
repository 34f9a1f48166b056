//! What is searched, by name.

use leader_core::{Reclaim, RenewalFailure};

use super::{Bounds, Faults, Replication};

/// The searches that must find nothing, by name. The small ones are done in a minute in an optimized test; each large one
/// is worth minutes and gigabytes, and may not come to its end.
#[must_use]
pub fn searches(large: bool) -> Vec<(&'static str, Bounds)> {
    let none = Faults::default();
    let more = u8::from(large);
    let within = |ticks, faults| {
        let (ticks, packets) = if large { (ticks + 2, 3) } else { (ticks, 2) };
        Bounds { ticks, packets, faults, ..Bounds::default() }
    };
    let hold = RenewalFailure::HoldUntilDeadline;
    let waited = Replication::WaitedFor;
    let three = |bounds| Bounds { instances: 3, ..bounds };
    let twins = Bounds { twins: true, reclaim: Reclaim::AfterDeadline, ..within(4, Faults { failures: more, ..none }) };
    vec![
        ("delay, loss, reordering", within(3, Faults { failures: 1 + more, ..none })),
        ("a request twice", within(3, Faults { failures: more, duplicates: 1, ..none })),
        ("a drain", within(2, Faults { failures: more, stand_asides: 1, ..none })),
        ("crash, same id", within(3, Faults { failures: more, crashes: 1, ..none })),
        ("crash, new id", Bounds { same_id: false, ..within(3, Faults { failures: more, crashes: 1, ..none }) }),
        ("FLUSHALL", within(4, Faults { failures: more, flushes: 1, ..none })),
        (
            "hold until the deadline, FLUSHALL",
            Bounds { renewal_failure: hold, ..within(3, Faults { failures: 1, flushes: 1, ..none }) },
        ),
        ("the store restarts empty", within(3, Faults { failures: more, empties: 1, ..none })),
        ("the store rolls back", within(3, Faults { failures: more, rollbacks: 1, ..none })),
        ("the lease key is deleted", within(4, Faults { failures: more, deletions: 1, ..none })),
        ("two live processes with one id", twins),
        (
            "the same, FLUSHALL",
            Bounds { ticks: twins.ticks - 1, faults: Faults { flushes: 1, ..twins.faults }, ..twins },
        ),
        (
            "a replica is promoted that lacks the newest write",
            Bounds {
                replication: Replication::NotWaitedFor,
                ..within(3, Faults { failures: more, promotions: 1, ..none })
            },
        ),
        (
            "the primary is cut off, and its replica is waited for",
            Bounds { replication: waited, ..within(3, Faults { failures: more, cuts: 1, ..none }) },
        ),
        ("three instances", three(within(3, none))),
        ("three instances: delay, loss, reordering", three(within(2, Faults { failures: 1 + more, ..none }))),
        ("three instances, crash", three(within(2, Faults { failures: more, crashes: 1, ..none }))),
        ("three instances, FLUSHALL", three(within(3, Faults { failures: more, flushes: 1, ..none }))),
    ]
}
