//! Sentinels that are gone, one after the other.

use leader_core::{BootInstant, Config, Elector, FreshStore};
use leader_tests::redis::{SERVICE, Watched};

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

/// What the doctor of an elector that reaches the service by this URL says of sentinels.
async fn found(elector: &Elector) -> Vec<(&'static str, String)> {
    let found = elector.doctor().await.unwrap().into_iter();
    found.filter(|finding| finding.code.starts_with("sentinels-")).map(|finding| (finding.code, finding.what)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_which_sentinels_are_missing_in_the_url_and_which_are_gone() {
    let Some(mut watched) = Watched::start(&[], &[], None) else { return };
    let start = |url: String| Elector::start(Config::new(url).fresh_store(FreshStore::Trust).ttl(30 * TTL));
    let elector = start(watched.url()).await.unwrap();
    assert_eq!(found(&elector).await, []);
    let one = start(format!("redis-sentinel://{}/{SERVICE}/0", watched.sentinels[0].address())).await.unwrap();
    let [("sentinels-unnamed", text)] = &found(&one).await[..] else { panic!() };
    assert!(text.contains("one of the 3 sentinels"), "{text}");

    watched.sentinels[2].kill();
    let [("sentinels-silent", text)] = &found(&elector).await[..] else { panic!() };
    assert!(text.contains(&watched.sentinels[2].address().to_string()) && text.starts_with("1 of 3"), "{text}");
    watched.sentinels[2].start_again();
    assert_eq!(found(&elector).await, []);

    // They all stay, and more have to agree than there are.
    for sentinel in &watched.sentinels {
        sentinel.try_command::<()>(&["SENTINEL", "SET", SERVICE, "quorum", "4"]).unwrap();
    }
    let [("sentinels-few", text)] = &found(&elector).await[..] else { panic!() };
    assert!(text.contains("3 sentinel(s)") && text.contains("4 have to agree"), "{text}");
}
