//! The first start of a fleet on a new server, and what an elector leaves behind.

use std::time::Duration;

use leader_core::{BootInstant, Elector};
use leader_tests::process::{config_at, eventually};
use leader_tests::redis::RedisServer;

const TTL: Duration = Duration::from_secs(1);

#[tokio::test]
async fn the_first_start_waits_for_the_quarantine_and_then_leads() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let begin = BootInstant::now();
    // On a busy machine an answer may take as long as half of it.
    let elector = Elector::start(config_at(redis.url()).ttl(TTL).operation_timeout(TTL / 2)).await.unwrap();
    assert!(elector.is_leader("default"), "{:?}", elector.status());
    assert!(BootInstant::now().saturating_since(begin) >= TTL);
    elector.shutdown(Duration::ZERO).await.unwrap();
    // The second is a matter of course.
    let begin = BootInstant::now();
    let elector = Elector::start(config_at(redis.url()).ttl(20 * TTL)).await.unwrap();
    assert!(elector.is_leader("default"));
    assert!(BootInstant::now().saturating_since(begin) < 10 * TTL);
    elector.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_start_time_out_that_was_chosen_is_kept_also_in_a_quarantine() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let config = config_at(redis.url()).ttl(30 * TTL).start_timeout(TTL / 2);
    let begin = BootInstant::now();
    let elector = Elector::start(config).await.unwrap();
    assert!(!elector.is_leader("default"));
    assert!(BootInstant::now().saturating_since(begin) < 20 * TTL);
    let problems = format!("{:?}", elector.status().problems);
    assert!(problems.contains("no record of this group"), "{problems}");
    elector.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn an_elector_that_has_ended_or_never_came_about_leaves_no_connection_and_no_lease() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    let config = || crate::config(&redis.url());
    let elector = Elector::start(config()).await.unwrap();
    assert!(elector.is_leader("default"));
    // For a moment the doctor has a third one.
    eventually("there are two connections", || (redis.connections() == 2).then_some(()));
    elector.shutdown(Duration::ZERO).await.unwrap();
    eventually("both connections are closed", || (redis.connections() == 0).then_some(()));
    // Dropped at any point of its start.
    for polls in 0..40 {
        let mut start = Box::pin(Elector::start(config()));
        for _ in 0..polls {
            if tokio::time::timeout(Duration::from_micros(500), &mut start).await.is_ok() {
                break;
            }
        }
        drop(start);
    }
    eventually("all connections are closed", || (redis.connections() == 0).then_some(()));
    eventually("no lease is left", || (!redis.command::<bool>(&["EXISTS", "leader:default"])).then_some(()));
}

/// Polls a future so often at most, then drops it.
async fn drop_after(polls: usize, future: impl Future) {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        if tokio::time::timeout(Duration::from_micros(300), &mut future).await.is_ok() {
            return;
        }
    }
}

#[tokio::test]
async fn a_future_that_is_dropped_at_any_point_leaves_no_lease_behind() {
    let Some(redis) = RedisServer::start(&[]) else { return };
    for polls in 0..12 {
        let elector = Elector::start(crate::config(&redis.url())).await.unwrap();
        drop_after(polls, elector.run_if_leader("default", |_| std::future::pending::<()>())).await;
        drop_after(polls, elector.while_leader("default", |_| std::future::pending::<()>())).await;
        drop_after(polls, elector.leader_id("default")).await;
        drop_after(polls, elector.doctor()).await;
        // Each of these goes on without its future, to its end.
        drop_after(polls, elector.step_down("default")).await;
        drop_after(polls, elector.drain(Duration::ZERO)).await;
        elector.resume();
        drop_after(polls, elector.shutdown(Duration::ZERO)).await;
        elector.shutdown(Duration::ZERO).await.unwrap();
        assert!(!redis.command::<bool>(&["EXISTS", "leader:default"]), "after {polls} polls a lease is left");
    }
    eventually("all connections are closed", || (redis.connections() == 0).then_some(()));
}
