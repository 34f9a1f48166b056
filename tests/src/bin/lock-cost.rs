//! What a lock costs: taken and given back uncontended, and handed over to one who waits; beside the round trips that it
//! must make, and beside other crates.
//!
//! `cargo run --release -p leader-tests --features peers --bin lock-cost [-- --strict]`
//!
//! It starts a Redis server of its own. Everything is measured in turns within one process, in many rounds, and compared
//! with the bare round trips of the same round: what else runs on the machine makes the numbers larger, hardly the ratios.
//! `--strict` ends with 1 if the limit is missed.
#![allow(clippy::print_stdout, reason = "a command that people read")]

#[cfg(target_os = "linux")]
fn main() -> Result<std::process::ExitCode, Box<dyn std::error::Error>> {
    leader_tests::cost::run(std::env::args().any(|argument| argument == "--strict"))
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("servers are started on Linux alone");
}
