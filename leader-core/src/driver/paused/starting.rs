//! Stores that cannot be reached at first.

use super::*;
use wire::{Connecting, Wire};

#[test]
fn connecting_is_tried_within_retry_at_first_and_backs_off_up_to_a_ttl() {
    for seed in 0..20 {
        stage(seed, async |stage| {
            let store = Wire::new(stage.memory.clone());
            store.weather(|weather| weather.connecting = Connecting::Fails);
            let (elector, _driver) = stage.begin(store.clone(), as_it_is);
            store.connects(1).await;
            let mut last = stage.now();
            for (attempt, most) in [(2, 1), (3, 2), (4, 4), (5, 8), (6, 10), (7, 10), (8, 10)] {
                store.connects(attempt).await;
                let (wait, most) = (stage.now().saturating_since(last), SECOND * most);
                assert!(wait >= most / 2 && wait <= most + MS, "attempt {attempt} after {wait:?}, at most {most:?}");
                last = stage.now();
            }
            store.weather(|weather| weather.connecting = Connecting::Works);
            let mut events = elector.subscribe("default").unwrap();
            let ((), gap) = stage.timed(until_acquired(&mut events)).await;
            assert!(gap <= TTL, "{gap:?}");
        });
    }
}

#[test]
fn a_start_ends_by_its_time_out_however_the_store_fails_and_leads_when_it_is_back() {
    for (seed, connecting) in [(1, Connecting::Fails), (2, Connecting::Hangs)] {
        stage(seed, async |stage| {
            let store = Wire::new(stage.memory.clone());
            store.weather(|weather| weather.connecting = connecting);
            let ((), took) = stage.timed(async { drop(stage.start(store.clone(), as_it_is).await) }).await;
            assert_eq!(took, TTL, "the start time-out");
            let ((), took) = stage
                .timed(async {
                    let elector = stage.start(store.clone(), |config| config.start_timeout(SECOND)).await;
                    assert!(!elector.is_leader("default") && elector.ready().is_ok());
                    let mut events = elector.subscribe("default").unwrap();
                    tokio::time::sleep(TTL * 3).await;
                    store.weather(|weather| weather.connecting = Connecting::Works);
                    until_acquired(&mut events).await;
                })
                .await;
            assert!(took <= SECOND + TTL * 4 + RETRY * 2, "{took:?}");
        });
    }
}

#[test]
fn an_end_before_the_first_contact_takes_no_longer_than_a_call() {
    for (seed, connecting) in [(1, Connecting::Fails), (2, Connecting::Hangs)] {
        stage(seed, async |stage| {
            let store = Wire::new(stage.memory.clone());
            store.weather(|weather| weather.connecting = connecting);
            let elector = stage.start(store, |config| config.start_timeout(SECOND)).await;
            assert_eq!(elector.step_down("default").await, Ok(false));
            let (drained, took) = stage.timed(elector.drain(TTL * 3)).await;
            assert!(drained.is_ok() && took <= OPERATION_TIMEOUT, "{drained:?} after {took:?}");
            let (ended, took) = stage.timed(elector.shutdown(TTL * 3)).await;
            assert!(ended.is_ok() && took <= OPERATION_TIMEOUT, "{ended:?} after {took:?}");
        });
    }
}
