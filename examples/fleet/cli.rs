//! What the command line asks for.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;

/// How it is used.
pub const HELP: &str = "\
Starts a fleet of real processes that elect a leader for each of two groups, takes the leaders away in three ways,
and proves from the instances' own logs that never two led at once.

Usage: cargo run --example fleet -- [OPTIONS]

  --store URL      where the leases live, such as redis://127.0.0.1 (default: a fresh SQLite file);
                   keys in Redis begin with leader-fleet:, or what LEADER_PREFIX says
  --instances N    how many processes, 1 to 50 (default: 3)
  --seconds S      how long to watch them (default: 20)
  --ttl D          how long a lease lasts, such as 500ms or 3s (default: 3s)
  --calm           no faults
  --rounds N       instead of a time: kill, stall and drain N leaders each, and print how long the hand-overs took
  --json           print the report as one JSON object on stdout, and what happens on stderr
  --log DIR        keep the instances' logs in this folder, which must be empty or new
  --help           this text

It exits with 0 if never two led at once and each tick ran once, with 1 otherwise, with 2 if the command line is
wrong, with 3 if the fleet could not be run, and with 130 if it was interrupted.
";

/// The first argument of a process that is to be an instance; the parent gives it, not people.
pub const INSTANCE: &str = "--as-instance";

/// The variable in which the parent tells an instance the store.
pub const STORE: &str = "LEADER_STORE";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Fleet(Options),
    Instance(InstanceOptions),
}

/// What the fleet is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `None`: a fresh SQLite file.
    pub store: Option<String>,
    pub instances: usize,
    pub ttl: Duration,
    pub course: Course,
    pub json: bool,
    /// `None`: a folder that vanishes at the end.
    pub log: Option<PathBuf>,
}

/// How long it goes on, and which faults are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Each fault once, unless calm.
    Timed { time: Duration, calm: bool },
    /// Each fault so many times.
    Rounds(usize),
}

/// What one instance is told by its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceOptions {
    pub store: String,
    pub ttl: Duration,
    pub log: PathBuf,
}

/// Why the command line cannot be followed, and what would do.
#[derive(Debug)]
pub struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; --help shows what is possible", self.0)
    }
}

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> Self {
        Self(error.to_string())
    }
}

/// Reads the arguments, without the program's name.
pub fn parse(arguments: lexopt::Parser) -> Result<Command, UsageError> {
    let mut arguments = arguments;
    let (mut store, mut log, mut seconds, mut rounds) = (None, None, None, None);
    let (mut instances, mut ttl) = (3, Duration::from_secs(3));
    let (mut calm, mut json, mut as_instance) = (false, false, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("store") => store = Some(arguments.value()?.string()?),
            Long("instances") => instances = whole(&mut arguments, "--instances", 1, 50)?,
            Long("seconds") => seconds = Some(whole(&mut arguments, "--seconds", 3, 86_400)?),
            Long("rounds") => rounds = Some(whole(&mut arguments, "--rounds", 1, 1_000)?),
            Long("ttl") => ttl = duration(&mut arguments)?,
            Long("calm") => calm = true,
            Long("json") => json = true,
            Long("log") => log = Some(PathBuf::from(arguments.value()?)),
            Long("as-instance") => as_instance = true,
            other => return Err(other.unexpected().into()),
        }
    }
    if as_instance {
        let missing = || UsageError(format!("{INSTANCE} needs {STORE} and --log"));
        let (store, log) = (store.or_else(|| std::env::var(STORE).ok()).ok_or_else(missing)?, log.ok_or_else(missing)?);
        return Ok(Command::Instance(InstanceOptions { store, ttl, log }));
    }
    if store.as_ref().is_some_and(|url| url.starts_with("memory:")) {
        return Err(UsageError(
            "processes cannot share --store memory:, so each would lead; name another one".to_owned(),
        ));
    }
    let course = course(seconds, rounds, calm, ttl)?;
    Ok(Command::Fleet(Options { store, instances, ttl, course, json, log }))
}

fn course(seconds: Option<usize>, rounds: Option<usize>, calm: bool, ttl: Duration) -> Result<Course, UsageError> {
    if let Some(rounds) = rounds {
        let wrong = |flag: &str| Err(UsageError(format!("--rounds and {flag} exclude each other")));
        return match (seconds, calm) {
            (Some(_), _) => wrong("--seconds"),
            (_, true) => wrong("--calm"),
            _ => Ok(Course::Rounds(rounds)),
        };
    }
    let time = Duration::from_secs(seconds.unwrap_or(20) as u64);
    // The stall alone takes one and a half.
    let needed = ttl * 5;
    if !calm && time < needed {
        return Err(UsageError(format!(
            "three faults at a ttl of {ttl:?} need --seconds {} or more; give them, or a shorter --ttl, or --calm",
            needed.as_secs_f64().ceil()
        )));
    }
    Ok(Course::Timed { time, calm })
}

fn whole(arguments: &mut lexopt::Parser, flag: &str, least: usize, most: usize) -> Result<usize, UsageError> {
    let text = arguments.value()?.string()?;
    let number = text.parse().ok().filter(|n| (least..=most).contains(n));
    number.ok_or_else(|| UsageError(format!("{flag} takes a whole number from {least} to {most}, not `{text}`")))
}

fn duration(arguments: &mut lexopt::Parser) -> Result<Duration, UsageError> {
    let text = arguments.value()?.string()?;
    let allowed = Duration::from_millis(100)..=Duration::from_secs(3600);
    humantime::parse_duration(&text).ok().filter(|ttl| allowed.contains(ttl)).ok_or_else(|| {
        UsageError(format!("--ttl takes a time from 100ms to 1h with its unit, such as 500ms or 3s, not `{text}`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Command, String> {
        parse(lexopt::Parser::from_args(arguments)).map_err(|error| error.to_string())
    }

    fn fleet(arguments: &[&str]) -> Options {
        match parsed(arguments) {
            Ok(Command::Fleet(options)) => options,
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    #[test]
    fn without_flags_three_instances_are_watched_for_twenty_seconds() {
        let course = Course::Timed { time: Duration::from_secs(20), calm: false };
        let ttl = Duration::from_secs(3);
        let expected = Options { store: None, instances: 3, ttl, course, json: false, log: None };
        assert_eq!(fleet(&[]), expected);
    }

    #[test]
    fn each_flag_is_read() {
        let options =
            fleet(&["--seconds=9", "--ttl", "500ms", "--calm", "--json", "--instances", "5", "--log", "here"]);
        assert_eq!(options.course, Course::Timed { time: Duration::from_secs(9), calm: true });
        assert_eq!((options.ttl, options.instances, options.json), (Duration::from_millis(500), 5, true));
        assert_eq!(options.log, Some(PathBuf::from("here")));
        assert_eq!(fleet(&["--rounds", "30"]).course, Course::Rounds(30));
        assert_eq!(fleet(&["--store", "sqlite:///a.db"]).store.as_deref(), Some("sqlite:///a.db"));
        assert_eq!(parsed(&["--help"]), Ok(Command::Help));
    }

    #[test]
    fn a_wrong_flag_is_told_with_what_would_do() {
        for (arguments, told) in [
            (&["--instances", "0"][..], "--instances takes a whole number from 1 to 50, not `0`"),
            (&["--instances", "three"], "not `three`"),
            (&["--ttl", "3"], "with its unit"),
            (&["--ttl", "50ms"], "from 100ms to 1h"),
            (&["--seconds", "8"], "need --seconds 15 or more"),
            (&["--rounds", "3", "--calm"], "--rounds and --calm exclude each other"),
            (&["--rounds", "3", "--seconds", "20"], "--rounds and --seconds exclude each other"),
            (&["--store", "memory:"], "processes cannot share --store memory:"),
            (&["--quiet"], "--quiet"),
            (&["fast"], "fast"),
            (&["--log"], "--log"),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(error.contains(told) && error.contains("--help"), "{arguments:?}: {error}");
        }
    }
}
