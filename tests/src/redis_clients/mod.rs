//! The clients for Redis beside each other; the program `redis-clients`.
//!
//! `caller` is who calls a store all the time; `faults` are what happens to its servers meanwhile; `renewal` is what one costs
//! that nothing happens to; `weight` is what a build carries.
#![allow(clippy::print_stdout, reason = "a command that people read")]

mod caller;
mod faults;
mod renewal;
mod weight;

use std::error::Error;
use std::time::Duration;

use leader_core::RedisClient;

/// What is compared, in the order of the columns.
const CLIENTS: [RedisClient; 2] = [RedisClient::Fred, RedisClient::RedisRs];

/// What is measured how often.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How often each fault of a single server happens.
    pub rounds: usize,
    /// The same of faults that take several servers.
    pub fleets: usize,
    /// leader-core is built with each client alone.
    pub build: bool,
}

/// Measures and prints.
///
/// # Errors
/// If a server or a store cannot be started.
pub fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    println!("{:38} {:>24} {:>24}", "", CLIENTS[0].to_string(), CLIENTS[1].to_string());
    for (fault, rounds) in faults::all(plan) {
        let mut seen = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (seen, one) in seen.iter_mut().zip(fault.happen()?) {
                seen.push(one);
            }
        }
        let of = |seen: &[caller::Seen]| {
            let back = median(seen.iter().map(|seen| seen.back).collect());
            let most = seen.iter().map(|seen| seen.back).max().unwrap_or_default();
            let failed: usize = seen.iter().map(|seen| seen.failed).sum();
            let executed: usize = seen.iter().map(|seen| seen.executed).sum();
            [format!("{:.0} ms (at most {:.0})", ms(back), ms(most)), format!("{executed} of {failed}")]
        };
        let [one, other] = seen.each_ref().map(|seen| of(seen));
        println!("{:38} {:>24} {:>24}", fault.name(), one[0], other[0]);
        println!("{:38} {:>24} {:>24}", "  failed, and executed all the same", one[1], other[1]);
    }
    for groups in [1, 100] {
        let [one, other] = renewal::measure(groups)?;
        let name = format!("renewal of {groups}, a round trip");
        let shown = |cost: Duration| format!("{:.1} µs", cost.as_secs_f64() * 1e6);
        println!(
            "{name:38} {:>24} {:>24}   ratio {:.2}",
            shown(one.time),
            shown(other.time),
            ratio(other.time, one.time)
        );
        let name = "  CPU time of the client".to_owned();
        println!("{name:38} {:>24} {:>24}   ratio {:.2}", shown(one.cpu), shown(other.cpu), ratio(other.cpu, one.cpu));
    }
    let [one, other] = [weight::crates(CLIENTS[0])?, weight::crates(CLIENTS[1])?];
    println!("{:38} {one:>24} {other:>24}", "crates, by that client alone");
    if plan.build {
        let [one, other] = [weight::build(CLIENTS[0])?, weight::build(CLIENTS[1])?];
        let shown = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        println!(
            "{:38} {:>24} {:>24}   ratio {:.2}",
            "build from nothing, user time",
            shown(one),
            shown(other),
            ratio(other, one)
        );
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
