//! A server that does not answer for a while: nobody leads when the lease has ended, and somebody does afterwards.

use std::time::Duration;

use leader_core::BootInstant;

use crate::{BRIEF, SHORT, Scene, later};

/// For so long: longer than a lease, and than what is waited for an answer.
const OUTAGE: Duration = Duration::from_millis(3000);

/// After an outage that began in this span of time and has just ended.
fn goes_on(scene: &mut Scene, what: &str, began: [BootInstant; 2]) {
    scene.led_again(what, BootInstant::now());
    scene.fleet.assert_safe();
    // The server's own clock counts in whole milliseconds.
    let lasted = OUTAGE - Duration::from_millis(10);
    scene.assert_nobody_led(began[1].saturating_add(BRIEF), began[0].saturating_add(lasted));
}

#[test]
fn nobody_leads_by_a_server_that_stands_still() {
    let Some((mut scene, _)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    scene.redis.stop();
    let stopped = BootInstant::now();
    scene.wait_until(stopped.saturating_add(OUTAGE));
    scene.redis.cont();
    goes_on(&mut scene, "SIGSTOP of the server", [stopped; 2]);
}

#[test]
fn nobody_leads_by_a_server_that_pauses_its_clients() {
    let Some((mut scene, _)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    let before = BootInstant::now();
    scene.redis.pause_clients(OUTAGE);
    let paused = BootInstant::now();
    scene.wait_until(paused.saturating_add(OUTAGE));
    goes_on(&mut scene, "CLIENT PAUSE", [before, paused]);
}

#[test]
fn nobody_leads_by_a_server_that_is_busy_with_a_script() {
    let Some((mut scene, _)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    let silent = OUTAGE / 3;
    let before = BootInstant::now();
    let busy = scene.redis.busy_script(silent, OUTAGE - silent);
    let redis = &scene.redis;
    scene.fleet.until("the server says that it is busy", |_| redis.try_command::<()>(&["PING"]).err());
    let began_before = BootInstant::now().saturating_sub(silent);
    busy.wait();
    goes_on(&mut scene, "a busy script", [before, began_before]);
}

#[test]
fn nobody_leads_by_a_server_that_sleeps() {
    let Some((mut scene, _)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    let before = BootInstant::now();
    scene.redis.sleep(OUTAGE).wait();
    let began_before = BootInstant::now().saturating_sub(OUTAGE);
    goes_on(&mut scene, "DEBUG SLEEP", [before, began_before]);
}

#[test]
fn nobody_leads_by_a_server_that_is_down() {
    let Some((mut scene, _)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    scene.redis.command::<()>(&["SAVE"]);
    scene.redis.kill();
    let killed = BootInstant::now();
    scene.wait_until(killed.saturating_add(OUTAGE));
    scene.redis.start_again();
    goes_on(&mut scene, "a server that was down", [killed; 2]);
}

#[test]
fn a_server_that_forgets_its_scripts_costs_nothing() {
    let Some((mut scene, reign)) = Scene::new(SHORT, &["a", "b"]) else { return };
    for _ in 0..3 {
        scene.redis.flush_scripts();
        scene.fleet.still_leads(&reign, "default", later(SHORT / 2));
    }
    assert_eq!(scene.fleet.read_logs().views().len(), 1, "{:?}", scene.fleet.read_logs().views());
    scene.fleet.assert_safe();
}

#[test]
fn a_server_that_ends_connections_costs_nothing() {
    let Some((mut scene, reign)) = Scene::new(SHORT, &["a", "b"]) else { return };
    for _ in 0..3 {
        // Commands and announcements of two nodes, unless one is just connecting again.
        assert!(scene.redis.kill_clients() > 0);
        let view = scene.leads_on("CLIENT KILL", later(SHORT / 2), SHORT);
        assert_eq!(view.instance, reign.label);
    }
    let views = scene.fleet.read_logs().views().len();
    assert!(views <= 2, "more than one renewal was under way: {:?}", scene.fleet.read_logs().views());
    scene.fleet.assert_safe();
}
