//! What the programs have in common that hurt real processes for as long as one likes: `lock-chaos`, `cron-chaos`, `soak`.
//!
//! - [`Program`]: the command line, from the arguments to the exit code. [`Report`]: what came of it, for people and as JSON.
//! - [`Agenda`]: what ends of itself, and when. [`seed`]: what chooses the faults in a test.
//! - [`member`]: how a process of theirs begins, and what it is told.

mod agenda;
pub mod member;
mod program;
mod report;

pub use agenda::Agenda;
pub use program::{NO_REDIS, Program, show};
pub use report::Report;

/// Of a test: another one with each run, unless `LEADER_TEST_SEED` names it.
///
/// # Panics
/// If that is no number.
#[must_use]
pub fn seed() -> u64 {
    let named = std::env::var("LEADER_TEST_SEED").ok();
    named.map_or_else(|| fastrand::u64(..1 << 32), |seed| seed.parse().expect("a number"))
}
