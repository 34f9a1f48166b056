//! The clients for Redis beside each other: how soon each is back after a fault, what of its failed calls was executed all the
//! same, what a renewal costs, and what a build has to carry.
//!
//! `cargo run --release -p leader-tests --bin redis-clients [-- --rounds N] [--fleets N] [--build]`
//!
//! It starts the servers itself. Both clients go through the same faults at the same time, each on a thread of its own, and
//! renewals are measured in turns: what else runs on the machine makes the numbers larger, hardly the ratios. `--rounds` is how
//! often each fault of a single server happens, `--fleets` how often those of sentinels and of a cluster do; `--build` builds
//! leader-core with each client alone, from nothing.
#![allow(clippy::print_stdout, reason = "a command that people read")]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use leader_tests::redis_clients::{Plan, run};
    use lexopt::ValueExt;

    let mut plan = Plan { rounds: 10, fleets: 3, build: false };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("rounds") => plan.rounds = arguments.value()?.parse()?,
            lexopt::Arg::Long("fleets") => plan.fleets = arguments.value()?.parse()?,
            lexopt::Arg::Long("build") => plan.build = true,
            other => return Err(other.unexpected().into()),
        }
    }
    run(&plan)
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("servers are started on Linux alone");
}
