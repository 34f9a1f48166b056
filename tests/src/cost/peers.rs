//! Other crates.

use std::error::Error;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use redlock::RedLock;
use rslock::LockManager;
use tokio::runtime::Builder;

use super::hand_over::SETTLE;

const TTL: Duration = Duration::from_secs(60);
const TTL_MS: usize = 60_000;

/// A SET and a script.
pub(super) fn rslock(url: &str) -> Result<impl FnMut() + 'static, Box<dyn Error>> {
    let manager = LockManager::new(vec![url]);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(move || {
        runtime.block_on(async {
            let lock = manager.lock("peer:rslock", TTL).await.expect("nobody else wants it");
            lock.release().await;
        });
    })
}

/// The same over two connections that are opened for it.
pub(super) fn redlock(url: &str) -> impl FnMut() + 'static {
    let locks = RedLock::new(vec![url]);
    move || {
        let lock = locks.lock(b"peer:redlock", TTL_MS).expect("the server answers").expect("nobody else wants it");
        locks.unlock(&lock);
    }
}

pub(super) fn rslock_hand_over(url: &str) -> impl FnMut() -> Duration + 'static {
    let runtime = || Builder::new_current_thread().enable_all().build().expect("there are threads");
    let (holds, waits) = (LockManager::new(vec![url]), LockManager::new(vec![url]));
    let (own, others) = (runtime(), runtime());
    let take = |manager: &LockManager, runtime: &tokio::runtime::Runtime| {
        runtime.block_on(manager.acquire("peer:rslock", TTL)).expect("it is given back")
    };
    hand_over(
        move || {
            let guard = take(&waits, &others);
            let had = Instant::now();
            others.block_on(guard.release());
            had
        },
        move |begin| {
            let guard = take(&holds, &own);
            begin();
            let released = Instant::now();
            own.block_on(guard.release());
            released
        },
    )
}

pub(super) fn redlock_hand_over(url: &str) -> impl FnMut() -> Duration + 'static {
    let (holds, waits) = (RedLock::new(vec![url]), RedLock::new(vec![url]));
    hand_over(
        move || {
            let guard = waits.acquire(b"peer:redlock", TTL_MS).expect("it is given back");
            let had = Instant::now();
            drop(guard);
            had
        },
        move |begin| {
            let guard = holds.acquire(b"peer:redlock", TTL_MS).expect("it is given back");
            begin();
            let released = Instant::now();
            drop(guard);
            released
        },
    )
}

/// `wait` takes the lock, says when it had it, and gives it back; `hold` takes it, has the other one begin to wait, gives it
/// back and says when it began to.
fn hand_over(
    wait: impl Fn() -> Instant + Send + 'static,
    hold: impl Fn(&dyn Fn()) -> Instant + 'static,
) -> impl FnMut() -> Duration + 'static {
    let (begin, begun) = channel::<()>();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        while begun.recv().is_ok() {
            // Nobody hears it at the end.
            let _ = tell.send(wait());
        }
    });
    move || {
        let released = hold(&|| {
            begin.send(()).expect("the thread lives as long as this");
            std::thread::sleep(SETTLE);
        });
        told.recv().expect("it takes the lock").saturating_duration_since(released)
    }
}
