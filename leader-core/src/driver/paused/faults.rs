//! One elector, and calls that hang, fail, or are answered late.

use super::*;
use crate::store::{Command, Op};
use crate::testing::Fault;
use crate::{LossReason, RenewalFailure};

fn holding(config: Config) -> Config {
    config.renewal_failure(RenewalFailure::HoldUntilDeadline)
}

fn is_renew(command: &Command) -> bool {
    matches!(command.op, Op::Renew { .. })
}

#[test]
fn a_view_is_over_by_itself_at_its_deadline_while_calls_hang() {
    stage(1, async |stage| {
        let store = stage.faulty();
        let elector = stage.start(store.clone(), holding).await;
        let lease = elector.lease("default").unwrap();
        let mut events = elector.subscribe("default").unwrap();
        store.inject(Fault::LoseRequest);
        let deadline = lease.deadline();
        assert_eq!(deadline, stage.now().saturating_add(TTL - GUARD), "it counts from the request");
        stage.clock.sleep_until(deadline.saturating_sub(MS)).await;
        assert!(elector.is_leader("default") && lease.is_held() && lease.deadline() == deadline);
        assert_eq!(until_lost(&mut events).await, LossReason::Expired);
        assert!(stage.is_just_after(deadline));
        assert!(!elector.is_leader("default") && !lease.is_held() && elector.lease("default").is_none());
    });
}

#[test]
fn a_view_is_over_by_itself_at_its_deadline_without_a_driver() {
    stage(2, async |stage| {
        let (elector, driver) = stage.begin(stage.memory.clone(), as_it_is);
        stage.started(&elector).await;
        let lease = elector.lease("default").unwrap();
        driver.abort();
        stage.clock.sleep_until(lease.deadline().saturating_sub(MS)).await;
        assert!(elector.is_leader("default") && lease.is_held());
        tokio::time::sleep(MS).await;
        assert!(!elector.is_leader("default") && !lease.is_held() && elector.lease("default").is_none());
        stage.clock.sleep_until(lease.deadline().saturating_add(TTL + MS)).await;
        assert!(elector.live().is_err(), "it is told that nobody ends the view");
    });
}

#[test]
fn a_renewal_that_hangs_demotes_one_operation_time_out_after_it_was_sent() {
    stage(3, async |stage| {
        let store = stage.faulty();
        let elector = stage.start(store.clone(), as_it_is).await;
        let mut events = elector.subscribe("default").unwrap();
        let term = elector.lease("default").unwrap().term();
        store.inject_times(1, Fault::LoseRequest);
        store.called(2).await;
        let sent = stage.now();
        assert_eq!(until_lost(&mut events).await, LossReason::RenewalFailed);
        assert!(stage.is_just_after(sent.saturating_add(OPERATION_TIMEOUT)));
        assert!(!elector.is_leader("default"));
        // The first retry takes the own lease back, under a new term.
        let ((), gap) = stage.timed(until_acquired(&mut events)).await;
        assert!(gap <= RETRY + MS, "{gap:?}");
        assert!(elector.lease("default").unwrap().term() > term);
    });
}

#[test]
fn an_answer_that_comes_after_its_time_out_extends_nothing() {
    stage(4, async |stage| {
        let store = stage.faulty();
        let elector = stage.start(store.clone(), holding).await;
        let lease = elector.lease("default").unwrap();
        let deadline = lease.deadline();
        store.inject(Fault::DelayReply(OPERATION_TIMEOUT + MS));
        let mut events = elector.subscribe("default").unwrap();
        assert_eq!(until_lost(&mut events).await, LossReason::Expired);
        assert!(stage.is_just_after(deadline), "though each renew was executed");
        assert!(store.calls() >= 3, "{}", store.calls());
    });
}

#[test]
fn an_answer_that_comes_after_the_deadline_revives_no_view() {
    let mut crossed = 0;
    for seed in 0..40 {
        stage(seed, async |stage| {
            let store = stage.faulty();
            let slow = |config: Config| holding(config).heartbeat(SECOND * 85 / 10).retry(SECOND * 2);
            let elector = stage.start(store.clone(), slow).await;
            let lease = elector.lease("default").unwrap();
            let (deadline, term) = (lease.deadline(), lease.term());
            let mut events = elector.subscribe("default").unwrap();
            store.inject_times(1, Fault::Fail(unplugged()));
            store.called(2).await;
            store.inject(Fault::DelayReply(OPERATION_TIMEOUT - MS));
            store.called(3).await;
            let answered = stage.now().saturating_add(OPERATION_TIMEOUT - MS);
            if answered < deadline || stage.now() >= deadline {
                return;
            }
            crossed += 1;
            assert_eq!(until_lost(&mut events).await, LossReason::Expired);
            assert!(stage.is_just_after(deadline));
            stage.clock.sleep_until(answered).await;
            assert!(!elector.is_leader("default") && !lease.is_held());
            let ((), gap) = stage.timed(until_acquired(&mut events)).await;
            assert!(gap <= OPERATION_TIMEOUT, "it asks again at once: {gap:?}");
            assert!(elector.lease("default").unwrap().term() > term && !lease.is_held());
        });
    }
    assert!(crossed >= 5, "{crossed} answers came after the deadline");
}

#[test]
fn a_burst_of_failures_is_lived_through_until_the_deadline() {
    for seed in 0..20 {
        stage(seed, async |stage| {
            let store = stage.faulty();
            let elector = stage.start(store.clone(), holding).await;
            let lease = elector.lease("default").unwrap();
            let mut faults = [Fault::Fail(unplugged()), Fault::LoseRequest, Fault::LoseReply];
            fastrand::shuffle(&mut faults);
            // The last of them ends by 3.33 + 1 + 1 + 1 s, and the next attempt comes within 2 s.
            faults.into_iter().take(2).for_each(|fault| store.inject_times(1, fault));
            for _ in 0..600 {
                tokio::time::sleep(MS * 50).await;
                assert!(lease.is_held() && elector.is_leader("default"));
            }
            assert_eq!(elector.lease("default").unwrap().term(), lease.term());
        });
    }
}

#[test]
fn an_acquisition_whose_answer_is_lost_is_taken_back_within_a_retry() {
    stage(5, async |stage| {
        let store = stage.faulty();
        store.inject_times(1, Fault::LoseReply);
        let (elector, _driver) = stage.begin(store.clone(), as_it_is);
        let mut events = elector.subscribe("default").unwrap();
        let ((), gap) = stage.timed(until_acquired(&mut events)).await;
        assert!(gap >= OPERATION_TIMEOUT && gap <= OPERATION_TIMEOUT + RETRY, "{gap:?}");
        assert!(store.calls() == 2, "{}", store.calls());
    });
}

#[test]
fn retries_back_off_less_while_the_lease_can_be_no_other_ones() {
    for seed in 0..20 {
        stage(seed, async |stage| {
            let store = stage.faulty();
            let _elector = stage.start(store.clone(), as_it_is).await;
            let led = stage.now();
            store.inject_when(Fault::Fail(unplugged()), |command| !matches!(command.op, Op::Inspect));
            store.called(2).await;
            let mut attempt = 2;
            loop {
                let last = stage.now();
                attempt += 1;
                store.called(attempt).await;
                let wait = stage.now().saturating_since(last);
                // The last wait that begins within it.
                let gone = last.saturating_since(led);
                if gone >= TTL - RETRY {
                    break;
                }
                assert!(wait <= RETRY.max((TTL - gone) / 4) + MS, "attempt {attempt} after {wait:?}");
            }
            assert!(attempt >= 7, "{attempt} attempts");
        });
    }
}

#[test]
fn retries_come_within_retry_at_first_and_back_off_up_to_a_ttl() {
    for seed in 0..20 {
        stage(seed, async |stage| {
            let store = stage.faulty();
            store.inject_when(Fault::Fail(unplugged()), |command| !matches!(command.op, Op::Inspect));
            let (elector, _driver) = stage.begin(store.clone(), as_it_is);
            store.called(1).await;
            let mut last = stage.now();
            for (attempt, most) in [(2, 1), (3, 2), (4, 4), (5, 8), (6, 10), (7, 10), (8, 10)] {
                store.called(attempt).await;
                let wait = stage.now().saturating_since(last);
                let most = SECOND * most;
                assert!(wait >= most / 2 && wait <= most + MS, "attempt {attempt} after {wait:?}, at most {most:?}");
                last = stage.now();
            }
            // One answer, and it begins anew.
            let mut events = elector.subscribe("default").unwrap();
            store.heal();
            until_acquired(&mut events).await;
            store.inject_when(Fault::Fail(unplugged()), is_renew);
            until_lost(&mut events).await;
            let ((), gap) = stage.timed(until_acquired(&mut events)).await;
            assert!(gap <= RETRY + MS, "{gap:?}");
        });
    }
}
