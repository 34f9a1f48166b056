//! What jobs cost, and how late their runs begin, beside tokio-cron-scheduler; the program `cron-cost`.
//!
//! The same crowd of jobs, each due each second, is run for a while by one subject after the other, each in a process of its
//! own, round after round. `subject`: who runs them. `tally`: what their bodies write down. `table` prints it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command that people read")]

mod subject;
mod table;
mod tally;

use std::error::Error;
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

pub use self::subject::Subject;
use self::table::Table;
pub use self::tally::Figures;
use crate::redis::RedisServer;

/// One subject's turn: what a child is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Turn {
    /// Who runs the jobs.
    pub subject: Subject,
    /// How many, each of them due each second.
    pub jobs: usize,
    /// For so many seconds.
    pub seconds: u32,
    /// The store of those that need one.
    pub store: String,
}

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many jobs.
    pub crowds: Vec<usize>,
    /// How often each has its turn.
    pub rounds: usize,
    /// How long a turn is.
    pub seconds: u32,
    /// The exit code says whether the goals are met.
    pub strict: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { crowds: vec![1, 1_000, 10_000], rounds: 1, seconds: 20, strict: false }
    }
}

/// Measures, and prints.
///
/// # Errors
/// If a server or a child cannot be started.
pub fn run(settings: &Settings) -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let redis = RedisServer::start(&[]);
    let subjects: Vec<_> =
        Subject::ALL.into_iter().filter(|subject| *subject != Subject::Redis || redis.is_some()).collect();
    let mut ok = true;
    for jobs in &settings.crowds {
        let mut table = Table::default();
        for round in 0..settings.rounds {
            for subject in &subjects {
                let store = match (subject, &redis) {
                    (Subject::Redis, Some(redis)) => redis.url(),
                    (Subject::Sqlite, _) => format!("sqlite://{}/{jobs}-{round}.db", folder.path().display()),
                    _ => "memory:".to_owned(),
                };
                let turn = Turn { subject: *subject, jobs: *jobs, seconds: settings.seconds, store };
                table.add(*subject, child(&turn)?);
            }
        }
        ok &= table.print(*jobs, settings.seconds, settings.rounds);
    }
    Ok(if settings.strict && !ok { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One turn, in a process of its own.
fn child(turn: &Turn) -> Result<Figures, Box<dyn Error>> {
    let mut program = Command::new(std::env::current_exe()?);
    program.arg("turn").arg(serde_json::to_string(turn)?).stderr(Stdio::inherit()).stdin(Stdio::null());
    let told = program.output()?;
    if !told.status.success() {
        return Err(format!("{:?} with {} jobs: {}", turn.subject, turn.jobs, told.status).into());
    }
    Ok(serde_json::from_slice(&told.stdout)?)
}

/// What a child does.
///
/// # Errors
/// If its jobs cannot be started.
pub fn turn(json: &str) -> Result<(), Box<dyn Error>> {
    let turn: Turn = serde_json::from_str(json)?;
    println!("{}", serde_json::to_string(&subject::measure(&turn)?)?);
    Ok(())
}
