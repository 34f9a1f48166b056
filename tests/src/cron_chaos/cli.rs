//! The command line of `cron-chaos`.

use std::time::Duration;

use lexopt::prelude::*;

use super::settings::Settings;
use crate::chaos::Place;

/// The text of `--help`.
pub const HELP: &str = "\
Several processes run the same cron jobs, while leaders are killed around their ticks, stopped, restarted and told to step down,
wall clocks differ and jump, and the store is restarted, held up and cut off; and it is checked that no tick is lost, doubled,
early, or run beside another one. Counted is what the bodies themselves write down first and last.

cargo run --release -p leader-tests --bin cron-chaos -- [OPTIONS]

  --ticks N            about so many ticks while faults happen (default 20000)
  --store STORE        redis: a server of its own, which keeps its memory over restarts (the default); redis://host:6379/0: that
                       one, which no one else should use and which is not restarted; sqlite: a file of its own;
                       sqlite:///path: that one
  --seed S             chooses the faults, and what clocks show (default 1). Which instants they hit is the machine's
  --rate R             jobs that come each second (default 500)
  --processes P        processes (default 4)
  --ttl MS             how long a lease lasts, in milliseconds (default 1000)
  --without-ledger     for comparison: each process wakes by its own clock, and the body asks who leads
  --log FOLDER         keeps the logs there
  --json               the report as JSON
  -h, --help           this text

Exit code: 0 if all is well, 1 if something was found that must not be, 2 on wrong arguments, 3 if it could not be run.";

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The chaos.
    pub settings: Settings,
    /// The report as JSON.
    pub json: bool,
}

/// `None`: help was asked for.
///
/// # Errors
/// Says which argument is wrong.
pub fn parse(arguments: Vec<String>) -> Result<Option<Arguments>, lexopt::Error> {
    let mut arguments = lexopt::Parser::from_args(arguments);
    let (mut settings, mut json) = (Settings::default(), false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("ticks") => settings.ticks = arguments.value()?.parse()?,
            Long("store") => settings.place = arguments.value()?.parse_with(Place::parse)?,
            Long("seed") => settings.seed = arguments.value()?.parse()?,
            Long("rate") => settings.rate = arguments.value()?.parse()?,
            Long("processes") => settings.processes = arguments.value()?.parse()?,
            Long("ttl") => settings.ttl = Duration::from_millis(arguments.value()?.parse()?),
            Long("without-ledger") => settings.without_ledger = true,
            Long("log") => settings.logs = Some(arguments.value()?.into()),
            Long("json") => json = true,
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    check(&settings)?;
    Ok(Some(Arguments { settings, json }))
}

fn check(settings: &Settings) -> Result<(), String> {
    if settings.ticks == 0 || settings.rate == 0 {
        return Err("--ticks and --rate: at least 1".to_owned());
    }
    if settings.processes < 2 {
        return Err("--processes: at least 2, or nobody takes over".to_owned());
    }
    if !(Duration::from_millis(500)..=Duration::from_secs(10)).contains(&settings.ttl) {
        return Err("--ttl: 500 to 10000".to_owned());
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
        let asked = parsed("--ticks 1000 --store sqlite:///tmp/a.db --seed 7 --rate 50 --without-ledger --json");
        let Arguments { settings, json } = asked.unwrap().unwrap();
        assert_eq!((settings.time(), settings.seed, settings.rate), (Duration::from_secs(20), 7, 50));
        assert_eq!(settings.place, Place::Sqlite("/tmp/a.db".into()));
        assert!(settings.without_ledger && json);
        assert!(parsed("--ticks 5 --help").unwrap().is_none());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in
            ["--store memory:", "--ticks 0", "--ticks many", "--processes 1", "--ttl 10", "--keys 3", "something"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
