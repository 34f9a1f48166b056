//! Commands that arrive when nobody expects them any more: a time-out recalls nothing that is on its way.

use std::time::Duration;

use leader_core::BootInstant;
use leader_core::testing::redis_script::Flaw;
use leader_tests::process::{Command, Options, Reign};
use leader_tests::redis::{Proxy, RedisServer, Way};

use crate::{BRIEF, Scene, later};

/// For whoever holds on to a lease in the server.
const LEASE: &str = "leader:default";

/// A node whose release is on its way, was given up, and which leads again by then, on another connection.
struct Late {
    scene: Scene,
    proxy: Proxy,
    reign: Reign,
}

impl Late {
    fn new(change: impl Fn(&mut Options)) -> Option<Self> {
        let mut scene = Scene::empty(&[])?;
        let proxy = Proxy::before(&scene.redis);
        let mut plan = scene.plan("a", BRIEF);
        plan.options.store = proxy.url();
        change(&mut plan.options);
        scene.fleet.start(&plan);
        let first = scene.first();
        proxy.hold(Way::ToServer);
        // It fails, because there is no answer; the node leads no more all the same.
        scene.fleet.tell("a", &Command::StepDown { group: "default".to_owned() });
        proxy.until_held(Way::ToServer, "release");
        let reign = scene.fleet.leader("default", first.term);
        assert_eq!(reign.label, "a");
        // It follows.
        let mut plan = scene.plan("b", BRIEF);
        change(&mut plan.options);
        scene.fleet.start(&plan);
        Some(Self { scene, proxy, reign })
    }
}

#[test]
fn a_release_that_arrives_late_changes_nothing() {
    let Some(Late { mut scene, proxy, reign }) = Late::new(|_| {}) else { return };
    proxy.release(Way::ToServer);
    scene.fleet.still_leads(&reign, "default", later(2 * BRIEF));
    assert_eq!(scene.fleet.leader("default", reign.term - 1), reign);
    // In one piece, and nobody after it.
    let views = scene.fleet.read_logs().views();
    assert_eq!(views.iter().filter(|view| view.term >= reign.term).count(), 1, "{views:?}");
    scene.fleet.assert_safe();
}

/// Or the test above would show nothing.
#[test]
fn a_release_by_the_instance_id_alone_is_caught() {
    let flawed = |options: &mut Options| {
        options.script_flaw = Some(Flaw::ByValue);
        options.hold_until_deadline = true;
    };
    let Some(Late { mut scene, proxy, reign }) = Late::new(flawed) else { return };
    let delivered = BootInstant::now();
    proxy.release(Way::ToServer);
    let next = scene.taken_over("a release by the id alone", delivered, &reign);
    assert_eq!(next.label, "b");
    scene.fleet.until("two are seen to lead at once", |fleet| (!fleet.read_logs().overlaps().is_empty()).then_some(()));
}

#[test]
fn a_renew_that_arrives_late_changes_nothing() {
    let Some((mut scene, proxies, reign)) = Scene::with_proxies(BRIEF, ["a", "b"]) else { return };
    proxies[0].hold(Way::ToServer);
    proxies[0].until_held(Way::ToServer, "renew");
    // It cannot come back: somebody else is to lead.
    proxies[0].refuse();
    let held = BootInstant::now();
    let next = scene.taken_over("a renew that is held back", held, &reign);
    assert_eq!(next.label, "b");
    let expires = |redis: &RedisServer| redis.command::<i64>(&["PEXPIRETIME", LEASE]);
    let before = expires(&scene.redis);
    proxies[0].release(Way::ToServer);
    scene.fleet.still_leads(&next, "default", later(2 * BRIEF));
    assert!(expires(&scene.redis) > before, "the lease is b's");
    assert!(scene.redis.command::<String>(&["GET", LEASE]).starts_with("b-"));
    proxies[0].heal();
    scene.until_well(&["a"]);
    scene.fleet.assert_safe();
}

/// A whole connection's worth of commands that a server executes after it was stopped.
#[test]
fn what_a_stopped_server_does_late_changes_nothing() {
    let Some((mut scene, proxies, _)) = Scene::with_proxies(BRIEF, ["a", "b"]) else { return };
    for _ in 0..3 {
        scene.redis.stop();
        let stopped = BootInstant::now();
        scene.wait_until(stopped.saturating_add(BRIEF + Duration::from_millis(500)));
        scene.redis.cont();
        scene.led_again("a server that was stopped", BootInstant::now());
    }
    scene.fleet.assert_safe();
    drop(proxies);
}
