//! What a gate costs, against the bare reading of the clock and against a look-up by name.
//!
//! `cargo run --release -p leader-tests --bin gate-cost [-- --strict]`
//!
//! Everything is measured in turns within one process, many rounds, and the fastest round of each counts: what else runs on
//! the machine makes the numbers larger, hardly the ratios. `--strict` ends with 1 if a limit is missed.
#![allow(clippy::print_stdout, reason = "a command that people read")]

use std::collections::HashMap;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use leader_core::__private::{CallSite, Site};
use leader_core::{BootInstant, Config, Elector, leader_only};

const ROUNDS: usize = 60;
const CALLS: u32 = 20_000;
/// How much of a miss is the measurement's.
const NOISE: f64 = 1.03;

static LEADER: CallSite = CallSite::new("cleanup", site());
static FOLLOWER: CallSite = CallSite::new("reports", site());

const fn site() -> Site {
    Site { module: module_path!(), function: "gate", file: file!(), line: line!(), column: column!() }
}

#[leader_only(group = "cleanup")]
fn run_sync() -> Option<u32> {
    Some(black_box(1))
}

#[leader_only(group = "cleanup")]
async fn run_async() -> Option<u32> {
    Some(black_box(1))
}

#[leader_only(group = "reports")]
fn skip_sync() -> Option<u32> {
    Some(black_box(1))
}

#[leader_only(group = "reports")]
async fn skip_async() -> Option<u32> {
    Some(black_box(1))
}

/// For futures that are ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => unreachable!("an empty body never waits"),
    }
}

/// What the measuring itself costs: taken off from the others.
const LOOP: &str = "the loop alone";

/// What is measured, under its name.
type Subject<'a> = (&'static str, Box<dyn Fn(u32) + 'a>);

fn repeated<'a, T>(name: &'static str, call: impl Fn() -> T + 'a) -> Subject<'a> {
    let many = move |times| {
        for _ in 0..times {
            black_box(call());
        }
    };
    (name, Box::new(many))
}

/// Nanoseconds of one call of each, in its fastest round.
fn measure(subjects: &[Subject<'_>]) -> HashMap<&'static str, f64> {
    let mut fastest = HashMap::new();
    for _ in 0..ROUNDS {
        for (name, subject) in subjects {
            let begin = Instant::now();
            subject(CALLS);
            let took = begin.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS);
            let least = fastest.entry(*name).or_insert(took);
            *least = took.min(*least);
        }
    }
    fastest
}

fn subjects<'a>(elector: &'a Elector, by_name: &'a HashMap<String, &'static CallSite>) -> Vec<Subject<'a>> {
    vec![
        repeated(LOOP, || true),
        repeated("clock", BootInstant::now),
        repeated("leader", || LEADER.is_leader()),
        repeated("follower", || FOLLOWER.is_leader()),
        repeated("leader by map", || by_name.get(black_box("cleanup")).is_some_and(|site| site.is_leader())),
        repeated("follower by map", || by_name.get(black_box("reports")).is_some_and(|site| site.is_leader())),
        repeated("leader by is_leader", || elector.is_leader(black_box("cleanup"))),
        repeated("follower by is_leader", || elector.is_leader(black_box("reports"))),
        repeated("skipped fn", skip_sync),
        repeated("skipped async fn", || ready(skip_async())),
        repeated("run fn", run_sync),
        repeated("run async fn", || ready(run_async())),
    ]
}

/// What, the name of the measured, the name of what it is compared with, the limit.
type Limit = (&'static str, &'static str, &'static str, f64);

const OF_THE_GATE: &[Limit] = &[
    ("a leader's gate / the clock", "leader", "clock", 1.10),
    ("a follower's gate / the clock", "follower", "clock", 0.05),
];

/// These hold whatever exists in the process.
const OF_A_CALL_SITE: &[Limit] = &[
    ("a leader's gate at a call site / by a map of names", "leader", "leader by map", 0.6),
    ("a skipped function / the same by a map of names", "skipped fn", "follower by map", 0.6),
    ("a skipped async function / the same by a map of names", "skipped async fn", "follower by map", 0.6),
];

fn report(title: &str, subjects: &[Subject<'_>], limits: &[&[Limit]]) -> bool {
    let costs = measure(subjects);
    let cost = |name: &str| costs[name] - if name == LOOP { 0.0 } else { costs[LOOP] };
    println!("{title}");
    for (name, _) in subjects {
        println!("  {name:24}{:9.2} ns", cost(name));
    }
    let mut all = true;
    for (what, measured, compared, limit) in limits.iter().copied().flatten() {
        let ratio = cost(measured) / cost(compared);
        let ok = ratio <= limit * NOISE;
        all &= ok;
        println!("  {:8}{what}: {ratio:.3} (limit {limit})", if ok { "ok" } else { "missed" });
    }
    all
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let strict = std::env::args().any(|argument| argument == "--strict");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let config = Config::new("memory:").ttl(Duration::from_secs(3600)).observe(["reports"]);
    let elector = runtime.block_on(leader_core::bootstrap(config))?;
    if !LEADER.is_leader() || FOLLOWER.is_leader() || run_sync().is_none() || skip_sync().is_some() {
        return Err("the gates do not say what they should".into());
    }
    // As in a program with some groups.
    let names = ["default", "cleanup", "reports", "mails", "billing", "imports"];
    let by_name = names.map(|name| (name.to_owned(), if name == "reports" { &FOLLOWER } else { &LEADER })).into();
    let subjects = subjects(&elector, &by_name);
    let without = report("without a scope in the process", &subjects, &[OF_THE_GATE, OF_A_CALL_SITE]);
    let scope = elector.scope(async {});
    let with = report("with a scope somewhere in the process", &subjects, &[OF_A_CALL_SITE]);
    drop(scope);
    runtime.block_on(elector.shutdown(Duration::ZERO))?;
    Ok(if strict && !(without && with) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
