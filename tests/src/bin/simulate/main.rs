//! Simulates fleets by the hour; see `--help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

mod ticks;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use leader_core::{Reclaim, RenewalFailure};
use leader_tests::model::{search, searches};
use leader_tests::script::compare::first_difference;
use leader_tests::script::ledger;
use leader_tests::sim::faults::FaultSet;
use leader_tests::sim::{Report, Settings, StoreKind, Variant, run, run_many};
use lexopt::prelude::*;

const HELP: &str = "\
Simulates fleets that elect a leader, with everything that can go wrong between them and a store, and checks that
no two instances ever believe to lead at one time, and that terms only rise. One seed is one run of 0.05 hours.

cargo run --release -p leader-tests --bin simulate -- [OPTIONS]

  --hours H          simulated hours (default 10)
  --seed S           the first seed (default 1); a failing seed alone: --seed S --hours 0.05
  --drift-ppm N      clocks run up to N ppm too fast or too slow, with a guard set for it (default 500)
  --store KIND       what plays the store: model (of its rules; fast, the default), or script (the Redis store's own)
  --instances N      instances (default 3)
  --observers N      how many of them only observe (default 0)
  --ttl MS[,MS…]     ttl of the first, second, … instance, in milliseconds (default 1000)
  --fault-gap X      mean time between faults, in ttls (default 3)
  --loss P           share of messages lost (default 0.01)
  --hold             a failed renewal holds until the deadline (default: demotes at once)
  --after-deadline   a restarted instance believes only after its older lease (default: at once)
  --replicas N       the store has so many replicas, one of which takes the place of a primary now and then (default 0)
  --wait N           a lease counts once so many replicas have it (default 0); with fewer than all of them, no fault makes two
                     servers take writes at one time, unless --two-primaries is given
  --two-primaries    also faults by which two servers take writes at one time, though not all replicas are waited for: two
                     instances may then lead
  --twins            the first two instances have one id, and both live (safe with --after-deadline only)
  --variant NAME     breaks a rule on purpose, and stops at the first seed that shows it; one of
                     deadline-from-reply, wall-clock, no-guard, no-deadline, renew-by-value, late-reply,
                     no-quarantine, one-quarantine, forget-older, no-until, no-wait, run-id-only, no-quarantine-promoted
  --ticks            jobs instead of leases; see --ticks --help
  --all              leases, jobs and locks at one time, by a store that has replicas; see --all --help
  --exhaustive       no simulation, but every interleaving of two instances within bounds, one scenario after another
  --compare N        no simulation, but the Redis store's scripts, for leases and for the ledger, beside the model of their
                     rules, in N courses of events by chance, from the first seed on
  --patience S       ends each exhaustive search after so many seconds (default 120)
  --jobs N           threads (default: all)
  --json             the report as JSON
  -h, --help         this text

Exit code: 0 if all is well, 1 on an overlap or a term that repeats or falls, 2 on wrong arguments.";

struct Arguments {
    settings: Settings,
    seed: u64,
    hours: f64,
    jobs: usize,
    json: bool,
    exhaustive: bool,
    compare: Option<u64>,
    patience: u64,
}

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--ticks" || argument == "--all") {
        return ticks::main();
    }
    let arguments = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("simulate: {error}; see --help");
            return ExitCode::from(2);
        }
    };
    match arguments.compare {
        Some(courses) => compare(arguments.seed, courses),
        None if arguments.exhaustive => search_all(&arguments),
        None => simulate(&arguments),
    }
}

fn arguments() -> Result<Option<Arguments>, lexopt::Error> {
    let mut settings = Settings::default();
    let mut arguments = lexopt::Parser::from_env();
    let (mut seed, mut hours, mut jobs, mut json) = (1, 10.0, 0, false);
    let (mut drift, mut variant) = (500, None);
    let (mut exhaustive, mut patience, mut compare) = (false, 120, None);
    let (mut replicas, mut wait, mut two_primaries) = (0, 0, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("hours") => hours = arguments.value()?.parse()?,
            Long("seed") => seed = arguments.value()?.parse()?,
            Long("drift-ppm") => drift = arguments.value()?.parse()?,
            Long("store") => settings.store = arguments.value()?.parse_with(store_named)?,
            Long("instances") => settings.instances = arguments.value()?.parse()?,
            Long("observers") => settings.observers = arguments.value()?.parse()?,
            Long("ttl") => settings.ttls = arguments.value()?.parse_with(ttls)?,
            Long("fault-gap") => settings.fault_gap = arguments.value()?.parse()?,
            Long("loss") => settings.loss = arguments.value()?.parse()?,
            Long("hold") => settings.renewal_failure = RenewalFailure::HoldUntilDeadline,
            Long("after-deadline") => settings.reclaim = Reclaim::AfterDeadline,
            Long("replicas") => replicas = arguments.value()?.parse()?,
            Long("wait") => wait = arguments.value()?.parse()?,
            Long("two-primaries") => two_primaries = true,
            Long("twins") => settings.twins = true,
            Long("variant") => variant = Some(arguments.value()?.parse_with(variant_named)?),
            Long("jobs") => jobs = arguments.value()?.parse()?,
            Long("json") => json = true,
            Long("exhaustive") => exhaustive = true,
            Long("compare") => compare = Some(arguments.value()?.parse()?),
            Long("patience") => patience = arguments.value()?.parse()?,
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    if drift > 200_000 {
        return Err("--drift-ppm: at most 200000, or the guard leaves no time to renew in".into());
    }
    if settings.instances == 0 || settings.observers > settings.instances {
        return Err("--instances: at least 1, and no fewer than --observers".into());
    }
    if settings.twins && settings.instances < 2 {
        return Err("--twins: needs two instances".into());
    }
    if !(hours > 0.0 && settings.fault_gap > 0.0 && (0.0..1.0).contains(&settings.loss)) {
        return Err("--hours and --fault-gap: more than 0; --loss: at least 0, less than 1".into());
    }
    settings = settings.drifting(drift);
    if wait > replicas || replicas > 8 || two_primaries && replicas == 0 {
        return Err("--replicas: at most 8; --wait: at most as many; --two-primaries: needs some".into());
    }
    if replicas > 0 {
        settings = settings.replicated(replicas, wait);
    }
    if two_primaries {
        settings.faults = FaultSet::two_primaries();
    }
    if let Some(variant) = variant {
        settings = settings.broken(variant);
    }
    let jobs = if jobs > 0 { jobs } else { std::thread::available_parallelism().map_or(1, usize::from) };
    Ok(Some(Arguments { settings, seed, hours, jobs, json, exhaustive, compare, patience }))
}

fn ttls(text: &str) -> Result<Vec<Duration>, String> {
    let one = |part: &str| match part.parse::<u64>() {
        Ok(ms @ 100..=3_600_000) => Ok(Duration::from_millis(ms)),
        _ => Err(format!("`{part}` is not a ttl between 100 and 3600000 ms")),
    };
    text.split(',').map(one).collect()
}

fn store_named(name: &str) -> Result<StoreKind, String> {
    match name {
        "model" => Ok(StoreKind::Model),
        "script" => Ok(StoreKind::Script),
        _ => Err(format!("`{name}` is neither model nor script")),
    }
}

fn variant_named(name: &str) -> Result<Variant, String> {
    let names: Vec<_> = Variant::ALL.iter().map(|(_, name)| *name).collect();
    Variant::named(name).ok_or_else(|| format!("`{name}` is none of {}", names.join(", ")))
}

fn simulate(arguments: &Arguments) -> ExitCode {
    let Arguments { settings, seed, hours, jobs, json, .. } = arguments;
    let runs = (hours * 3600.0 / settings.run.as_secs_f64()).ceil().max(1.0) as u64;
    let begun = Instant::now();
    let told = Mutex::new(begun);
    let report = run_many(settings, *seed, runs, *jobs, |sum| {
        tell_progress(sum, runs, begun, &told);
        settings.variant.is_none() || sum.is_clean()
    });
    let wall = begun.elapsed().as_secs_f64();
    if *json {
        let mut value = serde_json::to_value(&report).expect("a report is a map");
        value["first_seed"] = (*seed).into();
        value["wall_seconds"] = wall.into();
        println!("{value:#}");
    } else {
        println!("first seed       {seed}\n{report}\nwall time        {wall:.1} s");
    }
    if report.is_clean() {
        return ExitCode::SUCCESS;
    }
    explain(settings, &report);
    ExitCode::FAILURE
}

/// The scripts beside the model.
fn compare(seed: u64, courses: u64) -> ExitCode {
    let seeds = || seed..seed + courses;
    let mut code = ExitCode::SUCCESS;
    let leases = |seeds| first_difference(seeds, None, None);
    let ticks = |seeds| ledger::first_difference(seeds, None);
    for (what, compare) in [("leases", &leases as &dyn Fn(_) -> _), ("ledger", &ticks)] {
        let begun = Instant::now();
        let (difference, answers) = compare(seeds());
        for (name, count) in &answers {
            println!("{count:10}  {name}");
        }
        println!("{:10}  commands ({what}), {:.1} s", answers.values().sum::<u64>(), begun.elapsed().as_secs_f64());
        if let Some(difference) = difference {
            println!("\n{difference}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// The large exhaustive searches.
fn search_all(arguments: &Arguments) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (name, bounds) in searches(true) {
        let verdict = search(bounds, arguments.jobs, Duration::from_secs(arguments.patience));
        let end = if verdict.complete { "all of them" } else { "not all" };
        println!("{name}: {} states, {end}, depth {}, {:.1?}", verdict.states, verdict.depth, verdict.took);
        if let Some((promise, steps)) = verdict.broken {
            println!("  broken: {promise}, by {}", steps.join("; "));
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// On a terminal or in a long run, a line now and then.
fn tell_progress(sum: &Report, runs: u64, begun: Instant, told: &Mutex<Instant>) {
    let every = Duration::from_secs(if std::io::stderr().is_terminal() { 2 } else { 60 });
    let mut told = told.lock().expect("no run panicked");
    if told.elapsed() >= every {
        *told = Instant::now();
        let speed = sum.hours() / begun.elapsed().as_secs_f64();
        eprintln!(
            "{} of {runs} seeds, {:.1} h, {speed:.0} h/s, {} overlaps, {} bad terms",
            sum.runs,
            sum.hours(),
            sum.overlaps,
            sum.bad_terms
        );
    }
}

fn explain(settings: &Settings, report: &Report) {
    let Some((seed, what)) = &report.failure else { return };
    eprintln!("\nseed {seed} {what}; what led to it (seconds of true time, instance, candidate):");
    for line in run(settings, *seed, true).trace {
        eprintln!("  {line}");
    }
    let others: Vec<_> = std::env::args().skip(1).collect();
    let mut kept = Vec::new();
    let mut rest = others.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seed" | "--hours" | "--jobs" => _ = rest.next(),
            "--json" => {}
            a if ["--seed=", "--hours=", "--jobs="].iter().any(|p| a.starts_with(p)) => {}
            a => kept.push(a),
        }
    }
    kept.extend(["--hours", "0.05", "--seed"]);
    eprintln!("again: cargo run --release -p leader-tests --bin simulate -- {} {seed}", kept.join(" "));
}
