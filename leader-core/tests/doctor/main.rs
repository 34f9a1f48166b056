//! What the doctor finds and what a store refuses: in the answer, the status and the log, each thing once.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod again;
mod log;
mod patient;
mod refused;

use std::time::Duration;

use leader_core::testing::{FaultyStore, ManualClock};
use leader_core::{Config, DoctorError, Elector, Finding, GroupName, StoreError};

use log::Log;
use patient::{Health, Patient};

const TTL: Duration = Duration::from_secs(600);

fn evicting() -> Finding {
    Finding::error("the store evicts leases", "a group loses its leader at any moment", "give it more memory")
}

fn alone() -> Finding {
    Finding::warning("the store has no replica", "it may be away for long", "give it one")
}

fn away() -> StoreError {
    StoreError::Unavailable { attempted: "look".into(), cause: "somebody pulled the plug".into() }
}

fn config(store: &Patient, id: &str) -> Config {
    Config::with_store(store.clone()).ttl(TTL).instance_id(id)
}

fn problems(elector: &Elector) -> Vec<String> {
    elector.status().problems.into_iter().map(|problem| problem.text).collect()
}

#[tokio::test]
async fn what_the_first_examination_finds_is_logged_once_and_stands_until_another_no_longer_finds_it() {
    let log = Log::of("first");
    let store = Patient::new(Health::Finds(vec![alone(), evicting()]));
    let elector = Elector::start(config(&store, "first")).await.unwrap();
    log.until("the store evicts leases").await;
    log.until("the store has no replica").await;
    assert_eq!(elector.doctor().await.unwrap(), [evicting(), alone()], "errors come first");
    assert_eq!(
        problems(&elector),
        [
            "the store evicts leases: a group loses its leader at any moment; give it more memory",
            "the store has no replica: it may be away for long; give it one",
        ]
    );
    store.is_now(Health::Finds(vec![alone()]));
    assert_eq!(elector.doctor().await.unwrap(), [alone()]);
    assert_eq!(problems(&elector).len(), 1);
    store.is_now(Health::Finds(vec![]));
    assert!(elector.doctor().await.unwrap().is_empty() && problems(&elector).is_empty());
    store.is_now(Health::Finds(vec![evicting()]));
    elector.doctor().await.unwrap();
    elector.shutdown(Duration::ZERO).await.unwrap();
    let found = log.at_the_end("the store").await;
    let of = |severity: &str, part: &str| {
        found.iter().filter(|(level, line)| level == severity && line.contains(part)).count()
    };
    assert_eq!(
        (of("WARN", "has no replica"), of("ERROR", "evicts leases")),
        (1, 2),
        "one was gone in between: {found:?}"
    );
}

#[tokio::test]
async fn a_finding_about_one_group_names_it_in_the_log_and_in_the_status() {
    let log = Log::of("named");
    let group = || GroupName::new("default").unwrap();
    let store = Patient::new(Health::Finds(vec![evicting().about(group())]));
    let elector = Elector::start(config(&store, "named")).await.unwrap();
    log.until("group default: the store evicts leases").await;
    elector.doctor().await.unwrap();
    assert_eq!(elector.status().problems[0].group, Some(group()));
}

#[tokio::test]
async fn an_examination_without_an_end_delays_no_start_and_no_renewal_and_is_given_up() {
    let (store, clock) = (Patient::new(Health::Hangs), ManualClock::new());
    let slow = config(&store, "endless").operation_timeout(TTL / 6).manual_clock(clock.clone());
    let elector = Elector::start(slow).await.unwrap();
    assert!(elector.ready().is_ok());
    store.examined(1).await;
    let lease = elector.lease("default").unwrap();
    store.is_now(Health::Finds(vec![]));
    let asker = elector.clone();
    let answer = tokio::spawn(async move { asker.doctor().await });
    // It is under way for ten operation time-outs: five heartbeats.
    for _ in 0..5 {
        assert!(!answer.is_finished());
        let deadline = lease.deadline();
        clock.advance(TTL / 3);
        while lease.deadline() == deadline {
            tokio::task::yield_now().await;
        }
    }
    // By the next one.
    assert!(answer.await.unwrap().unwrap().is_empty());
    assert!(lease.is_held() && elector.live().is_ok());
}

#[tokio::test]
async fn an_examination_that_fails_hides_nothing_that_stood_and_is_repeated_by_itself() {
    let (store, clock) = (Patient::new(Health::Finds(vec![evicting()])), ManualClock::new());
    let elector = Elector::start(config(&store, "again").manual_clock(clock.clone())).await.unwrap();
    assert_eq!(elector.doctor().await.unwrap(), [evicting()]);
    store.is_now(Health::Fails(away()));
    let found = elector.doctor().await.unwrap();
    assert!(found.len() == 1 && found[0].what.contains("could not be checked (somebody pulled the plug)"), "{found:?}");
    assert_eq!(problems(&elector).len(), 2, "it has not found the other gone");
    let before = store.examinations();
    store.is_now(Health::Finds(vec![]));
    clock.advance(TTL);
    store.examined(before + 1).await;
    while !problems(&elector).is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_asks_during_an_examination_is_answered_by_a_later_one() {
    let (store, clock) = (Patient::new(Health::Hangs), ManualClock::new());
    let elector = Elector::start(config(&store, "later").manual_clock(clock.clone())).await.unwrap();
    store.examined(1).await;
    store.is_now(Health::Finds(vec![alone()]));
    let (first, second, ()) = tokio::join!(elector.doctor(), elector.doctor(), async {
        // Answered after the two were heard.
        elector.leader_id("default").await.unwrap();
        clock.advance(Duration::from_secs(10));
    });
    assert_eq!((first.unwrap(), second.unwrap()), (vec![alone()], vec![alone()]));
    assert_eq!(store.examinations(), 2, "one for both");
}

#[tokio::test]
async fn a_store_that_is_away_is_a_finding_and_no_error() {
    let patient = Patient::new(Health::Finds(vec![]));
    let store = FaultyStore::new(patient.clone());
    store.fail_connect(away());
    let quick = Config::with_store(store.clone()).ttl(TTL).start_timeout(Duration::from_millis(50));
    let elector = Elector::start(quick).await.unwrap();
    let found = elector.doctor().await.unwrap();
    assert!(found[0].what.contains("patient:") && found[0].what.contains("pulled the plug"), "{found:?}");
    assert_eq!(patient.examinations(), 0, "nothing is asked of a store that is not connected");
    store.heal();
    patient.examined(1).await;
}

#[tokio::test]
async fn an_examination_that_panics_is_a_finding_and_costs_nothing() {
    let store = Patient::new(Health::Panics);
    let elector = Elector::start(config(&store, "panics")).await.unwrap();
    let found = elector.doctor().await.unwrap();
    assert!(found[0].what.contains("could not be checked (the store panicked: as the test asked)"), "{found:?}");
    assert!(elector.is_leader("default") && elector.live().is_ok());
}

#[tokio::test]
async fn nobody_waits_for_the_doctor_of_an_elector_that_has_ended() {
    let store = Patient::new(Health::Hangs);
    let elector = Elector::start(config(&store, "ended")).await.unwrap();
    store.examined(1).await;
    let (asked, ended) = tokio::join!(elector.doctor(), elector.shutdown(Duration::ZERO));
    assert_eq!((asked, ended), (Err(DoctorError::Stopped), Ok(())));
    assert_eq!(elector.doctor().await, Err(DoctorError::Stopped));
}
