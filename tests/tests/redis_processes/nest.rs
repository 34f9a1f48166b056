//! Peers of the other kind, with which a fleet shares its election: one key, and its value.

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::History;
use leader_tests::process::{Command, Fleet};
use leader_tests::redis::{Client, NestPeer};

use crate::{BRIEF, SHORT, Scene};

/// As often as such a peer renews, or tries.
const HEARTBEAT: Duration = Duration::from_millis(400);

/// A peer on this server, and nodes that follow it.
fn led_by_a_peer() -> Option<(Scene, NestPeer)> {
    let mut scene = Scene::empty(&[])?;
    let client = Client::open(scene.redis.address(), None).unwrap();
    let mut peer = NestPeer::new(client, "nest-1", "default", SHORT);
    assert!(peer.acquire().unwrap());
    for label in ["a", "b"] {
        scene.fleet.spawn(&scene.plan(label, BRIEF));
    }
    Some((scene, peer))
}

/// What both have believed is laid over each other.
fn assert_nobody_led_at_once(fleet: &mut Fleet, peer: &NestPeer) {
    fleet.assert_safe();
    let mut history: History = fleet.read_logs().clone();
    history.extend(peer.views().iter().cloned());
    let overlaps: Vec<_> = history.overlaps().iter().map(ToString::to_string).collect();
    assert!(overlaps.is_empty() && !peer.views().is_empty(), "{overlaps:#?}");
}

/// The peer renews for so long.
fn renews(scene: &mut Scene, peer: &mut NestPeer, time: Duration) {
    let until = BootInstant::now().saturating_add(time);
    while BootInstant::now() < until {
        assert!(peer.heartbeat().unwrap(), "a busy machine has cost it the lease, or somebody has taken it");
        scene.wait_until(BootInstant::now().saturating_add(HEARTBEAT));
    }
}

#[test]
fn nobody_leads_beside_a_peer_and_somebody_does_when_it_has_gone() {
    let Some((mut scene, mut peer)) = led_by_a_peer() else { return };
    renews(&mut scene, &mut peer, 2 * SHORT);
    for label in ["a", "b"] {
        let leader = scene.fleet.ask(label, &Command::LeaderId { group: "default".to_owned() });
        assert_eq!(leader, Ok("nest-1".into()));
    }
    assert_eq!(scene.fleet.read_logs().views(), []);
    assert!(peer.release().unwrap());
    scene.led_again("the release of a peer", BootInstant::now());
    // It takes part again, and has to wait.
    for _ in 0..5 {
        assert!(!peer.acquire().unwrap());
        scene.wait_until(BootInstant::now().saturating_add(HEARTBEAT));
    }
    assert_nobody_led_at_once(&mut scene.fleet, &peer);
}

#[test]
fn somebody_leads_when_a_peer_has_died() {
    let Some((mut scene, mut peer)) = led_by_a_peer() else { return };
    renews(&mut scene, &mut peer, BRIEF);
    let died = BootInstant::now();
    scene.led_again("the death of a peer", died);
    assert!(!peer.heartbeat().unwrap(), "it comes back too late");
    assert_nobody_led_at_once(&mut scene.fleet, &peer);
}

#[test]
fn a_peer_leads_when_all_of_ours_have_gone_and_ours_when_it_goes() {
    let Some((mut scene, reign)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    let client = Client::open(scene.redis.address(), None).unwrap();
    let mut peer = NestPeer::new(client, "nest-1", "default", SHORT);
    assert!(!peer.acquire().unwrap(), "{reign:?} leads");
    for label in ["b", "a"] {
        scene.fleet.ask(label, &Command::Drain).unwrap();
    }
    assert!(peer.acquire().unwrap(), "the lease was given back");
    for label in ["a", "b"] {
        scene.fleet.ask(label, &Command::Resume).unwrap();
    }
    renews(&mut scene, &mut peer, BRIEF);
    assert!(peer.release().unwrap());
    let released = BootInstant::now();
    let next = scene.taken_over("the release of a peer", released, &reign);
    // Killed, not drained: the peer has to wait for the end of the lease, and a term is not lost in between.
    scene.fleet.kill(&next.label);
    scene.fleet.until("the peer or the other node leads", |fleet| {
        let led = fleet.read_logs().newest_view("default").is_some_and(|view| view.term > next.term);
        (led || peer.acquire().unwrap()).then_some(())
    });
    assert_nobody_led_at_once(&mut scene.fleet, &peer);
}
