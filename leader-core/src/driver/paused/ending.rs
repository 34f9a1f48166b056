//! Leases that are given back while the store is away, and who leads then.

use super::*;
use crate::DrainError;
use crate::store::{Command, Op};
use crate::testing::Fault;

/// How the store is away.
fn away() -> [Fault; 3] {
    [Fault::Fail(unplugged()), Fault::LoseRequest, Fault::DelayReply(OPERATION_TIMEOUT * 2)]
}

fn is_release(command: &Command) -> bool {
    matches!(command.op, Op::Release { .. })
}

fn unconfirmed<T: std::fmt::Debug>(outcome: &Result<T, DrainError>) -> bool {
    matches!(outcome, Err(DrainError::Unconfirmed { .. }))
}

#[test]
fn a_step_down_while_the_store_is_away_ends_the_view_at_once_and_says_that_nothing_was_confirmed() {
    for (seed, fault) in (0..).zip(away()) {
        stage(seed, async |stage| {
            let store = stage.faulty();
            let elector = stage.start(store.clone(), as_it_is).await;
            let lease = elector.lease("default").unwrap();
            let other = stage.start(stage.memory.clone(), as_it_is).await;
            let mut events = other.subscribe("default").unwrap();
            store.inject(fault);
            let (asked, begun) = (elector.step_down("default"), stage.now());
            let lost = async {
                lease.lost().await;
                assert!(!elector.is_leader("default") && stage.now() == begun);
            };
            let ((outcome, took), ()) = tokio::join!(stage.timed(asked), lost);
            assert!(unconfirmed(&outcome) && took <= OPERATION_TIMEOUT, "{outcome:?} after {took:?}");
            // At the latest when the lease has run out.
            let ((), gap) = stage.timed(until_acquired(&mut events)).await;
            assert!(took + gap <= TTL + OPERATION_TIMEOUT && other.is_leader("default"), "{gap:?}");
        });
    }
}

#[test]
fn a_release_whose_answer_is_lost_hands_over_at_once() {
    stage(1, async |stage| {
        let store = stage.faulty();
        let elector = stage.start(store.clone(), as_it_is).await;
        let other = stage.start(stage.memory.clone(), as_it_is).await;
        let mut events = other.subscribe("default").unwrap();
        store.inject_when(Fault::LoseReply, is_release);
        let begun = stage.now();
        let ((outcome, took), ()) = tokio::join!(stage.timed(elector.step_down("default")), async {
            until_acquired(&mut events).await;
            assert_eq!(stage.now(), begun);
        });
        assert!(unconfirmed(&outcome) && took == OPERATION_TIMEOUT, "{outcome:?} after {took:?}");
        assert!(other.is_leader("default") && !elector.is_leader("default"));
    });
}

#[test]
fn a_release_that_nobody_hears_of_hands_over_when_the_lease_would_have_ended() {
    stage(2, async |stage| {
        let store = stage.faulty();
        let elector = stage.start(store.clone(), as_it_is).await;
        store.lose_announcements();
        let other = stage.start(store.clone(), as_it_is).await;
        let mut events = other.subscribe("default").unwrap();
        assert_eq!(elector.step_down("default").await, Ok(true));
        let ((), gap) = stage.timed(until_acquired(&mut events)).await;
        assert!(gap > OPERATION_TIMEOUT && gap <= TTL + SECOND, "{gap:?}");
    });
}

#[test]
fn a_drain_while_the_store_is_away_stays_out_and_a_resume_leads_when_it_is_back() {
    for (seed, fault) in (0..).zip(away()) {
        stage(seed, async |stage| {
            let store = stage.faulty();
            let elector = stage.start(store.clone(), as_it_is).await;
            store.inject(fault);
            let (outcome, took) = stage.timed(elector.drain(TTL * 3)).await;
            assert!(unconfirmed(&outcome) && took <= OPERATION_TIMEOUT, "{outcome:?} after {took:?}");
            store.heal();
            let calls = store.calls();
            tokio::time::sleep(TTL * 3).await;
            assert!(!elector.is_leader("default") && store.calls() == calls, "it asks for nothing");
            let mut events = elector.subscribe("default").unwrap();
            elector.resume();
            let ((), gap) = stage.timed(until_acquired(&mut events)).await;
            assert_eq!(gap, Duration::ZERO);
        });
    }
}

#[test]
fn a_drain_that_meets_a_call_in_flight_gives_back_what_that_call_may_have_won() {
    for (seed, fault) in [(1, Fault::LoseReply), (2, Fault::DelayReply(OPERATION_TIMEOUT / 2))] {
        stage(seed, async |stage| {
            let store = stage.faulty();
            store.inject_times(1, fault);
            let (elector, _driver) = stage.begin(store.clone(), as_it_is);
            store.called(1).await;
            let other = stage.start(stage.memory.clone(), as_it_is).await;
            assert!(!other.is_leader("default"), "the first has the seat, and does not know");
            let mut events = other.subscribe("default").unwrap();
            let (ended, took) = stage.timed(elector.shutdown(TTL)).await;
            assert!(ended.is_ok() && took <= OPERATION_TIMEOUT * 2, "{ended:?} after {took:?}");
            assert!(!elector.is_leader("default"));
            let ((), gap) = stage.timed(until_acquired(&mut events)).await;
            assert_eq!(gap, Duration::ZERO);
        });
    }
}

#[test]
fn a_shutdown_while_the_store_is_away_ends_and_the_lease_runs_out() {
    for (seed, fault) in (0..).zip(away()) {
        stage(seed, async |stage| {
            let store = stage.faulty();
            let (elector, driver) = stage.begin(store.clone(), as_it_is);
            stage.started(&elector).await;
            let other = stage.start(stage.memory.clone(), as_it_is).await;
            let mut events = other.subscribe("default").unwrap();
            store.inject(fault);
            let (outcome, took) = stage.timed(elector.shutdown(TTL * 3)).await;
            assert!(unconfirmed(&outcome) && took <= OPERATION_TIMEOUT, "{outcome:?} after {took:?}");
            assert!(!elector.is_leader("default"));
            driver.await.unwrap();
            let ((), gap) = stage.timed(until_acquired(&mut events)).await;
            assert!(took + gap <= TTL + OPERATION_TIMEOUT, "{gap:?}");
        });
    }
}

#[test]
fn work_that_outlives_the_end_of_an_elector_keeps_its_lease_to_the_deadline_and_nobody_else_leads_before() {
    stage(3, async |stage| {
        let store = stage.faulty();
        let (elector, driver) = stage.begin(store.clone(), as_it_is);
        stage.started(&elector).await;
        let other = stage.start(stage.memory.clone(), as_it_is).await;
        let mut events = other.subscribe("default").unwrap();
        let worker = elector.clone();
        let (told, lease) = tokio::sync::oneshot::channel();
        let work = tokio::spawn(async move {
            let job = async |lease: crate::Lease| {
                told.send(lease.clone()).unwrap();
                std::future::pending::<()>().await;
            };
            worker.run_if_leader("default", job).await
        });
        let lease = lease.await.unwrap();
        store.inject(Fault::LoseRequest);
        let (outcome, took) = stage.timed(elector.shutdown(SECOND)).await;
        assert!(matches!(outcome, Err(DrainError::StillRunning { .. })), "{outcome:?}");
        assert!(took <= SECOND + OPERATION_TIMEOUT && !elector.is_leader("default"), "{took:?}");
        let deadline = lease.deadline();
        assert!(lease.is_held() && !other.is_leader("default"));
        until_acquired(&mut events).await;
        assert!(stage.now() > deadline && !lease.is_held());
        driver.await.unwrap();
        work.abort();
    });
}
