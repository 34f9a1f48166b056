//! The network of one node fails, and of its leader at first.

use leader_core::BootInstant;
use leader_tests::net::Network;

use crate::scene::{A, B, SERVER, Scene};
use crate::{BRIEF, taken_over, until_well};

/// What happens to the leader's network lasts until the other node leads. Then it takes part again, by itself: it is the one
/// that takes over when the same happens to the other.
fn another_leads(what: &str, begin: impl Fn(&Network, usize), end: impl Fn(&Network, usize)) {
    let Some((mut scene, mut reign)) = Scene::new(BRIEF, &["a", "b"], |_| {}) else { return };
    for (party, next) in [(A, "b"), (B, "a")] {
        begin(&scene.network, party);
        let began = BootInstant::now();
        reign = taken_over(&mut scene.fleet, what, began, &reign);
        assert_eq!(reign.label, next);
        end(&scene.network, party);
        until_well(&mut scene.fleet, &["a", "b"]);
    }
    scene.fleet.assert_safe();
}

#[test]
fn another_leads_when_the_leaders_link_is_down() {
    another_leads("link down", |network, party| network.unplug(party), |network, party| network.plug(party));
}

#[test]
fn another_leads_when_packets_of_the_leader_are_lost() {
    let heal = |network: &Network, _| {
        assert!(network.lost() > 0);
        network.heal();
    };
    another_leads("packets to the server lost", |network, party| network.lose(party, SERVER, 100), heal);
}

#[test]
fn another_leads_when_packets_to_the_leader_are_lost() {
    let heal = |network: &Network, _| {
        assert!(network.lost() > 0);
        network.heal();
    };
    another_leads("packets of the server lost", |network, party| network.lose(SERVER, party, 100), heal);
}

#[test]
fn another_leads_when_the_leader_is_cut_off() {
    another_leads("leader cut off", |network, party| network.isolate(&[party]), |network, _| network.heal());
}
