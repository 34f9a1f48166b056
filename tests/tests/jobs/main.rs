//! Jobs of real processes over time: away for days, new versions, broken records, wall clocks that are set.
//!
//! A process is one *life* of the program: it tells each run of its jobs. Between two lives time passes without waiting for it.
//! No assertion needs a machine that is quick: what is expected is computed from what ran.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]
#![allow(clippy::print_stdout, reason = "the figures are part of the result")]

mod away;
mod clock_steps;
mod doctor;
mod lives;
mod records;
mod rolling_update;

use leader_tests::process::JobRun;

/// Each tick up to the last run was run, or counted as missed by the one after it; none ran twice. `base`: the last tick
/// before. How many were missed.
#[track_caller]
fn assert_accounted(job: &str, period: i64, mut base: i64, runs: &[JobRun]) -> u64 {
    for run in runs {
        let missed = i64::try_from(run.missed).unwrap();
        // No more are counted at a time.
        let counted = if missed < 10_000 { base + period * (missed + 1) == run.tick } else { run.tick > base };
        assert!(counted, "{job}: after {base} came {run:?}; all: {runs:?}");
        base = run.tick;
    }
    runs.iter().map(|run| run.missed).sum()
}
