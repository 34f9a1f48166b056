//! Leaders that die, leaders that stand still, leaders that go on purpose.

use leader_core::BootInstant;
use leader_tests::process::{Command, Told};

use crate::{BRIEF, LONG, LONG_BEFORE, SHORT, Scene, took};

#[test]
fn another_leads_when_the_lease_of_a_leader_that_was_killed_has_ended() {
    let Some((mut scene, mut reign)) = Scene::new(BRIEF, &["a", "b", "c"]) else { return };
    for _ in 0..2 {
        // What it leads was seen to be led.
        scene.fleet.still_leads(&reign, "default", BootInstant::from_nanos(0));
        let killed = BootInstant::now();
        scene.fleet.kill(&reign.label);
        let view = scene.led_again("kill -9 of the leader", killed);
        let next = scene.fleet.leader("default", reign.term);
        assert_eq!((&next.label, next.term), (&view.instance, view.term));
        assert_ne!(next.label, reign.label);
        reign = next;
    }
    scene.assert_safe();
}

#[test]
fn the_first_answer_after_a_stop_that_outlived_the_ttl_is_no() {
    let Some((mut scene, reign)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    let stopped = BootInstant::now();
    scene.fleet.stop(&reign.label);
    let view = scene.fleet.next_view("default", stopped, reign.term);
    assert_ne!(view.instance, reign.label);
    scene.fleet.cont(&reign.label);
    let woke = scene.fleet.hears(&reign.label, "that it has stood still", |t| matches!(t, Told::Woke { .. }));
    let Told::Woke { stood_still, leading } = woke else { unreachable!() };
    assert_eq!(leading, [""; 0], "after {stood_still:?}");
    scene.fleet.hears(&reign.label, "that its lease is lost", |t| t.is_event("default", "lost"));
    scene.assert_safe();
}

#[test]
fn work_that_was_stopped_in_its_middle_does_not_go_on_beside_the_next_leader() {
    let Some((mut scene, reign)) = Scene::new(SHORT, &["a", "b"]) else { return };
    let Scene { fleet, .. } = &mut scene;
    fleet.ask(&reign.label, &Command::Work).unwrap();
    fleet.until("the work has made some steps", |fleet| (fleet.read_logs().runs().len() > 5).then_some(()));
    let stopped = BootInstant::now();
    fleet.stop(&reign.label);
    let view = fleet.next_view("default", stopped, reign.term);
    fleet.cont(&reign.label);
    fleet.hears(&reign.label, "that the work has ended", |t| *t == Told::WorkEnded);
    let late = fleet.read_logs().runs().iter().filter(|step| step.began_ns >= view.began_ns).count();
    // One may have been stopped after the lease was looked at and before the step read the clock: a lease is no fence.
    assert!(late <= 1, "{late} steps began beside the next leader");
    scene.assert_safe();
}

/// Each of the two leaders goes in turn, and the other leads long before the ttl.
#[test]
fn a_step_down_a_drain_and_a_shutdown_hand_over_long_before_the_ttl() {
    let Some((mut scene, mut reign)) = Scene::new(LONG, &["a", "b"]) else { return };
    let step_down = Command::StepDown { group: "default".to_owned() };
    let drain = [Command::Drain, Command::Resume];
    // Who has stepped down stays out for a ttl: b drains into nobody but c.
    for (step, label, next) in [(&step_down, "a", "b"), (&drain[0], "b", "c"), (&Command::Shutdown, "c", "b")] {
        match next {
            "c" => scene.fleet.start(&scene.plan("c", LONG)),
            // The one that had drained.
            _ if label == "c" => drop(scene.fleet.ask("b", &drain[1]).unwrap()),
            _ => {}
        }
        assert_eq!(reign.label, label);
        let asked = BootInstant::now();
        scene.fleet.ask(label, step).unwrap();
        let view = scene.led_again(&format!("{step:?}"), asked);
        let view = if view.term > reign.term { view } else { scene.fleet.next_view("default", asked, reign.term) };
        assert_eq!(view.instance, next);
        assert!(took(asked, &view) < LONG_BEFORE, "{:?}", took(asked, &view));
        reign = scene.fleet.leader("default", reign.term);
    }
    scene.assert_safe();
}
