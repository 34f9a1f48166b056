//! The primary is cut off together with its leader, by whom it goes on to be renewed, while the others have another primary.

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::Overlap;
use leader_tests::process::{Command, Reign};
use leader_tests::redis::Promoted;

use crate::watched::{LABELS, SENTINELS, Scene};
use crate::{leads_at, until_well, wait};

const TTL: Duration = Duration::from_secs(3);
/// For so long both sides have been there when the network is whole again.
const LONGER: Duration = Duration::from_secs(1);

/// The primary, a sentinel and the leader on one side, both replicas, the other sentinels and nodes on the other side. So many
/// replicas have to confirm. `meanwhile`: what is seen on the other side, before the network is whole again. For how long two
/// led.
#[allow(clippy::print_stderr)]
fn isolated(
    confirm: u8,
    meanwhile: impl Fn(&mut Scene, &str, BootInstant, &Promoted, u64),
) -> Option<(Scene, Duration)> {
    let what = format!("isolated primary, waiting for {confirm} of 2 replicas");
    let (mut scene, reign) = Scene::new(TTL, &[], |options| options.replicas = confirm)?;
    if confirm == 0 {
        scene.fleet.until("the doctor has told each of them", |fleet| {
            LABELS.iter().all(|label| fleet.problems(label).contains("min-replicas-to-write")).then_some(())
        });
    }
    scene.network.isolate(&[0, SENTINELS]);
    let fault = BootInstant::now();
    let new = scene.watched.until_promoted(0);
    // The majority finds the new primary.
    scene.until_listening(2, new.server);
    meanwhile(&mut scene, &what, fault, &new, reign.term);
    wait(&mut scene.fleet, LONGER);
    let healed = BootInstant::now();
    scene.network.heal();
    scene.watched.until_all_know();
    scene.until_listening(LABELS.len(), new.server);
    leads_at(&mut scene.fleet, &what, BootInstant::now());
    until_well(&mut scene.fleet, &LABELS);
    for label in LABELS {
        scene.fleet.ask(label, &Command::Flush).unwrap();
    }
    let history = scene.fleet.read_logs();
    assert_eq!(history.term_faults(), []);
    let two_led = Duration::from_nanos(history.overlaps().iter().map(Overlap::shared_ns).sum());
    let leaderless = history.leaderless_ns("default", fault.as_nanos(), healed.as_nanos());
    eprintln!(
        "{what}: two led for {two_led:.3?} and nobody for {:.3?} of {:.3?}",
        Duration::from_nanos(leaderless),
        healed.saturating_since(fault)
    );
    Some((scene, two_led))
}

/// One of the majority leads by the new primary.
fn majority_leads(scene: &mut Scene, what: &str, fault: BootInstant, new: &Promoted, term: u64) {
    let first = Reign { label: "a".to_owned(), term };
    assert_ne!(scene.led_again(what, fault, new, &first).instance, "a");
}

/// Or the tests below would show nothing. Who runs like that has been told.
#[test]
fn a_primary_that_is_cut_off_with_its_leader_gives_two_leaders_and_the_doctor_has_said_so() {
    let Some((_, two_led)) = isolated(0, majority_leads) else { return };
    assert!(!two_led.is_zero());
}

#[test]
fn a_primary_that_is_cut_off_with_its_leader_gives_no_second_one_if_a_replica_has_to_confirm() {
    let Some((mut scene, _)) = isolated(1, majority_leads) else { return };
    scene.fleet.assert_safe();
}

/// The new primary has one replica only, until the old one has become the other.
#[test]
fn a_primary_that_is_cut_off_with_its_leader_gives_no_second_one_if_all_replicas_have_to_confirm() {
    let nobody_leads = |scene: &mut Scene, _: &str, _: BootInstant, new: &Promoted, _: u64| {
        // What the old leader has believed has ended by then.
        wait(&mut scene.fleet, 2 * TTL);
        let led = scene.fleet.read_logs().newest_view("default").cloned();
        assert!(led.is_none_or(|view| view.ended_ns < new.named.saturating_add(TTL).as_nanos()), "without a replica");
    };
    let Some((mut scene, _)) = isolated(2, nobody_leads) else { return };
    scene.fleet.assert_safe();
}
