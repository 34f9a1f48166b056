//! Whatever reads bytes that others wrote, under any bytes: what has to hold is more than that nothing panics.
//!
//! Each property is a function of bytes. `tests/tests/foreign.rs` runs all of them on the corpus and on what a fixed seed makes
//! of it; the fuzz targets in `fuzz/` include this very folder, and look for more.

mod bytes;
mod course;
mod election;
mod environment;
mod history;
mod key;
mod program;
mod record;
mod replies;
mod schedule;
mod servers;
mod url;

/// A property, and the name of its fuzz target and of its folder in the corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All.
pub const TARGETS: [Target; 11] = [
    ("cron_schedule", schedule::property),
    ("environment", environment::property),
    ("history_line", history::property),
    ("job_record", record::property),
    ("lease_replies", election::property),
    ("lock_key", key::property),
    ("program_description", program::property),
    ("redis_answers", servers::property),
    ("script_replies", replies::property),
    ("store_url", url::property),
    ("tick_replies", course::property),
];

/// Runs the property of this name.
///
/// # Panics
/// If there is none, or if it does not hold.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, property) = target.unwrap_or_else(|| panic!("there is no property `{name}`"));
    property(bytes);
}

/// What people read is one line of it: no other program's text moves a cursor, or begins a line of a log.
fn assert_one_line(shown: &str) {
    assert!(!shown.contains(char::is_control), "{shown:?} is not one line");
}
