//! Wall clocks that jump.

use leader_core::BootInstant;
use leader_tests::process::{Fleet, Wall};

use crate::{LONG_BEFORE, PROGRAM, SHORT, later, took};

const DAY: i64 = 86_400;

#[test]
fn jumps_of_wall_clocks_in_either_direction_change_nothing() {
    let mut fleet = Fleet::new(PROGRAM);
    let [Some(a), Some(b)] = ["a", "b"].map(|label| Wall::of(&fleet, label)) else { return };
    for (label, wall) in [("a", &a), ("b", &b)] {
        fleet.start(&wall.plan(fleet.plan(label, SHORT)));
        wall.assert_reads(&mut fleet, 0);
    }
    let reign = fleet.leader("default", 0);
    assert_eq!(reign.label, "a");
    // The leader's forward and the follower's back, then the other way round, for more than a ttl each.
    for offset in [DAY, -DAY] {
        a.jump_to(offset);
        b.jump_to(-offset);
        a.assert_reads(&mut fleet, offset);
        b.assert_reads(&mut fleet, -offset);
        fleet.still_leads(&reign, "default", later(SHORT + SHORT / 3));
        assert_eq!(fleet.leader("default", 0), reign);
    }
    assert_eq!(fleet.read_logs().views().len(), 1, "{:?}", fleet.read_logs().views());
    // A term is larger than the one before also if the clock that it is made by is a day behind.
    b.jump_to(-2 * DAY);
    b.assert_reads(&mut fleet, -2 * DAY);
    let killed = BootInstant::now();
    fleet.kill("a");
    let view = fleet.next_view("default", killed, reign.term);
    assert_eq!(view.instance, "b");
    assert!(took(killed, &view) < LONG_BEFORE);
    fleet.assert_safe();
}
