//! Many seeds on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Runs the seeds from `first` on, `count` of them, on `threads` threads, and adds up by `add` what came of them. `progress`
/// is told of the sum so far after each run; once it returns false, no further run begins.
///
/// # Panics
/// If a run does.
pub(crate) fn run_many<R: Default + Send>(
    (first, count): (u64, u64),
    threads: usize,
    run: impl Fn(u64) -> R + Sync,
    add: impl Fn(&mut R, &R) + Sync,
    progress: impl Fn(&R) -> bool + Sync,
) -> R {
    let next = AtomicU64::new(0);
    let sum = Mutex::new(R::default());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let outcome = run(first + index);
                    let mut sum = sum.lock().expect("no run panicked");
                    add(&mut sum, &outcome);
                    if !progress(&sum) {
                        next.store(count, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    sum.into_inner().expect("no run panicked")
}
