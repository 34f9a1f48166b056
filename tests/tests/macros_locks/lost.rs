//! A lock that is lost while the body runs: the body is cancelled or comes to its end, and the function says so.

use std::fmt::Debug;
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use leader_core::__private::Site;
use leader_core::store::LockCommand;
use leader_core::testing::Fault;
use leader_core::{HeldLock, LockError, held_lock, lock, with_lock};
use leader_tests::future::send;

use super::Error;
use super::refused::{skipped, skipped_sync};
use super::stage::{Stage, TTL, plug_pulled, renews, within};

fn is_lost<T: Debug>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Lock(LockError::Lost { key, .. })) if key.as_str() == "lost")
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

/// The lock is had, and nobody polls the function for longer than it lasts.
#[tokio::test]
async fn a_body_does_not_begin_if_its_lock_was_lost_before() {
    #[with_lock(key = "lost", on_loss = "finish")]
    async fn finishes() -> Result<(), Error> {
        panic!("it ran without its lock")
    }
    let stage = Stage::set().await;
    let mut future = pin!(stage.elector.scope(finishes()));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    within(async {
        while stage.elector.status().locks.held == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    stage.clock.advance(TTL);
    let error = within(future).await;
    assert!(is_lost(&error), "{error:?}");
    // What a function that is not async calls.
    static SITE: Site = Site { module: "", function: "", file: "", line: 0, column: 0 };
    let stage = Stage::set().await;
    let holding = stage.scope(async { leader_core::__private::with_lock("lost", &SITE).take().await }).await.unwrap();
    stage.clock.advance(TTL);
    let done: Option<()> = holding.run_sync(|| panic!("it ran without its lock"));
    assert!(done.is_none() && holding.end(done).await.is_err());
}

/// What comes before the first await is work, too.
#[tokio::test]
async fn a_closure_is_not_called_if_its_lock_was_lost_before() {
    let stage = Stage::set().await;
    let mut future =
        pin!(stage.elector.lock("lost").run(|_| -> std::future::Ready<()> { panic!("it ran without its lock") }));
    let mut once = pin!(
        stage
            .elector
            .once("lost")
            .run(|| -> std::future::Ready<Result<(), LockError>> { panic!("it ran without its claim") })
    );
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(once.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    within(async {
        while stage.elector.status().locks.held < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    stage.clock.advance(TTL);
    assert!(within(future).await.is_err_and(|error| error.is_lost()));
    assert!(within(once).await.is_err_and(|error| error.is_lost()));
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
        let line = log.lines().find(|line| line.contains("leader: macros_locks::"));
        let line = line.unwrap_or_else(|| panic!("no line: {log}"));
        assert!(line.contains(level) && line.contains(text), "{line}");
    };
    assert_eq!(skipped().await, None);
    told("WARN", "macros_locks::refused::skipped (");
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
