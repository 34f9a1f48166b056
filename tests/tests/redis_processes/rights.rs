//! A server that refuses: for want of rights, of disk, of memory, or because it is a replica. It is said what to do, and
//! passes when that was done.

use leader_core::BootInstant;
use leader_tests::process::{Command, Fleet, Mount, Reign};
use leader_tests::redis::{Proxy, RedisServer, Way};

use crate::{BRIEF, SHORT, Scene, later};

const LEASE: &str = "leader:default";

/// The status of a node says that, as an error that does not pass by itself.
fn says(fleet: &mut Fleet, label: &str, texts: &[&str]) {
    fleet.until(&format!("the status of {label} says that something was refused: {texts:?}"), |fleet| {
        let problems = fleet.problems(label);
        let all = texts.iter().all(|text| problems.contains(text));
        (all && problems.contains("was refused")).then_some(())
    });
}

/// The server refuses, says so, and is well again.
fn refuses(
    scene: &mut Scene,
    reign: &Reign,
    says_what: &[&str],
    begin: impl Fn(&RedisServer),
    end: impl Fn(&RedisServer),
) {
    begin(&scene.redis);
    scene.fleet.hears(&reign.label, "that its lease is lost", |t| t.is_event("default", "lost"));
    for label in ["a", "b"] {
        says(&mut scene.fleet, label, says_what);
    }
    let refused = BootInstant::now();
    // Nothing is held any more that could end later.
    scene.wait_until(refused.saturating_add(2 * BRIEF));
    let before_the_end = BootInstant::now();
    end(&scene.redis);
    scene.led_again(&format!("{says_what:?}"), BootInstant::now());
    scene.until_well(&["a", "b"]);
    scene.assert_nobody_led(refused.saturating_add(BRIEF), before_the_end);
    scene.fleet.assert_safe();
}

#[test]
fn rights_that_are_revoked_are_named_and_nobody_leads_without_them() {
    let Some((mut scene, reign)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    let says = ["NOPERM", "ACL SETUSER", "+evalsha"];
    refuses(&mut scene, &reign, &says, |redis| redis.permit(&["-eval", "-evalsha"]), |redis| redis.permit(&["+@all"]));
}

#[test]
fn nobody_leads_by_a_replica() {
    let Some((mut scene, reign)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    refuses(&mut scene, &reign, &["READONLY", "primary"], RedisServer::become_replica, RedisServer::become_primary);
}

#[test]
fn nobody_leads_where_the_lease_is_of_the_wrong_type() {
    let Some((mut scene, reign)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    let mistaken = |redis: &RedisServer| {
        redis.command::<()>(&["EVAL", "redis.call('DEL', KEYS[1]) redis.call('LPUSH', KEYS[1], 'x')", "1", LEASE]);
    };
    let says = ["WRONGTYPE", "LEADER_PREFIX"];
    refuses(&mut scene, &reign, &says, mistaken, |redis| assert!(redis.delete(LEASE)));
}

/// Nobody knows whether that one leads: it is for an operator to say.
#[test]
fn nobody_leads_beside_a_lease_without_an_end_that_somebody_else_has_set() {
    let Some((mut scene, reign)) = Scene::new(BRIEF, &["a", "b"]) else { return };
    scene.redis.command::<()>(&["SET", LEASE, "somebody"]);
    scene.fleet.hears(&reign.label, "that its lease is lost", |t| t.is_event("default", "lost"));
    let lost = BootInstant::now();
    scene.wait_until(lost.saturating_add(2 * BRIEF));
    for label in ["a", "b"] {
        let leader = scene.fleet.ask(label, &Command::LeaderId { group: "default".to_owned() });
        assert_eq!(leader, Ok("somebody".into()));
    }
    let before_the_end = BootInstant::now();
    assert!(scene.redis.delete(LEASE));
    scene.led_again("a lease without an end", BootInstant::now());
    scene.assert_nobody_led(lost, before_the_end);
    scene.fleet.assert_safe();
}

#[test]
fn nobody_leads_by_a_server_whose_disk_is_full() {
    let Some(disk) = Mount::new("64k") else { return };
    let Some(redis) = RedisServer::start_on(disk.path(), &[("save", "3600 1")]) else { return };
    let mut scene = Scene::on(redis);
    scene.start(BRIEF, &["a", "b"]);
    let reign = scene.first();
    refuses(&mut scene, &reign, &["MISCONF", "make room"], |redis| redis.fill_disk(200_000), RedisServer::clear_disk);
}

#[test]
fn a_full_memory_costs_no_leader_and_lets_nobody_begin() {
    let Some(mut scene) = Scene::empty(&[]) else { return };
    let proxy = Proxy::before(&scene.redis);
    let mut plan = scene.plan("a", SHORT);
    plan.options.store = proxy.url();
    // It fails and asks again long before its lease ends.
    plan.options.operation_timeout = Some(SHORT / 10);
    plan.options.retry = Some(SHORT / 30);
    scene.fleet.start(&plan);
    scene.start(SHORT, &["b"]);
    let reign = scene.first();
    scene.redis.exhaust_memory();
    // It renews.
    scene.fleet.still_leads(&reign, "default", later(SHORT + SHORT / 3));
    // It takes its own lease again when a renewal has failed, under another term.
    proxy.hold(Way::ToServer);
    let held = BootInstant::now();
    let again = scene.taken_over("a failed renewal without memory", held, &reign);
    assert_eq!(again.label, "a");
    // Anybody else is refused, loudly.
    scene.fleet.kill("a");
    says(&mut scene.fleet, "b", &["OOM", "maxmemory"]);
    scene.redis.relieve_memory();
    let relieved = BootInstant::now();
    assert_eq!(scene.taken_over("memory", relieved, &again).label, "b");
    scene.fleet.assert_safe();
}
