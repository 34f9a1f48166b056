//! Leaders that die, and leaders that stand still.

use leader_core::BootInstant;
use leader_tests::process::{Command, Told};

use crate::{LONG, LONG_BEFORE, SHORT, fleet, took};

#[test]
fn another_leads_long_before_the_ttl_when_the_leader_is_killed() {
    let mut fleet = fleet(LONG, &["a", "b", "c"]);
    let mut reign = fleet.leader("default", 0);
    for _ in 0..2 {
        // What it leads was seen to be led.
        fleet.still_leads(&reign, "default", BootInstant::from_nanos(0));
        let killed = BootInstant::now();
        fleet.kill(&reign.label);
        let view = fleet.next_view("default", killed, reign.term);
        assert!(took(killed, &view) < LONG_BEFORE, "{:?}", took(killed, &view));
        let next = fleet.leader("default", reign.term);
        assert_eq!((&next.label, next.term), (&view.instance, view.term));
        assert_ne!(next.label, reign.label);
        reign = next;
    }
    fleet.assert_safe();
}

#[test]
fn the_first_answer_after_a_stop_that_outlived_the_ttl_is_no() {
    let mut fleet = fleet(SHORT, &["a", "b"]);
    let reign = fleet.leader("default", 0);
    assert_eq!(reign.label, "a");
    let stopped = BootInstant::now();
    fleet.stop("a");
    let view = fleet.next_view("default", stopped, reign.term);
    assert_eq!(view.instance, "b");
    let stood_still_at_least = BootInstant::now().saturating_since(stopped);
    fleet.cont("a");
    let woke = fleet.hears("a", "that it has stood still", |t| matches!(t, Told::Woke { .. }));
    let Told::Woke { stood_still, leading } = woke else { unreachable!() };
    assert_eq!(leading, [""; 0], "after {stood_still:?}");
    // It stood still for as long as the other needed to take over.
    assert!(stood_still * 2 > stood_still_at_least, "{stood_still:?}, {stood_still_at_least:?}");
    let status = fleet.status("a");
    assert_eq!(status["groups"][0]["standing"], "follower", "{status}");
    fleet.hears("a", "that its lease is lost", |t| t.is_event("default", "lost"));
    fleet.assert_safe();
}

#[test]
fn work_that_was_stopped_in_its_middle_does_not_go_on_beside_the_next_leader() {
    let mut fleet = fleet(SHORT, &["a", "b"]);
    let reign = fleet.leader("default", 0);
    fleet.ask("a", &Command::Work).unwrap();
    assert_eq!(
        fleet.hears("a", "that work began", |t| matches!(t, Told::WorkBegan { .. })),
        Told::WorkBegan { term: reign.term }
    );
    fleet.until("the work has made some steps", |fleet| (fleet.read_logs().runs().len() > 5).then_some(()));
    let stopped = BootInstant::now();
    fleet.stop("a");
    let view = fleet.next_view("default", stopped, reign.term);
    fleet.cont("a");
    fleet.hears("a", "that the work has ended", |t| *t == Told::WorkEnded);
    let late = fleet.read_logs().runs().iter().filter(|step| step.began_ns >= view.began_ns).count();
    // One may have been stopped after the lease was looked at and before the step read the clock: a lease is no fence.
    assert!(late <= 1, "{late} steps began beside the next leader");
    fleet.assert_safe();
}
