//! Everything at once, for hours: several real processes lead groups, run their jobs, take locks and do work once, while
//! processes are killed, stopped and restarted, and servers, connections and files are hurt.
//!
//! - [`settings`]: what a soak is to be like. [`cli`]: the command line.
//! - `plan`: which faults strike when, by the seed. `ground`, `servers`: the store, and what is done to it.
//!   `fleet`: the processes, and what they have written. `course`: all of it in time.
//! - [`member`]: what each process does: the jobs of `cron-chaos`, the tasks of `lock-chaos`, and looking whether it leads.
//! - `check`: what must never be. `report`: the figures. `history`: what is kept if something was found.
//!
//! Faults come in storms. In between all is mended, each process writes down all that came before an instant, and what came
//! before that instant is judged and forgotten, but for what a later line could contradict. So the memory of the checker does
//! not grow. What the limits in the README allow is counted apart, and only where a fact shows that it is such a case.

mod check;
pub mod cli;
mod course;
mod fleet;
mod ground;
mod history;
pub mod member;
pub mod plan;
mod report;
mod servers;
pub mod settings;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;

pub use check::Violation;
pub use report::Figures;
pub use settings::{Place, Settings, Variant};

use crate::command::NO_REDIS;

/// What one soak did, and what was found.
pub type Report = crate::command::Report<Figures, Violation>;

/// Runs it, until its time is over or `stop` is set. `program` is called with the word `member` and a member's options. If
/// something was found, the folder with its history stays.
///
/// # Errors
/// If it could not be run to its end; says why, and which folder has the history.
pub fn run(settings: &Settings, program: &Path, stop: &AtomicBool) -> Result<Report, String> {
    let keep = settings.keep.clone().unwrap_or_else(std::env::temp_dir);
    let unusable = |error: std::io::Error| format!("the folder {} cannot be used: {error}", keep.display());
    std::fs::create_dir_all(&keep).map_err(unusable)?;
    let name = format!("leader-soak-{}-", settings.seed);
    let folder = tempfile::Builder::new().prefix(&name).tempdir_in(&keep).map_err(unusable)?;
    // A server that does not start again panics, as in the tests.
    let done = catch_unwind(AssertUnwindSafe(|| course::run(settings, program, folder.path(), stop)));
    let done = done.unwrap_or_else(|panic| Err(said(&*panic)));
    match done {
        Ok(Some(report)) => {
            if !report.is_clean() {
                let _ = folder.keep();
            }
            Ok(report)
        }
        Ok(None) => Err(NO_REDIS.to_owned()),
        Err(error) => Err(format!("{error}\nthe history is in {}", folder.keep().display())),
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
