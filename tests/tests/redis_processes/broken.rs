//! Rules that are broken on purpose are seen by the very checks that the other tests rest upon.

use std::time::Duration;

use leader_core::testing::election::KnownBad;
use leader_core::testing::redis_script::Flaw;
use leader_tests::process::{Spawn, Wall, eventually};
use leader_tests::redis::{Proxy, RedisServer, Way, deadline_past_lease};

use crate::memory::Heirs;
use crate::{SHORT, Scene};

/// A leader that breaks a rule, behind a proxy, and a follower that does not.
fn broken<T>(rule: KnownBad, with: impl Fn(&Scene, Spawn) -> Option<(Spawn, T)>) -> Option<(Scene, Proxy, T)> {
    let mut scene = Scene::empty(&[])?;
    let proxy = Proxy::before(&scene.redis);
    let mut plan = scene.plan("a", SHORT);
    plan.options.store = proxy.url();
    plan.options.known_bad = Some(rule);
    // What is broken is not to be mended by a demotion.
    plan.options.hold_until_deadline = true;
    let (plan, with) = with(&scene, plan)?;
    scene.fleet.start(&plan);
    assert_eq!(scene.fleet.leader("default", 0).label, "a");
    scene.start(SHORT, &["b"]);
    Some((scene, proxy, with))
}

/// The leader hears no more of the server, and believes on beside the next one.
fn is_caught(scene: &mut Scene, proxy: &Proxy) {
    // What is answered still arrives.
    proxy.swallow(Way::ToServer);
    let overlap = scene.fleet.until("two are seen to lead at once", |fleet| fleet.read_logs().overlaps().pop());
    assert_eq!((overlap.earlier.instance.as_str(), overlap.later.instance.as_str()), ("a", "b"), "{overlap}");
}

#[test]
fn a_leader_without_a_deadline_is_caught() {
    let Some((mut scene, proxy, ())) = broken(KnownBad::NoDeadline, |_, plan| Some((plan, ()))) else { return };
    assert!(!deadline_past_lease(&mut scene.fleet, &scene.redis, "a", "default").is_zero());
    is_caught(&mut scene, &proxy);
}

#[test]
fn a_deadline_that_counts_from_the_reply_is_caught() {
    // It renews not before the answer has been there for a while.
    let seldom = |_: &Scene, mut plan: Spawn| {
        plan.options.heartbeat = Some(SHORT / 2);
        plan.options.operation_timeout = Some(SHORT * 2 / 5);
        Some((plan, ()))
    };
    let Some((mut scene, proxy, ())) = broken(KnownBad::DeadlineFromReply, seldom) else { return };
    // Less than an answer may take.
    let delay = Duration::from_secs(1);
    proxy.delay(Way::ToClient, delay);
    let Scene { fleet, redis } = &mut scene;
    // From the next renew on, which is on its way for so long.
    eventually("the deadline is much later than the end of the lease", || {
        (deadline_past_lease(fleet, redis, "a", "default") > delay / 2).then_some(())
    });
    is_caught(&mut scene, &proxy);
}

#[test]
fn a_deadline_by_the_wall_clock_is_caught() {
    let on_a_wall_clock = |scene: &Scene, plan| Wall::of(&scene.fleet, "a").map(|wall| (wall.plan(plan), wall));
    let Some((mut scene, proxy, wall)) = broken(KnownBad::WallClock, on_a_wall_clock) else { return };
    wall.jump_to(-60);
    is_caught(&mut scene, &proxy);
}

/// Where the script's rules stand, nobody leads beside a leader that was forgotten (see the tests of lost memory).
#[test]
fn a_server_without_quarantine_is_caught() {
    let Some(mut heirs) = Heirs::new(|options| options.script_flaw = Some(Flaw::NoQuarantine)) else { return };
    heirs.forget_while_it_leads(RedisServer::restart_empty);
    let fleet = &mut heirs.scene.fleet;
    fleet.until("two are seen to lead at once", |fleet| fleet.read_logs().overlaps().pop());
}
