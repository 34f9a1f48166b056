//! Instances with a stable id: restarts, and two processes that have the same one.

use leader_core::BootInstant;
use leader_tests::process::{Command, Fleet, Reign, Spawn, Told};

use crate::{LONG, LONG_BEFORE, PROGRAM, SHORT, took};

fn stable(fleet: &Fleet, label: &str, ttl: std::time::Duration) -> Spawn {
    let mut plan = fleet.plan(label, ttl);
    plan.options.stable_id = Some("the-one".to_owned());
    plan
}

/// The process `label` has come back: it leads at once, under a new term, and says so.
fn leads_at_once(fleet: &mut Fleet, label: &str, from: BootInstant, before: &Reign) {
    let view = fleet.next_view("default", from, before.term);
    assert_eq!(view.instance, label);
    assert!(took(from, &view) < LONG_BEFORE, "{:?}", took(from, &view));
    // Either is an event: it was acquired before the subscription, or after it.
    let told = fleet.hears(label, "that it leads", |t| t.leads("default").is_some());
    assert_eq!(told.leads("default"), Some(view.term));
    fleet.until("the log names the acquisition", |fleet| {
        let written = fleet.written(label);
        let mut lines = written.lines();
        let term = view.term.to_string();
        lines.find(|line| line.contains("leader of default") && line.contains(&term)).map(drop)
    });
}

#[test]
fn a_stable_id_leads_at_once_after_a_restart_clean_or_not() {
    let mut fleet = Fleet::new(PROGRAM);
    fleet.start(&stable(&fleet, "first", LONG));
    // Somebody who would take the lease if it were free for long.
    fleet.start(&fleet.plan("other", LONG));
    let first = fleet.leader("default", 0);
    assert_eq!(first.label, "first");
    fleet.tell("other", &Command::Drain);

    let killed = BootInstant::now();
    fleet.kill("first");
    fleet.start(&stable(&fleet, "second", LONG));
    leads_at_once(&mut fleet, "second", killed, &first);
    let second = fleet.leader("default", first.term);

    let ended = BootInstant::now();
    fleet.ask("second", &Command::Shutdown).unwrap();
    fleet.start(&stable(&fleet, "third", LONG));
    leads_at_once(&mut fleet, "third", ended, &second);
    fleet.assert_safe();
}

#[test]
fn the_older_of_two_processes_with_one_id_stops_and_says_so() {
    let mut fleet = Fleet::new(PROGRAM);
    fleet.start(&stable(&fleet, "older", SHORT));
    let first = fleet.leader("default", 0);
    let began = BootInstant::now();
    fleet.start(&stable(&fleet, "newer", SHORT));
    let view = fleet.next_view("default", began, first.term);
    assert_eq!(view.instance, "newer");
    assert_duplicate(&mut fleet, "older");
    // And the newer one leads on: they do not take it from each other in turns.
    let reign = Reign { label: "newer".to_owned(), term: view.term };
    fleet.still_leads(&reign, "default", crate::later(SHORT));
    let faults = fleet.read_logs().term_faults();
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn two_processes_with_one_id_never_lead_at_once_if_the_newer_waits_for_the_deadline() {
    let mut fleet = Fleet::new(PROGRAM);
    let waiting = |fleet: &Fleet, label: &str| {
        let mut plan = stable(fleet, label, SHORT);
        plan.options.reclaim_after_deadline = true;
        plan
    };
    fleet.start(&waiting(&fleet, "older"));
    let first = fleet.leader("default", 0);
    let began = BootInstant::now();
    fleet.start(&waiting(&fleet, "newer"));
    let view = fleet.next_view("default", began, first.term);
    assert_eq!(view.instance, "newer");
    assert_duplicate(&mut fleet, "older");
    let reign = Reign { label: "newer".to_owned(), term: view.term };
    fleet.still_leads(&reign, "default", crate::later(SHORT));
    fleet.assert_safe();
}

fn assert_duplicate(fleet: &mut Fleet, label: &str) {
    fleet.hears(label, "that it is a duplicate", |t| t.is_event("default", "duplicate_instance"));
    let status = fleet.status(label);
    assert_eq!(status["groups"][0]["standing"], "duplicate", "{status}");
    assert!(status["problems"].to_string().contains("another process with this instance id"), "{status}");
}

#[test]
fn a_process_that_cannot_take_part_says_why_and_ends() {
    let mut fleet = Fleet::new(PROGRAM);
    let mut plan = fleet.plan("a", SHORT);
    plan.options.store = format!("sqlite://{}/missing/leader.db", fleet.folder().display());
    fleet.spawn(&plan);
    let told = fleet.hears("a", "why it cannot start", |t| matches!(t, Told::NotStarted { .. }));
    let Told::NotStarted { error } = told else { unreachable!() };
    assert!(error.contains("missing/leader.db") && error.contains("create the folder"), "{error}");
    fleet.hears("a", "that it is gone", |t| *t == Told::Gone);
}
