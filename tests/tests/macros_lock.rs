//! What becomes of the body of a function with `#[with_lock]`, and of its lock, when things go as they should not.

mod stage;

use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leader_core::store::LockCommand;
use leader_core::testing::Fault;
use leader_core::{HeldLock, LockError, held_lock, lock, with_lock};
use leader_tests::future::send;
use tokio::sync::oneshot;

use stage::{Stage, TTL, acquires, plug_pulled, renews, within};

#[derive(Debug, PartialEq)]
enum Error {
    Own(&'static str),
    Lock(LockError),
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

#[with_lock(key = "never")]
async fn never() -> Result<(), Error> {
    panic!("it ran without its lock")
}
#[with_lock(key = "never")]
fn never_sync() -> Result<(), Error> {
    panic!("it ran without its lock")
}
#[with_lock(key = "never", on_busy = "skip", lost = None)]
async fn skipped() -> Option<()> {
    panic!("it ran without its lock")
}
#[with_lock(key = key, on_busy = "skip", lost = ())]
fn skipped_sync(key: &str) {
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

// The lock is lost while the body runs: its renewals fail, and then its time is over.

/// Has the lock of the body lost, and lets it go on.
async fn lose(stage: &Stage) {
    let lock = held_lock().expect("it is held");
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), renews);
    stage.clock.advance(TTL);
    assert!(!lock.is_held());
}

#[with_lock(key = "lost")]
async fn cancelled(stage: &Stage, ran: &AtomicU32) -> Result<(), Error> {
    lose(stage).await;
    // The step that is under way goes on, the next one never comes.
    ran.fetch_add(1, SeqCst);
    tokio::task::yield_now().await;
    panic!("a step without the lock");
}
#[with_lock(key = "lost")]
async fn ended_before_it_was_seen(stage: &Stage) -> Result<(), Error> {
    lose(stage).await;
    Ok(())
}
#[with_lock(key = "lost")]
async fn failed_before_it_was_seen(stage: &Stage) -> Result<(), Error> {
    lose(stage).await;
    Err(Error::Own("failed"))
}
#[with_lock(key = "lost", on_loss = "finish")]
async fn finished(stage: &Stage, ran: &AtomicU32) -> Result<(), Error> {
    lose(stage).await;
    tokio::task::yield_now().await;
    ran.fetch_add(1, SeqCst);
    Ok(())
}
#[with_lock(key = "lost", on_loss = "finish", on_busy = "skip", skipped = "skipped", lost = "lost")]
async fn finished_with_a_value(stage: &Stage) -> &'static str {
    lose(stage).await;
    tokio::task::yield_now().await;
    "ended"
}
#[with_lock(key = "lost", on_busy = "skip", skipped = 1, lost = length(text).await)]
async fn cancelled_with_a_value(stage: &Stage, text: &str) -> usize {
    lose(stage).await;
    tokio::task::yield_now().await;
    panic!("a step without the lock");
}
async fn length(text: &str) -> usize {
    tokio::task::yield_now().await;
    text.len()
}
#[with_lock(key = "lost", on_busy = "skip")]
async fn skipped_if_busy(stage: &Stage) -> Result<(), Error> {
    lose(stage).await;
    tokio::task::yield_now().await;
    panic!("a step without the lock");
}
#[with_lock(key = "lost")]
fn sync(stage: &Stage, ran: &AtomicU32) -> Result<u8, Error> {
    stage.store.inject_for_locks(Fault::Fail(plug_pulled()), renews);
    stage.clock.advance(TTL);
    ran.fetch_add(1, SeqCst);
    Ok(1)
}
#[with_lock(key = "lost", on_busy = "skip", lost = ())]
fn sync_unit(stage: &Stage, ran: &AtomicU32) {
    stage.clock.advance(TTL);
    ran.fetch_add(1, SeqCst);
}

fn is_lost<T: std::fmt::Debug>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Lock(LockError::Lost { key, .. })) if key.as_str() == "lost")
}

#[tokio::test]
async fn a_body_whose_lock_is_lost_is_cancelled_and_says_so() {
    let stage = Stage::set().await;
    let ran = AtomicU32::new(0);
    let error = stage.scope(send(cancelled(&stage, &ran))).await;
    assert!(is_lost(&error), "{error:?}");
    assert_eq!(ran.load(SeqCst), 1);
    let stage = Stage::set().await;
    assert_eq!(stage.scope(cancelled_with_a_value(&stage, "abc")).await, 3);
    let stage = Stage::set().await;
    let error = stage.scope(skipped_if_busy(&stage)).await;
    assert!(is_lost(&error), "busy is skipped, and lost is not: {error:?}");
}

#[tokio::test]
async fn a_lost_lock_is_never_a_success() {
    let stage = Stage::set().await;
    let error = stage.scope(ended_before_it_was_seen(&stage)).await;
    assert!(is_lost(&error), "{error:?}");
    let stage = Stage::set().await;
    let error = stage.scope(failed_before_it_was_seen(&stage)).await;
    assert_eq!(error, Err(Error::Own("failed")), "the body's own error says more");
}

#[tokio::test]
async fn work_that_finishes_comes_to_its_end_and_says_so_all_the_same() {
    let ran = AtomicU32::new(0);
    let stage = Stage::set().await;
    let error = stage.scope(send(finished(&stage, &ran))).await;
    assert!(is_lost(&error), "{error:?}");
    let stage = Stage::set().await;
    assert_eq!(stage.scope(finished_with_a_value(&stage)).await, "lost");
    let stage = Stage::set().await;
    stage.scope(async { assert!(is_lost(&sync(&stage, &ran))) }).await;
    let stage = Stage::set().await;
    stage.scope(async { sync_unit(&stage, &ran) }).await;
    assert_eq!(ran.load(SeqCst), 3);
}

#[tokio::test]
async fn not_a_step_begins_after_the_lock_was_lost() {
    #[with_lock(key = "lost")]
    async fn steps() -> Result<(), Error> {
        std::future::poll_fn(|_| {
            assert!(held_lock().is_some_and(|lock| lock.is_held()), "a step without the lock");
            Poll::Pending
        })
        .await
    }
    let stage = Stage::set().await;
    let mut future = pin!(stage.elector.scope(steps()));
    // Polled by hand: nobody else tells it that something has changed.
    let mut poll = || future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    within(async {
        while stage.elector.status().locks.held == 0 {
            assert!(poll().is_pending());
            tokio::task::yield_now().await;
        }
    })
    .await;
    stage.clock.advance(TTL);
    within(async {
        loop {
            if let Poll::Ready(error) = poll() {
                return assert!(is_lost(&error), "{error:?}");
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
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

#[tokio::test]
async fn an_inner_lock_is_never_taken_for_the_outer_one() {
    /// Its own lock is free, and it would be skipped if it were not.
    #[with_lock(key = "outer", on_busy = "skip", skipped = Ok("skipped"), lost = Ok("lost"))]
    async fn outer(stage: &Stage, lose_it: bool) -> Result<&'static str, LockError> {
        if lose_it {
            return inner_lost(stage, held_lock().expect("it is held")).await.map(|()| "ran");
        }
        // Busy.
        lock("inner").run(async |_| "ran").await
    }
    #[with_lock(key = "inner-lost")]
    async fn inner_lost(stage: &Stage, outer: HeldLock) -> Result<(), LockError> {
        let lock = held_lock().expect("it is held");
        let of_inner = |command: &LockCommand| command.key.as_str() == "inner-lost";
        stage.store.inject_for_locks(Fault::FailCommands(plug_pulled()), of_inner);
        for _ in 0..2 {
            let before = outer.deadline();
            stage.advance(TTL / 2);
            within(async {
                while outer.deadline() == before {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        assert!(outer.is_held() && !lock.is_held());
        Ok(())
    }
    let stage = Stage::set().await;
    let guard = stage.elector.lock("inner").acquire().await.unwrap();
    let error = stage.scope(outer(&stage, false)).await.unwrap_err();
    assert!(matches!(&error, LockError::Busy { key, .. } if key.as_str() == "inner"), "{error}");
    drop(guard);
    let error = stage.scope(outer(&stage, true)).await.unwrap_err();
    assert!(matches!(&error, LockError::Lost { key, .. } if key.as_str() == "inner-lost"), "{error}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics meanwhile").write(text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_no_caller_sees_is_logged() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false);
    let writer = log.clone();
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    // Of this thread: all that is called here runs on it.
    let _logs = tracing::subscriber::set_default(subscriber);
    let told = |level: &str, text: &str| {
        let log = String::from_utf8(std::mem::take(&mut *log.0.lock().unwrap())).unwrap();
        let line = log.lines().find(|line| line.contains("leader: macros_lock::"));
        let line = line.unwrap_or_else(|| panic!("no line: {log}"));
        assert!(line.contains(level) && line.contains(text), "{line}");
    };
    assert_eq!(skipped().await, None);
    told("WARN", "macros_lock::skipped (");
    let stage = Stage::set().await;
    let guard = stage.elector.lock("never").acquire().await.unwrap();
    stage.scope(async { skipped_sync("never") }).await;
    told("DEBUG", "was skipped: the lock `never` is busy");
    drop(guard);
    stage.scope(cancelled_with_a_value(&stage, "abc")).await;
    told("WARN", "and was cancelled: the lock `lost`");
    let stage = Stage::set().await;
    stage.scope(finished_with_a_value(&stage)).await;
    told("WARN", "though it came to its end: the lock `lost`");
}
