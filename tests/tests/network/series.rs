//! Outages one after the other, by packets that are lost: nobody is told, and connections lead nowhere.

use std::time::Duration;

use leader_core::BootInstant;
use leader_tests::process::eventually;

use crate::scene::{SERVER, Scene};
use crate::{led_again, until_well, wait};

const TTL: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(300);
const OUTAGE: Duration = Duration::from_secs(3);
const LABELS: [&str; 3] = ["a", "b", "c"];

const ROUNDS: usize = 10;

/// Ten outages of three ttls each, where packets are lost.
///
/// `cargo test -p leader-tests --all-features --test network -- --ignored --nocapture ten_outages`
#[test]
#[ignore = "takes a minute"]
fn after_ten_outages_of_the_network_somebody_leads_and_nothing_has_piled_up() {
    let Some((mut scene, _)) = Scene::new(TTL, &LABELS, |options| options.retry = Some(RETRY)) else { return };
    // Each has both of its connections now, and nothing has been given up yet.
    let connections = 2 * LABELS.len();
    eventually("each has its connections", || (scene.redis.connections() == connections).then_some(()));
    let at_first = LABELS.map(|label| scene.fleet.usage(label).unwrap());
    let mut halfway = at_first;
    for round in 1..=ROUNDS {
        scene.network.isolate(&[SERVER]);
        let began = BootInstant::now();
        wait(&mut scene.fleet, OUTAGE);
        let ended = BootInstant::now();
        scene.network.heal();
        let view = led_again(&mut scene.fleet, &format!("outage {round}"), TTL + 2 * RETRY);
        until_well(&mut scene.fleet, &LABELS);
        let (from, to) = (began.saturating_add(TTL).as_nanos(), ended.as_nanos());
        let led = scene.fleet.read_logs().views().iter().any(|view| view.began_ns < to && view.ended_ns > from);
        assert!(from >= to || !led, "somebody led without a server before {view:?}");
        if round == ROUNDS / 2 {
            halfway = LABELS.map(|label| scene.fleet.usage(label).unwrap());
        }
    }
    scene.fleet.assert_safe();
    scene.fleet.assert_nothing_piled_up(LABELS, at_first, halfway);
    let redis = &scene.redis;
    eventually("the server has no other connections", || (redis.connections() == connections).then_some(()));
}
