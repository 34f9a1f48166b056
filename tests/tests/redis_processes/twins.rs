//! Two processes with one stable id.

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::Overlap;
use leader_tests::process::Reign;

use crate::{SHORT, Scene, later};

/// A newer process has taken the lease of the older one, which has noticed and stays out.
#[allow(clippy::print_stderr)]
fn newer_leads(reclaim_after_deadline: bool) -> Option<(Scene, Duration)> {
    let mut scene = Scene::empty(&[])?;
    let plan = |scene: &Scene, label: &str| {
        let mut plan = scene.plan(label, SHORT);
        plan.options.stable_id = Some("the-one".to_owned());
        plan.options.reclaim_after_deadline = reclaim_after_deadline;
        plan
    };
    let older = plan(&scene, "older");
    scene.fleet.start(&older);
    let first = scene.first();
    let began = BootInstant::now();
    let newer = plan(&scene, "newer");
    scene.fleet.start(&newer);
    let next = scene.taken_over("another process with the same id", began, &first);
    assert_eq!(next.label, "newer");
    scene.fleet.hears("older", "that it is a duplicate", |t| t.is_event("default", "duplicate_instance"));
    // They do not take it from each other in turns.
    let reign = Reign { label: next.label, term: next.term };
    scene.fleet.still_leads(&reign, "default", later(SHORT));
    let status = scene.fleet.status("older");
    assert_eq!(status["groups"][0]["standing"], "duplicate", "{status}");
    let history = scene.fleet.read_logs();
    assert_eq!(history.term_faults(), []);
    let two_led = Duration::from_nanos(history.overlaps().iter().map(Overlap::shared_ns).sum());
    eprintln!(
        "two processes with one id, waiting for the deadline: {reclaim_after_deadline}; two led for {two_led:.3?}"
    );
    Some((scene, two_led))
}

/// A stated limit: whoever chooses a stable id says that no two processes have it.
#[test]
fn the_older_of_two_processes_with_one_id_stops_at_its_next_renew_and_for_good() {
    let Some((_, two_led)) = newer_leads(false) else { return };
    // A renew is sent a third of a ttl after the last one, and answered or given up within half of one.
    assert!(two_led <= SHORT / 3 + SHORT / 2, "{two_led:?}");
}

#[test]
fn two_processes_with_one_id_never_lead_at_once_if_the_newer_waits_for_the_deadline() {
    let Some((mut scene, _)) = newer_leads(true) else { return };
    scene.fleet.assert_safe();
}
