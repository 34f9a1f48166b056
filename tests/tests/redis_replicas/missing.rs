//! Replicas that do not confirm: nobody leads and no lock is taken, and nothing else is held up.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leader_core::{Elector, LockError, Once, RenewalFailure};
use leader_tests::process::eventually;
use leader_tests::redis::Replicated;

use crate::{config, problems};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_leads_while_a_replica_stands_still_and_somebody_does_once_it_goes_on() {
    let Some(servers) = Replicated::start(1) else { return };
    let url = servers.primary.url();
    let [leader, other] =
        [Elector::start(config(&url, 1)).await.unwrap(), Elector::start(config(&url, 1)).await.unwrap()];
    assert!(leader.is_leader("default"), "{:?}", leader.status());
    let term = leader.lease("default").unwrap().term();
    servers.replicas[0].stop();
    eventually("it leads no more", || (!leader.is_leader("default")).then_some(()));
    eventually("the status says why", || problems(&leader).contains("0 of the 1 replicas").then_some(()));
    assert!(problems(&leader).contains("lower Config::replicas"), "{}", problems(&leader));
    assert!(!other.is_leader("default"));
    // By the server it has the lease, and keeps it from others: it only may not believe in it.
    assert_eq!(other.leader_id("default").await.unwrap().as_ref(), Some(leader.instance_id()));
    servers.replicas[0].cont();
    eventually("it leads again", || leader.is_leader("default").then_some(()));
    assert!(leader.lease("default").unwrap().term() > term);
    eventually("nothing is wrong any more", || (!problems(&leader).contains("replicas")).then_some(()));
    for elector in [other, leader] {
        elector.shutdown(Duration::ZERO).await.unwrap();
    }
}

/// The same without a replica from the beginning, and with one that is lost for good.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_fewer_replicas_than_are_waited_for_is_told_so_by_status_and_doctor() {
    let Some(servers) = Replicated::start(1) else { return };
    let elector = Elector::start(config(&servers.primary.url(), 2)).await.unwrap();
    assert!(!elector.is_leader("default"));
    eventually("the status says how many there are", || {
        problems(&elector).contains("1 of the 2 replicas").then_some(())
    });
    let found = format!("{:?}", elector.doctor().await.unwrap());
    assert!(found.contains("1 replicas in step, and 2 have to confirm"), "{found}");
    elector.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_may_hold_until_its_deadline_and_give_its_lease_back_while_no_replica_answers() {
    let Some(servers) = Replicated::start(1) else { return };
    let config = config(&servers.primary.url(), 1).renewal_failure(RenewalFailure::HoldUntilDeadline);
    let elector = Elector::start(config).await.unwrap();
    assert!(elector.is_leader("default"), "{:?}", elector.status());
    servers.replicas[0].stop();
    eventually("a renewal has failed", || problems(&elector).contains("0 of the 1 replicas").then_some(()));
    assert!(elector.is_leader("default"), "its deadline is far away");
    assert!(elector.step_down("default").await.unwrap());
    assert!(!servers.primary.command::<bool>(&["EXISTS", "leader:default"]));
    elector.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_no_replica_knows_of_is_not_taken() {
    let Some(servers) = Replicated::start(1) else { return };
    let elector = Elector::start(config(&servers.primary.url(), 1).observe_only()).await.unwrap();
    elector.lock("account:7").acquire().await.unwrap().release().await.unwrap();
    servers.replicas[0].stop();
    let refused = elector.lock("account:7").acquire().await.map(drop).unwrap_err();
    assert!(matches!(refused, LockError::Store { .. }), "{refused:?}");
    assert!(refused.to_string().contains("0 of the 1 replicas"), "{refused}");
    servers.replicas[0].cont();
    // What was written of the first attempt is given back, or ends by itself.
    let guard = elector.lock("account:7").wait(Duration::from_secs(120)).acquire().await.unwrap();
    guard.release().await.unwrap();
    elector.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_done_counts_as_done_only_once_replicas_know() {
    let Some(servers) = Replicated::start(1) else { return };
    let elector = Elector::start(config(&servers.primary.url(), 1).observe_only()).await.unwrap();
    let runs = AtomicU32::new(0);
    let work = || async {
        runs.fetch_add(1, Ordering::Relaxed);
        if runs.load(Ordering::Relaxed) == 1 {
            servers.replicas[0].stop();
        }
        Ok::<_, LockError>(())
    };
    let once = || elector.once("migrate:3").ttl(Duration::from_secs(3));
    let unconfirmed = once().run(work).await.map(drop).unwrap_err();
    assert!(matches!(unconfirmed, LockError::Unconfirmed { .. }), "{unconfirmed:?}");
    assert!(unconfirmed.to_string().contains("0 of the 1 replicas"), "{unconfirmed}");
    servers.replicas[0].cont();
    // The server had noted it all the same, and did not fail since.
    assert!(matches!(once().run(work).await, Ok(Once::Done)));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    elector.shutdown(Duration::ZERO).await.unwrap();
}
