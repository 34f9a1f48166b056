//! When a store is examined that nobody asks about, and what it is told of the elector's jobs.

use std::sync::Arc;
use std::time::Duration;

use leader_core::__private::NamedJob;
use leader_core::testing::ManualClock;
use leader_core::{Elector, GroupName};

use crate::config;
use crate::patient::{Health, Patient};

const HOUR: Duration = Duration::from_secs(3600);

/// The longest time from what is news to the examination that it leads to.
const SOON: Duration = Duration::from_secs(15);

fn job(name: &str) -> NamedJob {
    (Arc::from(name), Some((GroupName::new("default").unwrap(), "@daily".to_owned())))
}

/// An elector whose store was examined, without anything to find, at the time that its clock shows.
async fn examined(store: &Patient, id: &str, clock: &ManualClock) -> Elector {
    let config = config(store, id).ttl(HOUR).manual_clock(clock.clone());
    let elector = Elector::start(config).await.unwrap();
    assert_eq!(elector.doctor().await.unwrap(), []);
    elector
}

/// What the driver does at the time that the clock shows, it has done.
async fn driven(elector: &Elector) {
    for _ in 0..3 {
        elector.leader_id("default").await.unwrap();
    }
}

/// Time passes, in which no lease is lost.
async fn pass(elector: &Elector, clock: &ManualClock, time: Duration) {
    let mut left = time;
    while !left.is_zero() {
        let step = left.min(HOUR / 4);
        clock.advance(step);
        driven(elector).await;
        left -= step;
    }
}

#[tokio::test]
async fn where_nothing_is_found_it_is_looked_again_within_an_hour_and_a_half_and_not_within_an_hour() {
    let (store, clock) = (Patient::new(Health::Finds(vec![])), ManualClock::new());
    let elector = examined(&store, "hourly", &clock).await;
    // The time between differs.
    for _ in 0..5 {
        elector.doctor().await.unwrap();
        let before = store.examinations();
        pass(&elector, &clock, HOUR - Duration::from_secs(1)).await;
        assert_eq!(store.examinations(), before);
        pass(&elector, &clock, HOUR / 2 + Duration::from_secs(1)).await;
        store.examined(before + 1).await;
        driven(&elector).await;
        assert_eq!(store.examinations(), before + 1);
    }
}

#[tokio::test]
async fn when_the_jobs_have_changed_the_store_is_told_and_soon_examined() {
    let (store, clock) = (Patient::new(Health::Finds(vec![])), ManualClock::new());
    let elector = examined(&store, "jobs", &clock).await;
    assert_eq!((store.work(), store.descriptions()), (vec![], 0));
    let mut claims = elector.__claim_jobs(&[job("digest"), job("report")]).unwrap();
    for (times, work) in [(1, &["@", "@digest @daily", "@report @daily"][..]), (2, &["@", "@report @daily"])] {
        if times == 2 {
            claims.release("digest");
        }
        store.described(times).await;
        driven(&elector).await;
        let before = store.examinations();
        clock.advance(SOON);
        store.examined(before + 1).await;
        driven(&elector).await;
        assert_eq!((store.work(), store.examinations()), (work.iter().map(ToString::to_string).collect(), before + 1));
    }
}

#[tokio::test]
async fn an_elector_whose_jobs_are_stopped_is_told_of_as_before() {
    let (store, clock) = (Patient::new(Health::Finds(vec![])), ManualClock::new());
    let elector = examined(&store, "drains", &clock).await;
    let claim = elector.__claim_jobs(&[job("digest")]).unwrap();
    store.described(1).await;
    drop(claim);
    elector.doctor().await.unwrap();
    assert_eq!((store.work(), store.descriptions()), (vec!["@".to_owned(), "@digest @daily".to_owned()], 1));
    // The name is free, and the next scheduler says what is done from now on.
    let _claim = elector.__claim_jobs(&[job("report")]).unwrap();
    store.described(2).await;
    elector.doctor().await.unwrap();
    assert_eq!(store.work(), ["@", "@report @daily"]);
    elector.__claim_jobs(&[job("digest")]).unwrap();
}
