//! `simulate --ticks`: jobs instead of leases.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use leader_tests::ticks::{Settings, Variant, run, run_many};
use lexopt::prelude::*;

pub(super) const HELP: &str = "\
Simulates fleets that run jobs, with everything that can go wrong between them and a store, and checks that every tick
ran as its job says: none lost, doubled, early, overlapping or out of order. One seed is one run of 0.25 hours.

cargo run --release -p leader-tests --bin simulate -- --ticks [OPTIONS]

  --hours H          simulated hours (default 10: about 100,000 expected ticks)
  --seed S           the first seed (default 1); a failing seed alone: --seed S --hours 0.25
  --instances N      instances (default 3)
  --fault-gap S      mean time between faults, in seconds (default 8)
  --variant NAME     breaks a rule on purpose, and stops at the first seed that shows it; one of
                     no-nonce, no-not-after, no-give-back, two-claims, slot-not-kept, slot-not-looked-at, own-clock,
                     early-is-run, vouch-always, never-floor, debts-once
  --trace WORD[,WORD…]
                     prints what the first seed does, those lines that hold one of these words
  --jobs N           threads (default: all)
  --json             the report as JSON
  -h, --help         this text

Exit code: 0 if all is well, 1 if a tick is not, 2 on wrong arguments.";

struct Arguments {
    settings: Settings,
    seed: u64,
    hours: f64,
    jobs: usize,
    json: bool,
    trace: Option<Vec<String>>,
}

pub(super) fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("simulate --ticks: {error}; see --ticks --help");
            return ExitCode::from(2);
        }
    };
    let Arguments { settings, seed, hours, jobs, json, trace } = arguments;
    if let Some(words) = trace {
        let outcome = run(&settings, seed, Some(&words));
        for line in &outcome.trace {
            println!("{line}");
        }
        println!("{:?}", outcome.report.failure);
        return if outcome.report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let runs = (hours * 3600.0 / settings.run.as_secs_f64()).ceil().max(1.0) as u64;
    let begun = Instant::now();
    let report = run_many(&settings, seed, runs, jobs, |sum| settings.variant.is_none() || sum.is_clean());
    let wall = begun.elapsed().as_secs_f64();
    if json {
        let mut value = serde_json::to_value(&report).expect("a report is a map");
        value["first_seed"] = seed.into();
        value["wall_seconds"] = wall.into();
        println!("{value:#}");
    } else {
        println!("{:<38} {seed}\n{report}{:<38} {wall:.1} s", "first seed", "wall time");
    }
    if let Some((seed, what)) = &report.failure {
        eprintln!("\nseed {seed}: {what}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn arguments() -> Result<Option<Arguments>, lexopt::Error> {
    let mut settings = Settings::default();
    let mut arguments = lexopt::Parser::from_env();
    let (mut seed, mut hours, mut jobs, mut json, mut trace) = (1, 10.0, 0, false, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("ticks") => {}
            Long("hours") => hours = arguments.value()?.parse()?,
            Long("seed") => seed = arguments.value()?.parse()?,
            Long("instances") => settings.instances = arguments.value()?.parse()?,
            Long("fault-gap") => settings.fault_gap = Duration::from_secs_f64(arguments.value()?.parse()?),
            Long("variant") => settings = settings.broken(arguments.value()?.parse_with(variant_named)?),
            Long("trace") => {
                let words = arguments.value()?.string()?;
                trace = Some(words.split(',').map(str::to_owned).collect());
            }
            Long("jobs") => jobs = arguments.value()?.parse()?,
            Long("json") => json = true,
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    if settings.instances == 0 || hours <= 0.0 || settings.fault_gap.is_zero() {
        return Err("--instances: at least 1; --hours and --fault-gap: more than 0".into());
    }
    let jobs = if jobs > 0 { jobs } else { std::thread::available_parallelism().map_or(1, usize::from) };
    Ok(Some(Arguments { settings, seed, hours, jobs, json, trace }))
}

fn variant_named(name: &str) -> Result<Variant, String> {
    let names: Vec<_> = Variant::ALL.iter().map(|(_, name)| *name).collect();
    Variant::named(name).ok_or_else(|| format!("`{name}` is none of {}", names.join(", ")))
}
