//! Sentinels that are gone, one after the other.

use leader_core::BootInstant;

use crate::{LABELS, Scene, TTL};

#[test]
fn sentinels_that_die_one_by_one_cost_nothing_until_a_connection_is_needed() {
    let Some((mut scene, _)) = Scene::new() else { return };
    for dead in 0..3 {
        // With those that are left, new connections come about.
        assert!(scene.watched.servers[0].kill_clients() > 0);
        scene.leads_at("CLIENT KILL", BootInstant::now().saturating_add(TTL));
        scene.until_all_listen_to(0);
        let before = scene.fleet.read_logs().views().len();
        scene.watched.sentinels[dead].kill();
        scene.leads_at("a sentinel is gone", BootInstant::now().saturating_add(TTL));
        assert_eq!(scene.fleet.read_logs().views().len(), before, "the connections that are there need no sentinel");
    }
    scene.watched.servers[0].kill_clients();
    let addresses: Vec<_> = scene.watched.sentinels.iter().map(|one| one.address().to_string()).collect();
    scene.fleet.until("all name the sentinels that they cannot reach", |fleet| {
        let mut problems = LABELS.iter().map(|label| fleet.problems(label));
        problems.all(|text| addresses.iter().all(|address| text.contains(address))).then_some(())
    });
    let began = BootInstant::now();
    scene.watched.sentinels[1].start_again();
    scene.leads_at("a sentinel is back", began.saturating_add(TTL));
    scene.fleet.assert_safe();
}
