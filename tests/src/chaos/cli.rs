//! The command line of `lock-chaos`.

use std::time::Duration;

use lexopt::prelude::*;

use super::settings::{Bad, Place, Settings};

/// The text of `--help`.
pub const HELP: &str = "\
Several processes take locks, work under them and give them back, while processes are killed and stopped, connections cut,
delayed and lost, and the store is held up; and it is checked that no two bodies of one lock ever run at once, that tokens
rise, that whoever waits gets its turn, and that nothing stays locked for longer than the ttl after its holder's death.

cargo run --release -p leader-tests --bin lock-chaos -- [OPTIONS]

  --seconds N        how long faults happen (default 60)
  --store STORE      redis: a server of its own (the default); redis://host:6379/0: that one, which no one else should use,
                     because its clients are paused and cut; sqlite: a file of its own; sqlite:///path: that one
  --seed S           chooses the faults, and what the processes do (default 1). Which instants they hit is the machine's
  --processes P      processes (default 5)
  --tasks T          tasks that ask for locks, of every other process; the rest have one (default 4)
  --keys K           locks (default 3)
  --ttl MS           how long a lock outlives its holder, in milliseconds (default 1000)
  --once N           instead: N instances begin at one time what is to be done once, and die at the worst instants, again and
                     again for so many seconds
  --known-bad NAME   breaks a rule on purpose; one of no-deadline, no-cancel, fails-open, and on Redis release-by-key,
                     no-queue, one-token; with --once: blind
  --logs FOLDER      keeps the logs there
  --json             the report as JSON
  -h, --help         this text

Exit code: 0 if all is well, 1 if something was found that must not be, 2 on wrong arguments, 3 if it could not be run.";

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The chaos.
    pub settings: Settings,
    /// So many instances do what is to be done once.
    pub once: Option<usize>,
    /// The report as JSON.
    pub json: bool,
}

/// `None`: help was asked for.
///
/// # Errors
/// Says which argument is wrong.
pub fn parse(arguments: Vec<String>) -> Result<Option<Arguments>, lexopt::Error> {
    let mut arguments = lexopt::Parser::from_args(arguments);
    let (mut settings, mut once, mut json) = (Settings::default(), None, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("seconds") => settings.time = Duration::from_secs(arguments.value()?.parse()?),
            Long("store") => settings.place = arguments.value()?.parse_with(Place::parse)?,
            Long("seed") => settings.seed = arguments.value()?.parse()?,
            Long("processes") => settings.processes = arguments.value()?.parse()?,
            Long("tasks") => settings.tasks = arguments.value()?.parse()?,
            Long("keys") => settings.keys = arguments.value()?.parse()?,
            Long("ttl") => settings.ttl = Duration::from_millis(arguments.value()?.parse()?),
            Long("once") => once = Some(arguments.value()?.parse()?),
            Long("known-bad") => settings.bad = Some(arguments.value()?.parse_with(Bad::parse)?),
            Long("logs") => settings.logs = Some(arguments.value()?.into()),
            Long("json") => json = true,
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    check(&settings, once)?;
    Ok(Some(Arguments { settings, once, json }))
}

fn check(settings: &Settings, once: Option<usize>) -> Result<(), String> {
    if settings.processes == 0 || settings.tasks == 0 || settings.keys == 0 {
        return Err("--processes, --tasks and --keys: at least 1".to_owned());
    }
    if !(Duration::from_millis(300)..=Duration::from_secs(60)).contains(&settings.ttl) {
        return Err("--ttl: 300 to 60000".to_owned());
    }
    // Each key costs two lives, and some are lost by chance.
    if once.is_some_and(|instances| instances < 2 * settings.keys + instances / 7 + 1) {
        return Err("--once: too few instances for so many --keys".to_owned());
    }
    let Some(bad) = settings.bad else { return Ok(()) };
    if bad.flaw().is_some() && !settings.place.is_redis() {
        return Err("--known-bad: this one is of the script for Redis".to_owned());
    }
    if (bad == Bad::Blind) != once.is_some() {
        return Err("--known-bad: blind goes with --once, and the others without it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Arguments>, String> {
        parse(line.split_whitespace().map(str::to_owned).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let asked = parsed("--seconds 5 --store sqlite:///tmp/a.db --seed 7 --keys 2 --known-bad no-cancel --json");
        let Arguments { settings, once, json } = asked.unwrap().unwrap();
        assert_eq!((settings.time, settings.seed, settings.keys), (Duration::from_secs(5), 7, 2));
        assert_eq!(settings.place, Place::Sqlite("/tmp/a.db".into()));
        assert_eq!((settings.bad, once, json), (Some(Bad::NoCancel), None, true));
        assert!(parsed("--seconds 5 --help").unwrap().is_none());
    }

    #[test]
    fn every_known_bad_is_in_the_help_and_what_makes_no_sense_is_refused() {
        assert!(Bad::ALL.iter().all(|(bad, name)| HELP.contains(name) && Bad::parse(name) == Ok(*bad)));
        for wrong in [
            "--store memory:",
            "--store sqlite://a.db",
            "--keys 0",
            "--ttl 10",
            "--known-bad naught",
            "--store sqlite --known-bad no-queue",
            "--known-bad blind",
            "--once 20 --known-bad no-cancel",
            "--once 7 --keys 3",
            "something",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
