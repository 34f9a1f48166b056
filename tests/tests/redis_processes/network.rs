//! A network that delays, loses and cuts, for one node or for all. Each node has a proxy of its own.

use std::time::Duration;

use leader_core::BootInstant;
use leader_tests::redis::{Proxy, Way, assert_deadline_within_lease};

use crate::{BRIEF, SHORT, Scene, later};

const DELAY: Duration = Duration::from_millis(300);

#[test]
fn a_slow_network_costs_time_and_nothing_else() {
    let Some((mut scene, proxies, reign)) = Scene::with_proxies(SHORT, ["a", "b"]) else { return };
    for proxy in &proxies {
        // Half of what an answer may take.
        proxy.delay(Way::ToServer, DELAY);
        proxy.delay(Way::ToClient, DELAY);
    }
    let view = scene.fleet.still_leads(&reign, "default", later(2 * SHORT));
    assert_eq!(view.term, reign.term);
    assert_deadline_within_lease(&mut scene.fleet, &scene.redis, "a", "default");
    scene.fleet.assert_safe();
}

#[test]
fn a_network_that_is_slower_than_can_be_waited_for_gives_no_second_leader() {
    let Some((mut scene, proxies, reign)) = Scene::with_proxies(BRIEF, ["a", "b"]) else { return };
    // Longer than an answer may take, and than a lease lasts: what arrives, arrives late.
    proxies[0].delay(Way::ToServer, BRIEF);
    proxies[0].delay(Way::ToClient, BRIEF);
    let slow = BootInstant::now();
    let next = scene.taken_over("a network that is too slow", slow, &reign);
    assert_eq!(next.label, "b");
    scene.fleet.still_leads(&next, "default", later(3 * BRIEF));
    proxies[0].heal();
    scene.fleet.assert_safe();
}

#[test]
fn a_connection_that_is_cut_is_replaced() {
    let Some((mut scene, proxies, _)) = Scene::with_proxies(BRIEF, ["a", "b"]) else { return };
    for _ in 0..5 {
        proxies.iter().for_each(Proxy::cut);
        let cut = BootInstant::now();
        scene.leads_on("a cut", cut, BRIEF);
    }
    scene.fleet.assert_safe();
}

/// What happens to the leader's network lasts until another leads; then the node takes part again, by itself.
fn another_leads(what: &str, happens: impl Fn(&Proxy)) {
    let Some((mut scene, proxies, reign)) = Scene::with_proxies(BRIEF, ["a", "b"]) else { return };
    happens(&proxies[0]);
    let happened = BootInstant::now();
    let next = scene.taken_over(what, happened, &reign);
    assert_eq!(next.label, "b");
    proxies[0].heal();
    happens(&proxies[1]);
    let happened = BootInstant::now();
    let last = scene.taken_over(&format!("{what}, the other way round"), happened, &next);
    assert_eq!(last.label, "a");
    proxies[1].heal();
    scene.fleet.assert_safe();
}

#[test]
fn another_leads_when_the_leader_is_refused() {
    another_leads("a network that refuses", |proxy| {
        proxy.refuse();
        proxy.cut();
    });
}

#[test]
fn another_leads_when_everything_of_the_leader_is_lost() {
    another_leads("a network that loses everything", Proxy::black_hole);
}

#[test]
fn another_leads_when_what_the_leader_sends_is_lost() {
    another_leads("a network that loses what is sent", |proxy| proxy.swallow(Way::ToServer));
}

#[test]
fn another_leads_when_what_the_leader_is_answered_is_lost() {
    another_leads("a network that loses the answers", |proxy| proxy.swallow(Way::ToClient));
}

#[test]
fn another_leads_when_what_the_leader_sends_is_late() {
    another_leads("a network that delivers late", |proxy| proxy.stall(Way::ToServer));
}

#[test]
fn another_leads_when_what_the_leader_is_answered_is_late() {
    another_leads("a network that answers late", |proxy| proxy.stall(Way::ToClient));
}

/// Whichever message it is: of a new connection for commands or for announcements, of an acquisition, of a renewal.
#[test]
fn no_single_message_that_is_lost_costs_more_than_a_term() {
    let Some((mut scene, proxies, _)) = Scene::with_proxies(BRIEF, ["a", "b"]) else { return };
    let mut lost = [0; 2];
    for n in 1..=6 {
        for way in [Way::ToServer, Way::ToClient] {
            lost[way as usize] += 1;
            for proxy in &proxies {
                proxy.swallow_nth(way, n);
                proxy.cut();
            }
            for proxy in &proxies {
                proxy.until_lost(way, lost[way as usize]);
            }
            scene.leads_on(&format!("message {n} {way:?} is lost"), BootInstant::now(), BRIEF);
        }
    }
    scene.until_well(&["a", "b"]);
    scene.fleet.assert_safe();
}
