//! Leaders that die, leaders that stand still, leaders that go on purpose.

use leader_core::BootInstant;
use leader_tests::process::{Command, Told};
use serde_json::json;

use crate::{BRIEF, LONG, LONG_BEFORE, SHORT, Scene, took};

#[test]
fn another_leads_when_the_lease_of_a_leader_that_was_killed_has_ended() {
    let Some((mut scene, mut reign)) = Scene::new(BRIEF, &["a", "b", "c"]) else { return };
    for _ in 0..2 {
        // What it leads was seen to be led.
        scene.fleet.still_leads(&reign, "default", BootInstant::from_nanos(0));
        let killed = BootInstant::now();
        scene.fleet.kill(&reign.label);
        let next = scene.taken_over("kill -9 of the leader", killed, &reign);
        assert_ne!(next.label, reign.label);
        reign = next;
    }
    scene.fleet.assert_safe();
}

#[test]
fn the_first_answer_after_a_stop_that_outlived_the_ttl_is_no() {
    let Some((mut scene, reign)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    let stopped = BootInstant::now();
    scene.fleet.stop(&reign.label);
    let next = scene.taken_over("SIGSTOP of the leader", stopped, &reign);
    assert_ne!(next.label, reign.label);
    scene.fleet.cont(&reign.label);
    let woke = scene.fleet.hears(&reign.label, "that it has stood still", |t| matches!(t, Told::Woke { .. }));
    let Told::Woke { stood_still, leading } = woke else { unreachable!() };
    assert_eq!(leading, [""; 0], "after {stood_still:?}");
    scene.fleet.hears(&reign.label, "that its lease is lost", |t| t.is_event("default", "lost"));
    scene.fleet.assert_safe();
}

#[test]
fn work_that_was_stopped_in_its_middle_does_not_go_on_beside_the_next_leader() {
    let Some((mut scene, reign)) = Scene::new(SHORT, &["a", "b"]) else { return };
    let fleet = &mut scene.fleet;
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
    fleet.assert_safe();
}

/// The leader does what `command` says, and another leads long before the ttl.
fn hands_over(command: &Command) -> Option<Scene> {
    let (mut scene, reign) = Scene::new(LONG, &["a", "b"])?;
    let asked = BootInstant::now();
    scene.fleet.ask("a", command).unwrap();
    let view = scene.fleet.next_view("default", asked, reign.term);
    let took = took(asked, &view);
    scene.taken_over(&format!("{command:?}"), asked, &reign);
    assert_eq!(view.instance, "b");
    assert!(took < LONG_BEFORE, "{took:?}");
    scene.fleet.assert_safe();
    Some(scene)
}

#[test]
fn a_step_down_hands_over_long_before_the_ttl() {
    let step_down = Command::StepDown { group: "default".to_owned() };
    let Some(mut scene) = hands_over(&step_down) else { return };
    assert_eq!(scene.fleet.status("a")["groups"][0]["standing"], "abstaining");
    // Only a leader's step-down releases anything.
    assert_eq!(scene.fleet.ask("a", &step_down), Ok(json!(false)));
    let leader = scene.fleet.ask("a", &Command::LeaderId { group: "default".to_owned() }).unwrap();
    assert!(leader.as_str().unwrap().starts_with("b-"), "{leader}");
}

#[test]
fn a_drain_hands_over_long_before_the_ttl_and_a_resumed_instance_leads_again() {
    let Some(mut scene) = hands_over(&Command::Drain) else { return };
    let first = scene.fleet.leader("default", 0);
    let second = scene.fleet.leader("default", first.term);
    scene.fleet.ask("a", &Command::Resume).unwrap();
    let drained = BootInstant::now();
    scene.fleet.ask("b", &Command::Drain).unwrap();
    let view = scene.fleet.next_view("default", drained, second.term);
    assert_eq!(view.instance, "a");
    assert!(took(drained, &view) < LONG_BEFORE, "{:?}", took(drained, &view));
    scene.fleet.assert_safe();
}

#[test]
fn a_shutdown_hands_over_long_before_the_ttl_and_leaves_no_connection() {
    let Some(mut scene) = hands_over(&Command::Shutdown) else { return };
    scene.fleet.ask("b", &Command::Shutdown).unwrap();
    let Scene { fleet, redis } = &mut scene;
    fleet.until("all connections have ended", |_| (redis.connections() == 0).then_some(()));
    assert!(!redis.delete("leader:default"), "the lease was given back");
}
