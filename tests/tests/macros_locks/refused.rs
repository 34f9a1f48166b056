//! Where a function does not get its lock, its body does not run.

use std::time::Duration;

use leader_core::testing::Fault;
use leader_core::{LockError, with_lock};

use super::Error;
use super::stage::{Stage, acquires, plug_pulled};

#[with_lock(key = "never")]
async fn never() -> Result<(), Error> {
    panic!("it ran without its lock")
}
#[with_lock(key = "never")]
fn never_sync() -> Result<(), Error> {
    panic!("it ran without its lock")
}
#[with_lock(key = "never", on_busy = "skip", lost = None)]
pub(super) async fn skipped() -> Option<()> {
    panic!("it ran without its lock")
}
#[with_lock(key = key, on_busy = "skip", lost = ())]
pub(super) fn skipped_sync(key: &str) {
    panic!("it ran without its lock")
}
#[with_lock(key = "{key}")]
async fn named(key: &str) -> Result<(), Error> {
    panic!("it ran without its lock")
}
#[with_lock(key = "never", ttl = ttl)]
async fn lasting(ttl: Duration) -> Result<(), Error> {
    panic!("it ran without its lock")
}

#[tokio::test]
async fn without_an_elector_nothing_runs() {
    for error in [never().await, never_sync()] {
        assert!(matches!(error, Err(Error::Lock(LockError::NotStarted { .. }))), "{error:?}");
    }
    assert_eq!(skipped().await, None);
    skipped_sync("never");
}

#[tokio::test]
async fn while_the_store_is_down_nothing_runs() {
    let stage = Stage::set().await;
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), acquires);
    stage
        .scope(async {
            for error in [never().await, never_sync()] {
                assert!(matches!(error, Err(Error::Lock(LockError::Store { .. }))), "{error:?}");
            }
            assert_eq!(skipped().await, None);
            skipped_sync("never");
        })
        .await;
}

#[tokio::test]
async fn with_a_key_or_a_ttl_that_is_none_nothing_runs() {
    let stage = Stage::set().await;
    stage
        .scope(async {
            for key in ["", "a\nb", &"x".repeat(513)] {
                let error = named(key).await;
                assert!(matches!(error, Err(Error::Lock(LockError::InvalidKey(_)))), "{error:?}");
                skipped_sync(key);
            }
            let error = lasting(Duration::from_millis(99)).await;
            assert!(matches!(error, Err(Error::Lock(LockError::InvalidTtl { .. }))), "{error:?}");
        })
        .await;
    assert_eq!(stage.store.lock_calls(), 0);
}

#[tokio::test]
async fn after_the_end_of_the_elector_nothing_runs() {
    let stage = Stage::set().await;
    stage.elector.shutdown(Duration::ZERO).await.unwrap();
    let error = stage.scope(never()).await;
    assert!(matches!(error, Err(Error::Lock(LockError::Stopped { .. }))), "{error:?}");
}
