//! The primary is cut off together with its leader, by whom it goes on to be renewed, while the others have another primary.

use std::time::Duration;

use leader_core::BootInstant;

use crate::watched::{LABELS, SENTINELS, Scene};
use crate::{leads_at, until_well, wait};

const TTL: Duration = Duration::from_secs(3);
/// For so long both sides have been there when the network is whole again.
const LONGER: Duration = Duration::from_secs(3);

/// The first server, the first sentinel and the leader on one side, all others on the other. For how long two led.
#[allow(clippy::print_stderr)]
fn isolated(what: &str) -> Option<(Scene, Duration)> {
    let (mut scene, reign) = Scene::new(TTL, &[], |_| {})?;
    scene.network.isolate(&[0, SENTINELS]);
    let fault = BootInstant::now();
    let new = scene.watched.until_promoted(0);
    // The majority finds the new primary, and one of it leads there.
    let view = scene.led_again(what, fault, &new, &reign);
    assert_ne!(view.instance, "a");
    scene.until_listening(2, new.server);
    wait(&mut scene.fleet, LONGER);
    scene.network.heal();
    let healed = BootInstant::now();
    scene.watched.until_all_know();
    scene.until_listening(LABELS.len(), new.server);
    leads_at(&mut scene.fleet, what, BootInstant::now());
    until_well(&mut scene.fleet, &LABELS);
    for label in LABELS {
        scene.fleet.ask(label, &leader_tests::process::Command::Flush).unwrap();
    }
    let overlaps = scene.fleet.read_logs().overlaps();
    let two_led = Duration::from_nanos(overlaps.iter().map(leader_examples::history::Overlap::shared_ns).sum());
    eprintln!("{what}: two led for {two_led:.3?} of {:.3?}", healed.saturating_since(fault));
    Some((scene, two_led))
}

/// Or the tests of it would show nothing. Who runs like that is told.
#[test]
fn a_primary_that_is_cut_off_with_its_leader_gives_two_leaders_and_the_doctor_has_said_so() {
    let Some((mut scene, two_led)) = isolated("isolated primary, without WAIT") else { return };
    assert!(!two_led.is_zero());
    let problems = scene.fleet.problems("b");
    assert!(problems.contains("min-replicas-to-write"), "{problems}");
}
