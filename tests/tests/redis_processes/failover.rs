//! One name for several servers, of which another becomes the primary; and a server that is far away.

use std::time::Duration;

use leader_core::BootInstant;
use leader_tests::redis::{Proxy, RedisServer, Way};

use crate::{BRIEF, Scene};

/// Connections to the old primary stay: nobody ends them, and it answers.
#[test]
fn somebody_leads_on_the_server_that_the_name_means_by_now() {
    let Some(mut scene) = Scene::empty(&[]) else { return };
    let Some(promoted) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&scene.redis);
    for label in ["a", "b"] {
        let mut plan = scene.plan(label, BRIEF);
        plan.options.store = proxy.url();
        scene.fleet.start(&plan);
    }
    let first = scene.first();
    proxy.redirect(&promoted);
    scene.redis.become_replica();
    let reign = scene.fleet.leader("default", first.term);
    scene.fleet.still_leads(&reign, "default", BootInstant::now());
    assert!(promoted.command::<bool>(&["EXISTS", "leader:default"]));
    // Who follows listens there too: a release is heard long before the lease would have ended.
    let follower = if reign.label == "a" { "b" } else { "a" };
    scene.fleet.until("both listen to the promoted server", |_| {
        let listening: (String, usize) = promoted.command(&["PUBSUB", "NUMSUB", "leader:default"]);
        (listening.1 == 2).then_some(())
    });
    scene.until_well(&["a", "b"]);
    assert_ne!(follower, reign.label);
    scene.fleet.assert_safe();
}

/// Each round trip takes most of an operation time-out, and a login takes several.
#[test]
fn a_server_that_is_far_away_elects_too() {
    let Some(mut scene) = Scene::empty(&[]) else { return };
    let proxy = Proxy::before(&scene.redis);
    for way in [Way::ToServer, Way::ToClient] {
        proxy.delay(way, Duration::from_millis(300));
    }
    let mut plan = scene.plan("a", Duration::from_secs(6));
    plan.options.store = proxy.url();
    plan.options.operation_timeout = Some(Duration::from_secs(1));
    scene.fleet.start(&plan);
    let reign = scene.fleet.leader("default", 0);
    scene.fleet.still_leads(&reign, "default", BootInstant::now().saturating_add(Duration::from_secs(6)));
    proxy.cut();
    let cut = BootInstant::now();
    scene.led_again("a cut far away", cut);
    scene.fleet.assert_safe();
}
