//! A server that has lost its memory, or a part of it: whoever led may still believe in it, and who asks must not be told
//! that nobody leads.

use leader_core::BootInstant;
use leader_tests::process::{Command, Options, Reign};
use leader_tests::redis::{Proxy, RedisServer};

use crate::{BRIEF, Scene};

/// What happens to the server's memory.
pub(crate) type Loss = fn(&mut RedisServer);

const DELETED: Loss = |redis| assert!(redis.delete("leader:default"));

/// Nodes that take a new server for what it may be, one that has forgotten; each has a proxy of its own. `a` was the leader
/// when the server's memory was copied, and `b` leads now.
pub(crate) struct Heirs {
    pub(crate) scene: Scene,
    pub(crate) proxies: [Proxy; 3],
    pub(crate) reign: Reign,
}

impl Heirs {
    pub(crate) fn new(change: impl Fn(&mut Options)) -> Option<Self> {
        let mut scene = Scene::empty(&[])?;
        let proxies = ["a", "b", "c"].map(|label| {
            let proxy = Proxy::before(&scene.redis);
            let mut plan = scene.fleet.plan(label, BRIEF);
            plan.options.store = proxy.url();
            // It believes for as long as it may, whatever it hears.
            plan.options.hold_until_deadline = true;
            change(&mut plan.options);
            scene.fleet.start(&plan);
            proxy
        });
        let first = scene.first();
        assert_eq!(first.label, "a");
        scene.redis.snapshot();
        // Nobody but b may follow.
        for label in ["c", "a"] {
            scene.fleet.ask(label, &Command::Drain).unwrap();
        }
        let reign = scene.fleet.leader("default", first.term);
        assert_eq!(reign.label, "b");
        for label in ["a", "c"] {
            scene.fleet.ask(label, &Command::Resume).unwrap();
        }
        Some(Self { scene, proxies, reign })
    }

    /// The leader hears nothing more, and the server forgets: the leader believes on, and the server knows of nothing.
    pub(crate) fn forget_while_it_leads(&mut self, loss: Loss) -> BootInstant {
        let Scene { fleet, redis } = &mut self.scene;
        // The others look when the lease would have ended that they know. It has been renewed since.
        let expiry = |redis: &RedisServer| redis.command::<i64>(&["PEXPIRETIME", "leader:default"]);
        let known = expiry(redis);
        fleet.until("the lease was renewed", |_| (expiry(redis) > known).then_some(()));
        // With the answer.
        fleet.still_leads(&self.reign, "default", BootInstant::now());
        self.proxies[1].black_hole();
        loss(redis);
        BootInstant::now()
    }
}

/// The server forgets three times, and somebody leads again each time.
fn somebody_leads_again(what: &str, loss: Loss) {
    let Some(Heirs { mut scene, proxies, .. }) = Heirs::new(|_| {}) else { return };
    for _ in 0..3 {
        loss(&mut scene.redis);
        let lost = BootInstant::now();
        scene.leads_on(what, lost, BRIEF);
    }
    scene.fleet.assert_safe();
    drop(proxies);
}

/// The server forgets a leader that still believes, and nobody leads beside it.
fn nobody_leads_beside_the_forgotten_one(what: &str, loss: Loss) {
    let Some(mut heirs) = Heirs::new(|_| {}) else { return };
    let lost = heirs.forget_while_it_leads(loss);
    let Heirs { mut scene, proxies, reign } = heirs;
    let next = scene.taken_over(&format!("{what}, while a leader is cut off"), lost, &reign);
    assert_ne!(next.label, reign.label);
    proxies[1].heal();
    scene.until_well(&["a", "b", "c"]);
    scene.fleet.assert_safe();
}

/// The record names an incarnation that is dead, under a term that is older than the living one's.
#[test]
fn an_instance_with_a_stable_id_leads_again_after_a_roll_back_to_an_earlier_life_of_it() {
    let Some(mut scene) = Scene::empty(&[]) else { return };
    let plan = |scene: &Scene, label: &str| {
        let mut plan = scene.plan(label, BRIEF);
        plan.options.stable_id = Some("app-0".to_owned());
        plan.options.hold_until_deadline = true;
        plan
    };
    let dead = plan(&scene, "a");
    scene.fleet.start(&dead);
    let first = scene.first();
    scene.redis.snapshot();
    scene.fleet.kill("a");
    let alive = plan(&scene, "b");
    scene.fleet.start(&alive);
    let second = scene.fleet.leader("default", first.term);
    scene.redis.roll_back();
    let third = scene.fleet.leader("default", second.term);
    assert_eq!(third.label, "b");
    scene.until_well(&["b"]);
    scene.fleet.assert_safe();
}

#[test]
fn somebody_leads_again_after_a_restart_with_data() {
    somebody_leads_again("a restart with data", RedisServer::restart_with_data);
}

#[test]
fn somebody_leads_again_after_a_restart_without_data() {
    somebody_leads_again("a restart without data", RedisServer::restart_empty);
}

#[test]
fn somebody_leads_again_after_everything_was_deleted() {
    somebody_leads_again("FLUSHALL", |redis| redis.flush_all());
}

#[test]
fn somebody_leads_again_after_a_roll_back() {
    somebody_leads_again("a roll-back", RedisServer::roll_back);
}

#[test]
fn somebody_leads_again_after_the_lease_was_deleted() {
    somebody_leads_again("DEL", |redis| {
        // One that nobody held at the moment is gone already.
        let _ = redis.delete("leader:default");
    });
}

#[test]
fn a_restart_with_data_gives_no_second_leader() {
    nobody_leads_beside_the_forgotten_one("a restart with data", RedisServer::restart_with_data);
}

#[test]
fn a_restart_without_data_gives_no_second_leader() {
    nobody_leads_beside_the_forgotten_one("a restart without data", RedisServer::restart_empty);
}

#[test]
fn the_deletion_of_everything_gives_no_second_leader() {
    nobody_leads_beside_the_forgotten_one("FLUSHALL", |redis| redis.flush_all());
}

#[test]
fn an_eviction_gives_no_second_leader() {
    nobody_leads_beside_the_forgotten_one("eviction", |redis| redis.evict_all());
}

#[test]
fn a_roll_back_gives_no_second_leader() {
    nobody_leads_beside_the_forgotten_one("a roll-back", RedisServer::roll_back);
}

/// Elsewhere it may, for less than a heartbeat. Where the record says how long the lease was to last, that is waited for.
#[test]
fn the_deletion_of_a_lease_with_a_record_gives_no_second_leader() {
    nobody_leads_beside_the_forgotten_one("DEL", DELETED);
}
