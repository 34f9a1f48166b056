//! Many seeds.

use super::report::Report;
use super::settings::Settings;
use super::world::run;
use crate::many;

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
    many::run_many((first, count), threads, |seed| run(settings, seed, false).report, Report::add, progress)
}
