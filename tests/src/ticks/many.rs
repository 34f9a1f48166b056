//! Many seeds on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::report::Report;
use super::settings::Settings;
use super::world::run;

/// Runs the seeds from `first` on, `count` of them, on `threads` threads, and adds up what came of them. `progress` is
/// told of the sum so far after each run; once it returns false, no further run begins.
///
/// # Panics
/// If a run does.
pub fn run_many(
    settings: &Settings,
    first: u64,
    count: u64,
    threads: usize,
    progress: impl Fn(&Report) -> bool + Sync,
) -> Report {
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Report::default());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let outcome = run(settings, first + index, None);
                    let mut sum = sum.lock().expect("no run panicked");
                    sum.add(&outcome.report);
                    if !progress(&sum) {
                        next.store(count, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    sum.into_inner().expect("no run panicked")
}
