//! One instance in a process of its own, for the tests that need real processes.
//!
//! `node JSON`: the options as [`leader_tests::process::Options`]; then a command a line on standard input. It tells on
//! standard error, logs on standard output, and ends when its standard input closes.

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    leader_tests::process::run(std::env::args().skip(1))
}

#[cfg(not(unix))]
fn main() {
    // The store that processes share is for Unix alone.
}
