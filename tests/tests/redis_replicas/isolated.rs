//! A primary that goes on, cut off from its replicas together with a leader, while one of them takes its place.

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use leader_tests::process::{Command, Fleet, Reign, Spawn};
use leader_tests::redis::{Proxy, RedisServer, Replicated, SERVICE, Watched};

use crate::PROGRAM;

const TTL: Duration = Duration::from_secs(2);

fn plan(fleet: &Fleet, label: &str, store: &str, replicas: u8) -> Spawn {
    let mut plan = fleet.plan(label, TTL);
    store.clone_into(&mut plan.options.store);
    plan.options.replicas = replicas;
    plan.options.trust_fresh_store = true;
    plan.options.heartbeat = Some(Duration::from_millis(200));
    plan.options.retry = Some(Duration::from_millis(500));
    plan
}

/// Waits until a node is seen to lead for two ttls after it has begun: longer than anybody may believe who led before.
fn until_led_by(fleet: &mut Fleet, label: &str) -> View {
    let long = u64::try_from((2 * TTL).as_nanos()).unwrap();
    fleet.until(&format!("{label} leads for two ttls"), |fleet| {
        let mut views = fleet.read_logs().views().iter();
        views.find(|view| view.instance == label && view.ended_ns - view.began_ns >= long).cloned()
    })
}

fn until_two_lead(fleet: &mut Fleet) {
    fleet.until("two lead at once", |fleet| fleet.read_logs().overlaps().into_iter().next());
}

/// Three servers and their sentinels. The leader reaches the primary, and no sentinel; the sentinels do not reach the primary
/// either, and make a replica the next one; the other node follows them there.
struct Isolated {
    fleet: Fleet,
    reign: Reign,
    // Kept, though nothing comes through.
    _proxies: Vec<Proxy>,
    watched: Watched,
    promoted: usize,
}

impl Isolated {
    fn new(replicas: u8) -> Option<Self> {
        let watched = Watched::start(&[], &[], None)?;
        let proxies: Vec<_> = watched.sentinels.iter().map(|sentinel| Proxy::to(sentinel.address())).collect();
        let hosts: Vec<_> = proxies.iter().map(|proxy| proxy.address().to_string()).collect();
        let by_proxies = format!("redis-sentinel://{}/{SERVICE}/0", hosts.join(","));
        let mut fleet = Fleet::on_store(PROGRAM, &watched.url());
        let a = plan(&fleet, "a", &by_proxies, replicas);
        fleet.start(&a);
        let reign = fleet.leader("default", 0);
        let b = plan(&fleet, "b", &watched.url(), replicas);
        fleet.start(&b);
        for proxy in &proxies {
            proxy.refuse();
            proxy.cut();
        }
        watched.hide_from_sentinels(0);
        let promoted = watched.until_promoted(0).server;
        Some(Self { fleet, reign, _proxies: proxies, watched, promoted })
    }

    fn new_primary(&self) -> &RedisServer {
        &self.watched.servers[self.promoted]
    }

    fn assert_old_primary_goes_on(&self) {
        let role: String = self.watched.servers[0].command(&["INFO", "replication"]);
        assert!(role.contains("role:master"), "nobody has told it: {role}");
    }
}

#[test]
fn a_leader_on_an_isolated_primary_leads_beside_nobody_if_every_replica_is_waited_for() {
    let Some(mut scene) = Isolated::new(2) else { return };
    // Of two replicas one is the new primary, and one follows it.
    scene.fleet.until("the new primary has too few replicas", |fleet| {
        fleet.problems("b").contains("1 of the 2 replicas").then_some(())
    });
    scene.fleet.until("the leader that was left behind is told why it leads no more", |fleet| {
        fleet.problems("a").contains("of the 2 replicas").then_some(())
    });
    scene.assert_old_primary_goes_on();
    let port = scene.new_primary().address().port();
    let Some(_third) = RedisServer::start(&[("replicaof", &format!("127.0.0.1 {port}"))]) else { return };
    let view = until_led_by(&mut scene.fleet, "b");
    assert!(view.term > scene.reign.term);
    scene.assert_old_primary_goes_on();
    scene.fleet.assert_safe();
}

#[test]
fn without_replicas_that_are_waited_for_two_lead_and_the_checker_sees_them() {
    let Some(mut scene) = Isolated::new(0) else { return };
    until_two_lead(&mut scene.fleet);
    scene.assert_old_primary_goes_on();
}

/// A primary whose replica has lost it, and is then promoted with a replica of its own.
fn promoted_without_the_lease(replicas: u8) {
    let Some(servers) = Replicated::start(2) else { return };
    let [promoted, next] = &servers.replicas[..] else { panic!("there are two") };
    promoted.become_replica();
    servers.follow(1, promoted);
    let mut fleet = Fleet::on_store(PROGRAM, &servers.primary.url());
    let a = plan(&fleet, "a", &servers.primary.url(), replicas);
    fleet.spawn(&a);
    fleet.until("the first node has tried", |_| {
        servers.primary.command::<bool>(&["EXISTS", "leader:default"]).then_some(())
    });
    assert!(!promoted.command::<bool>(&["EXISTS", "leader:default"]));
    promoted.become_primary();
    servers.follow(1, promoted);
    Replicated::until_in_step(promoted, 1);
    let b = plan(&fleet, "b", &promoted.url(), replicas);
    fleet.start(&b);
    until_led_by(&mut fleet, "b");
    assert!(next.command::<bool>(&["EXISTS", "leader:default"]) || replicas == 0);
    if replicas == 0 {
        until_two_lead(&mut fleet);
    } else {
        assert!(fleet.read_logs().views().iter().all(|view| view.instance == "b"));
        fleet.until("who cannot lead is told why", |fleet| {
            fleet.problems("a").contains("0 of the 1 replicas").then_some(())
        });
        fleet.assert_safe();
    }
}

#[test]
fn nobody_leads_by_a_lease_that_the_promoted_replica_never_got() {
    promoted_without_the_lease(1);
}

#[test]
fn without_waiting_somebody_does_beside_the_next_leader() {
    promoted_without_the_lease(0);
}

/// It is the send that a deadline counts from, and not the word of the replicas, which comes later.
#[test]
fn who_waits_for_replicas_believes_in_its_lease_no_longer_for_it() {
    let Some(servers) = Replicated::start(1) else { return };
    let mut fleet = Fleet::on_store(PROGRAM, &servers.primary.url());
    let mut a = plan(&fleet, "a", &servers.primary.url(), 1);
    a.options.hold_until_deadline = true;
    fleet.start(&a);
    fleet.leader("default", 0);
    servers.replicas[0].stop();
    let stopped = BootInstant::now();
    fleet.until("a renewal has failed", |fleet| fleet.problems("a").contains("0 of the 1 replicas").then_some(()));
    fleet.until("it leads no more", |fleet| {
        fleet.ask("a", &Command::Lease { group: "default".into() }).unwrap().is_null().then_some(())
    });
    fleet.assert_safe();
    // What was sent after the replica stood still counts for nothing, however long the server has waited.
    let ended = fleet.read_logs().views().iter().map(|view| view.ended_ns).max().unwrap();
    assert!(
        ended <= stopped.saturating_add(TTL).as_nanos(),
        "it led {} ns too long",
        ended - stopped.saturating_add(TTL).as_nanos()
    );
}
