//! Another server becomes the primary.

use leader_core::BootInstant;

use crate::{LABELS, Scene, TTL};

#[test]
fn somebody_leads_after_the_primary_was_killed_and_it_comes_back_as_a_replica() {
    let Some((mut scene, reign)) = Scene::new() else { return };
    scene.watched.servers[0].kill();
    let fault = BootInstant::now();
    let new = scene.watched.until_promoted(0);
    scene.led_again("kill -9 of the primary", fault, &new, &reign);
    let reign = scene.leads_by(new.server);
    scene.watched.servers[0].start_again();
    scene.watched.until_all_know();
    scene.fleet.still_leads(&reign, "default", BootInstant::now());
    scene.fleet.assert_safe();
}

/// It does not refuse anything: it just does not answer, while renewals go on to be sent.
#[test]
fn somebody_leads_after_the_primary_was_stopped_and_when_it_goes_on_nobody_else_does() {
    let Some((mut scene, reign)) = Scene::new() else { return };
    scene.watched.servers[0].stop();
    let fault = BootInstant::now();
    let new = scene.watched.until_promoted(0);
    scene.led_again("SIGSTOP of the primary", fault, &new, &reign);
    let reign = scene.leads_by(new.server);
    // For a moment it takes itself for the primary, and has commands to read that nobody waits for.
    scene.watched.servers[0].cont();
    scene.watched.until_all_know();
    scene.fleet.still_leads(&reign, "default", BootInstant::now().saturating_add(TTL));
    scene.fleet.assert_safe();
}

#[test]
fn leader_and_followers_find_the_server_that_an_operator_made_the_primary() {
    let Some((mut scene, reign)) = Scene::new() else { return };
    let mut old = 0;
    let mut term = reign.term;
    for _ in 0..2 {
        scene.watched.fail_over();
        let fault = BootInstant::now();
        let new = scene.watched.until_promoted(old);
        let view = scene.leads_on("SENTINEL FAILOVER", fault, &new);
        assert!(view.term >= term);
        scene.until_all_listen_to(new.server);
        scene.watched.until_followed(new.server);
        scene.watched.until_all_know();
        (old, term) = (new.server, view.term);
    }
    scene.fleet.assert_safe();
}

/// Whoever reaches the old primary sees no error there, and nobody else's lease either.
#[test]
fn a_primary_that_only_sentinels_cannot_reach_is_left_by_all() {
    let Some((mut scene, _)) = Scene::new() else { return };
    scene.watched.hide_from_sentinels(0);
    let fault = BootInstant::now();
    let new = scene.watched.until_promoted(0);
    scene.until_all_listen_to(new.server);
    let role: String = scene.watched.servers[0].command(&["INFO", "replication"]);
    assert!(role.contains("role:master"), "nobody has told it: {role}");
    scene.leads_on("a primary that sentinels do not reach", fault, &new);
    assert!(scene.watched.servers[new.server].command::<bool>(&["EXISTS", "leader:default"]));
    for label in LABELS {
        assert!(!scene.fleet.problems(label).contains("READONLY"));
    }
    scene.fleet.assert_safe();
}
