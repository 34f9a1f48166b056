//! Outages one after the other, of every kind, and nothing is restarted but the server.

use leader_core::BootInstant;
use leader_tests::redis::{Proxy, Way};
use std::time::Duration;

use crate::Scene;

const TTL: Duration = Duration::from_secs(1);
const OUTAGE: Duration = Duration::from_secs(3);
const LABELS: [&str; 3] = ["a", "b", "c"];
/// Each kind of an outage comes twice.
const ROUNDS: usize = 10;

/// Ten outages of three ttls each.
#[test]
fn after_ten_outages_in_a_row_somebody_leads_and_nothing_has_piled_up() {
    let Some(mut scene) = Scene::empty(&[]) else { return };
    let proxy = Proxy::before(&scene.redis);
    for label in LABELS {
        let mut plan = scene.plan(label, TTL);
        plan.options.store = proxy.url();
        scene.fleet.start(&plan);
    }
    scene.first();
    // Each has both of its connections now, and nothing has been given up yet.
    let at_first = LABELS.map(|label| scene.fleet.usage(label).unwrap());
    let mut halfway = at_first;
    for round in 0..ROUNDS {
        let what = begin(&mut scene, &proxy, round);
        let began = BootInstant::now();
        scene.wait_until(began.saturating_add(OUTAGE));
        let ended = end(&mut scene, &proxy, round);
        scene.assert_nobody_led(began.saturating_add(TTL), ended.0);
        scene.led_again(&format!("outage {round}, {what}"), ended.1);
        scene.until_well(&LABELS);
        if round == ROUNDS / 2 - 1 {
            halfway = LABELS.map(|label| scene.fleet.usage(label).unwrap());
        }
    }
    scene.fleet.assert_safe();
    scene.fleet.assert_nothing_piled_up(LABELS, at_first, halfway);
}

fn begin(scene: &mut Scene, proxy: &Proxy, round: usize) -> &'static str {
    match round % (ROUNDS / 2) {
        0 => {
            scene.redis.stop();
            "the server stands still"
        }
        1 => {
            scene.redis.command::<()>(&["SAVE"]);
            scene.redis.kill();
            "the server is down"
        }
        2 => {
            proxy.stall(Way::ToServer);
            proxy.stall(Way::ToClient);
            "the network delivers late"
        }
        3 => {
            proxy.black_hole();
            "the network loses everything"
        }
        _ => {
            proxy.refuse();
            proxy.cut();
            "the network refuses connections"
        }
    }
}

/// The outage was over after the first instant, and before the second.
fn end(scene: &mut Scene, proxy: &Proxy, round: usize) -> (BootInstant, BootInstant) {
    let before = BootInstant::now();
    match round % (ROUNDS / 2) {
        0 => scene.redis.cont(),
        1 => scene.redis.start_again(),
        _ => proxy.heal(),
    }
    (before, BootInstant::now())
}
