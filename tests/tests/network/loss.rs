//! A network that loses packets by chance: TCP sends them again, and everything is late.

use std::time::Duration;

use leader_core::BootInstant;
use leader_tests::process::Reign;

use crate::scene::{SERVER, Scene};
use crate::{until_well, wait};

const TTL: Duration = Duration::from_secs(10);
/// Of a hundred packets, in each direction.
const LOST: u32 = 30;

/// With so much lost for so long; all views of leaders from then on.
#[allow(clippy::print_stderr)]
fn lossy(time: Duration, hold_until_deadline: bool) -> Option<(Scene, Reign)> {
    let (mut scene, reign) = Scene::new(TTL, &["a", "b"], |options| {
        // As it is for everybody who does not set it.
        options.operation_timeout = None;
        options.hold_until_deadline = hold_until_deadline;
    })?;
    scene.network.lose_around(&[SERVER], LOST);
    let began = BootInstant::now();
    wait(&mut scene.fleet, time);
    let ended = BootInstant::now();
    let lost = scene.network.lost();
    assert!(lost > 0);
    let history = scene.fleet.read_logs();
    let leaderless = Duration::from_nanos(history.leaderless_ns("default", began.as_nanos(), ended.as_nanos()));
    let views = history.views().len();
    eprintln!(
        "{LOST} % loss for {time:?}: {lost} packets lost, {} re-claims, leaderless for {leaderless:.3?}",
        views - 1
    );
    scene.network.heal();
    until_well(&mut scene.fleet, &["a", "b"]);
    scene.fleet.assert_safe();
    Some((scene, reign))
}

fn who_holds_until_the_deadline_keeps_its_lease(time: Duration) {
    let Some((mut scene, reign)) = lossy(time, true) else { return };
    let views = scene.fleet.read_logs().views();
    assert!(views.iter().all(|view| view.term == reign.term), "{views:?}");
}

/// A renewal that fails is a demotion, and the same instance takes its seat again. (Were it away for a whole ttl, another
/// might; that was not seen.)
fn nobody_else_leads(time: Duration) {
    let Some((mut scene, reign)) = lossy(time, false) else { return };
    let views = scene.fleet.read_logs().views();
    assert!(views.iter().all(|view| view.instance == reign.label), "{views:?}");
}

#[test]
fn with_a_third_of_the_packets_lost_who_holds_until_the_deadline_keeps_its_lease() {
    who_holds_until_the_deadline_keeps_its_lease(Duration::from_secs(12));
}

/// `cargo test -p leader-tests --all-features --test network -- --ignored --nocapture for_a_minute`
#[test]
#[ignore = "takes a minute"]
fn with_a_third_of_the_packets_lost_who_holds_until_the_deadline_keeps_its_lease_for_a_minute() {
    who_holds_until_the_deadline_keeps_its_lease(Duration::from_secs(60));
}

/// As above.
#[test]
#[ignore = "takes a minute"]
fn with_a_third_of_the_packets_lost_nobody_but_the_leader_leads_for_a_minute() {
    nobody_else_leads(Duration::from_secs(60));
}
