//! Leaders that go on purpose.

use leader_core::BootInstant;
use leader_tests::process::Command;
use serde_json::json;

use crate::{LONG, LONG_BEFORE, fleet, took};

/// The leader does what `command` says, and another leads long before the ttl.
fn hands_over(command: &Command) -> leader_tests::process::Fleet {
    let mut fleet = fleet(LONG, &["a", "b"]);
    let reign = fleet.leader("default", 0);
    assert_eq!(reign.label, "a");
    let asked = BootInstant::now();
    fleet.ask("a", command).unwrap();
    let view = fleet.next_view("default", asked, reign.term);
    assert_eq!(view.instance, "b");
    assert!(took(asked, &view) < LONG_BEFORE, "{:?}", took(asked, &view));
    fleet.assert_safe();
    fleet
}

#[test]
fn a_step_down_hands_over_long_before_the_ttl() {
    let mut fleet = hands_over(&Command::StepDown { group: "default".to_owned() });
    let status = fleet.status("a");
    assert_eq!(status["groups"][0]["standing"], "abstaining", "{status}");
    // Only a leader's step-down releases anything.
    assert_eq!(fleet.ask("a", &Command::StepDown { group: "default".to_owned() }), Ok(json!(false)));
    let leader = fleet.ask("a", &Command::LeaderId { group: "default".to_owned() }).unwrap();
    assert!(leader.as_str().unwrap().starts_with("b-"), "{leader}");
}

#[test]
fn a_drain_hands_over_long_before_the_ttl_and_a_resumed_instance_leads_again() {
    let mut fleet = hands_over(&Command::Drain);
    let reign = fleet.leader("default", 0);
    let second = fleet.leader("default", reign.term);
    fleet.ask("a", &Command::Resume).unwrap();
    let drained = BootInstant::now();
    fleet.ask("b", &Command::Drain).unwrap();
    let view = fleet.next_view("default", drained, second.term);
    assert_eq!(view.instance, "a");
    assert!(took(drained, &view) < LONG_BEFORE, "{:?}", took(drained, &view));
    fleet.assert_safe();
}

#[test]
fn a_shutdown_hands_over_long_before_the_ttl() {
    let mut fleet = hands_over(&Command::Shutdown);
    fleet.hears("a", "that its elector has ended", |t| t.is_event("default", "stopped"));
    let first = fleet.leader("default", 0);
    let second = fleet.leader("default", first.term);
    let ended = BootInstant::now();
    fleet.ask("b", &Command::Shutdown).unwrap();
    // Nobody is left: the store knows no leader, and who comes leads at once.
    fleet.start(&fleet.plan("c", LONG));
    let view = fleet.next_view("default", ended, second.term);
    assert_eq!(view.instance, "c");
    assert!(took(ended, &view) < LONG_BEFORE, "{:?}", took(ended, &view));
    fleet.assert_safe();
}
