//! `simulate --ticks`: jobs instead of leases.

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use leader_tests::ticks::faults::FaultSet;
use leader_tests::ticks::{Report, Settings, Variant, run, run_many};
use lexopt::prelude::*;

pub(super) const HELP: &str = "\
Simulates fleets that run jobs, with everything that can go wrong between them and a store, and checks that every tick
ran as its job says: none lost, doubled, early, overlapping or out of order. One seed is one run of 0.25 hours.

cargo run --release -p leader-tests --bin simulate -- --ticks [OPTIONS]
cargo run --release -p leader-tests --bin simulate -- --all [OPTIONS]

With --all instead of --ticks everything is on at one time: three to five instances elect leaders, run jobs and take locks;
the store has one or two replicas, which all have to have a lease before it counts; primaries die, come back, are cut off with
their leaders, hand over and flap, beside all other faults but one, because a limit is stated for it: nobody sets the servers'
clocks. No two may lead, terms may only rise, no two may hold a lock that the server has not lost, tokens rise, and nobody
waits for ever.

  --hours H          simulated hours (default 10: about 100,000 expected ticks)
  --seed S           the first seed (default 1); a failing seed alone: --seed S --hours 0.25
  --instances N      instances (default 3)
  --locks            instances also take locks
  --replicas N       the store has up to so many replicas, one at least, and all of them have to have a lease
  --fault-gap S      mean time between faults, in seconds (default 8)
  --variant NAME     breaks a rule on purpose, and stops at the first seed that shows it; one of
                     no-nonce, no-not-after, no-give-back, two-claims, slot-not-kept, slot-not-looked-at, own-clock,
                     early-is-run, vouch-always, never-floor, debts-once, lock-by-value, lock-no-deadline, no-wait,
                     claims-do-not-wait
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
    let told = Mutex::new(begun);
    let report = run_many(&settings, seed, runs, jobs, |sum| {
        tell_progress(sum, runs, begun, &told);
        settings.variant.is_none() || sum.is_clean()
    });
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

/// In a long run, a line now and then.
fn tell_progress(sum: &Report, runs: u64, begun: Instant, told: &Mutex<Instant>) {
    let mut told = told.lock().expect("no run panicked");
    if told.elapsed() >= Duration::from_secs(60) {
        *told = Instant::now();
        let (hours, wrong) = (sum.hours(), sum.wrong());
        let speed = hours / begun.elapsed().as_secs_f64();
        eprintln!("{} of {runs} seeds, {hours:.1} h, {speed:.1} h/s, {wrong} wrong", sum.runs);
    }
}

fn arguments() -> Result<Option<Arguments>, lexopt::Error> {
    let all = std::env::args().any(|argument| argument == "--all");
    let mut settings = if all { Settings::everything() } else { Settings::default() };
    let mut arguments = lexopt::Parser::from_env();
    let (mut seed, mut hours, mut jobs, mut json, mut trace) = (1, 10.0, 0, false, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("ticks" | "all") => {}
            Long("locks") => settings.locks = true,
            Long("replicas") => {
                settings.replicas = arguments.value()?.parse()?;
                settings.faults = FaultSet::everything();
            }
            Long("hours") => hours = arguments.value()?.parse()?,
            Long("seed") => seed = arguments.value()?.parse()?,
            Long("instances") => (settings.instances, settings.more_instances) = (arguments.value()?.parse()?, 0),
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
