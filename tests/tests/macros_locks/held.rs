//! While the body runs the lock is held, and when the function has returned, or is gone, it is free.

use std::time::Duration;

use leader_core::{LockError, held_lock, with_lock};
use leader_tests::future::send;
use tokio::sync::oneshot;

use super::Error;
use super::stage::{Stage, within};

#[tokio::test]
async fn a_busy_lock_is_waited_for_as_long_as_it_says() {
    #[with_lock(key = "patient", wait = "1h")]
    async fn patient() -> Result<u8, Error> {
        Ok(1)
    }
    #[with_lock(key = "patient", wait = "1h")]
    fn patient_sync() -> Result<u8, Error> {
        Ok(2)
    }
    let stage = Stage::set().await;
    let guard = stage.elector.lock("patient").acquire().await.unwrap();
    let elector = stage.elector.clone();
    let waiting = tokio::spawn(async move { elector.scope(send(patient())).await });
    let elector = stage.elector.clone();
    let blocked = std::thread::spawn(move || {
        let _current = elector.enter();
        patient_sync()
    });
    within(async {
        while stage.elector.status().locks.waiting < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    guard.release().await.unwrap();
    assert_eq!(within(waiting).await.unwrap(), Ok(1));
    assert_eq!(within(tokio::task::spawn_blocking(|| blocked.join().unwrap())).await.unwrap(), Ok(2));
}

#[tokio::test]
async fn the_lock_is_free_when_the_function_returns() {
    #[with_lock(key = "released")]
    async fn fine() -> Result<u8, Error> {
        tokio::task::yield_now().await;
        Ok(1)
    }
    #[with_lock(key = "released")]
    async fn failing() -> Result<u8, Error> {
        Err(Error::Own("failed"))
    }
    #[with_lock(key = "released")]
    fn fine_sync() -> Result<u8, Error> {
        Ok(3)
    }
    let stage = Stage::set().await;
    stage
        .scope(async {
            assert_eq!(fine().await, Ok(1));
            stage.assert_free("released").await;
            assert_eq!(failing().await, Err(Error::Own("failed")));
            stage.assert_free("released").await;
            assert_eq!(fine_sync(), Ok(3));
            stage.assert_free("released").await;
        })
        .await;
}

#[tokio::test]
async fn a_panic_and_a_drop_give_the_lock_back() {
    #[with_lock(key = "gone")]
    async fn panics(now: bool) -> Result<(), Error> {
        assert!(!now, "as it should");
        std::future::pending().await
    }
    #[with_lock(key = "gone")]
    fn panics_sync() -> Result<(), Error> {
        panic!("as it should")
    }
    let stage = Stage::set().await;
    let elector = stage.elector.clone();
    assert!(tokio::spawn(async move { elector.scope(panics(true)).await }).await.unwrap_err().is_panic());
    stage.until_free("gone").await;
    let elector = stage.elector.clone();
    let thread = std::thread::spawn(move || {
        let _current = elector.enter();
        panics_sync()
    });
    assert!(thread.join().is_err());
    stage.until_free("gone").await;
    let elector = stage.elector.clone();
    let pending = tokio::spawn(async move { elector.scope(panics(false)).await });
    within(async {
        while stage.elector.status().locks.held == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    pending.abort();
    stage.until_free("gone").await;
}

#[tokio::test]
async fn a_body_that_outlives_its_ttl_is_renewed() {
    #[with_lock(key = "long", ttl = "9s")]
    async fn long(stage: &Stage) -> Result<u64, Error> {
        let lock = held_lock().expect("it is held");
        for _ in 0..10 {
            let before = lock.deadline();
            stage.advance(Duration::from_secs(3));
            within(async {
                while lock.deadline() == before {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        assert!(lock.is_held());
        Ok(lock.token().get())
    }
    let stage = Stage::set().await;
    assert!(stage.scope(long(&stage)).await.unwrap() > 0);
}

#[tokio::test]
async fn a_shutdown_whose_grace_is_over_cancels_the_body() {
    #[with_lock(key = "stopped")]
    async fn endless(begun: oneshot::Sender<()>) -> Result<(), Error> {
        begun.send(()).expect("somebody waits for it");
        std::future::pending().await
    }
    let stage = Stage::set().await;
    let elector = stage.elector.clone();
    let (begun, begins) = oneshot::channel();
    let work = tokio::spawn(async move { elector.scope(endless(begun)).await });
    within(begins).await.unwrap();
    within(stage.elector.shutdown(Duration::ZERO)).await.unwrap();
    let error = work.await.unwrap();
    assert!(matches!(error, Err(Error::Lock(LockError::Stopped { .. }))), "{error:?}");
}

#[tokio::test]
async fn work_under_a_lock_may_take_another_while_a_shutdown_waits_for_it() {
    #[with_lock(key = "outer")]
    async fn outer(stage: &Stage) -> Result<u8, Error> {
        let elector = stage.elector.clone();
        let shutdown = tokio::spawn(async move { elector.shutdown(Duration::from_secs(3600)).await });
        within(async {
            while stage.elector.ready().is_ok() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let elector = stage.elector.clone();
        let stranger = tokio::spawn(async move { elector.lock("inner").acquire().await });
        assert!(matches!(stranger.await.unwrap(), Err(LockError::Stopped { .. })));
        assert!(!shutdown.is_finished());
        inner().await
    }
    #[with_lock(key = "inner")]
    async fn inner() -> Result<u8, Error> {
        Ok(1)
    }
    let stage = Stage::set().await;
    assert_eq!(stage.scope(outer(&stage)).await, Ok(1));
}

/// A task that is at it for long is asked by its runtime to let others go on; whoever blocks its thread cannot.
#[test]
fn a_function_that_blocks_can_be_called_as_often_as_one_likes_in_one_step_of_a_task() {
    #[with_lock(key = "often")]
    fn often() -> Result<u8, Error> {
        Ok(1)
    }
    let (told, tells) = std::sync::mpsc::channel();
    let step = async move {
        let stage = Stage::set().await;
        let calls = async { (0..300).map(|_| often()).filter(Result::is_ok).count() };
        told.send(stage.elector.scope(calls).await).expect("somebody waits for it");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Of its own, so that it can be waited for in vain.
    std::thread::spawn(move || runtime.block_on(step));
    assert_eq!(tells.recv_timeout(Duration::from_secs(60)), Ok(300));
}
