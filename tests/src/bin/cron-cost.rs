//! How late jobs run, how many of their ticks, and what that costs; beside tokio-cron-scheduler, in turns.
//!
//! `cargo run --release -p leader-tests --features peers --bin cron-cost [-- --jobs N]... [--rounds N] [--seconds N] [--strict]`
//!
//! It starts a Redis server of its own, and each turn is a process of its own. `--jobs` may be given several times; without it
//! there are 1, 1,000 and 10,000. `--strict` ends with 1 if a goal is missed.
#![allow(clippy::print_stdout, reason = "a command that people read")]

#[cfg(all(target_os = "linux", feature = "peers"))]
fn main() -> Result<std::process::ExitCode, Box<dyn std::error::Error>> {
    use leader_tests::cron_cost::{Settings, run, turn};
    use lexopt::prelude::*;

    let mut arguments = lexopt::Parser::from_env();
    let (mut settings, mut crowds) = (Settings::default(), Vec::new());
    while let Some(argument) = arguments.next()? {
        match argument {
            Value(word) if word == "turn" => {
                turn(&arguments.value()?.string()?)?;
                return Ok(std::process::ExitCode::SUCCESS);
            }
            Long("jobs") => crowds.push(arguments.value()?.parse()?),
            Long("rounds") => settings.rounds = arguments.value()?.parse()?,
            Long("seconds") => settings.seconds = arguments.value()?.parse()?,
            Long("strict") => settings.strict = true,
            other => return Err(other.unexpected().into()),
        }
    }
    if !crowds.is_empty() {
        settings.crowds = crowds;
    }
    run(&settings)
}

#[cfg(not(all(target_os = "linux", feature = "peers")))]
fn main() {
    println!("on Linux, with --features peers: what jobs cost is measured beside tokio-cron-scheduler");
}
