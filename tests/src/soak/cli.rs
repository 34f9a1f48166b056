//! The command line of `soak`.

use std::time::Duration;

use lexopt::prelude::*;

use super::settings::{Place, Settings, Variant};

/// The text of `--help`.
pub const HELP: &str = "\
Several processes lead groups, run their jobs, take locks and do work once, for as long as you like, while processes, servers,
connections and files are hurt by chance; and it is checked all the time that no two lead a group at once, that terms rise, that
no tick is lost or doubled, that no two hold a lock, that somebody leads again after each fault, and that nothing grows.

cargo run --release -p leader-tests --bin soak -- [OPTIONS]

  --minutes N        how long (default 10); 0.25 is a quarter of a minute
  --seed S           chooses the faults, and what the processes do (default 1). Which instants they hit is the machine's
  --store STORE      redis: a server of its own (the default)
                     sentinel: a primary with two replicas and three sentinels of its own
                     cluster: three primaries and three replicas of its own
                     sqlite: a file of its own
                     a URL: that store, which is somebody else's. Only processes are hurt then. What it writes on Redis begins
                     with soak: or {soak: and stays there; a file should be one that is thrown away
  --processes P      processes, at least 3 (default: 4 to 6, by the seed)
  --ttl MS           how long a lease lasts, in milliseconds (default 1000)
  --rate R           ticks each second, about (default 20; there are some kinds of jobs more)
  --variant NAME     breaks a rule on purpose; one of no-deadline, lock-no-deadline, lock-fails-open, without-ledger, and on
                     Redis no-quarantine, lock-one-token
  --keep FOLDER      where the history of a soak is kept that found something (default: the folder for temporary files)
  --json             the report as JSON
  -h, --help         this text

Each ten seconds a line on standard error tells how far it is. Ctrl-C, or SIGTERM, ends it early, in peace and with a report.
Faults come in storms of half a minute; in between all is mended, and what was written since is checked and forgotten, so the
memory of the checker does not grow. The logs of the processes do, by about 100 MB an hour, until the end.

If something is found, it ends, and the history is kept: what every process wrote, the logs of the servers, the faults with
their times, the report, and the command that does it again. The report and the last line name the folder.

Exit code: 0 if all is well, 1 if something was found that must not be, 2 on wrong arguments, 3 if it could not be run.";

/// `None`: help was asked for.
///
/// # Errors
/// Says which argument is wrong.
pub fn parse(arguments: Vec<String>) -> Result<Option<Settings>, lexopt::Error> {
    let mut arguments = lexopt::Parser::from_args(arguments);
    let mut settings = Settings::default();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("minutes") => settings.time = arguments.value()?.parse_with(minutes)?,
            Long("seed") => settings.seed = arguments.value()?.parse()?,
            // Not by `parse_with`, whose error shows the text.
            Long("store") => settings.place = Place::parse(&arguments.value()?.string()?).map_err(of_store)?,
            Long("processes") => settings.processes = Some(arguments.value()?.parse()?),
            Long("ttl") => settings.ttl = Duration::from_millis(arguments.value()?.parse()?),
            Long("rate") => settings.rate = arguments.value()?.parse()?,
            Long("variant") => settings.variant = Some(arguments.value()?.parse_with(Variant::parse)?),
            Long("keep") => settings.keep = Some(arguments.value()?.into()),
            Long("json") => settings.json = true,
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    check(&settings)?;
    Ok(Some(settings))
}

fn of_store(what: String) -> String {
    format!("--store: {what}")
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: f64 = text.parse().map_err(|_| format!("`{text}` is no number of minutes"))?;
    if (0.05..=100_000.0).contains(&minutes) {
        Ok(Duration::from_secs_f64(minutes * 60.0))
    } else {
        Err("at least 0.05, which is three seconds, and at most 100000".to_owned())
    }
}

fn check(settings: &Settings) -> Result<(), String> {
    if settings.processes.is_some_and(|processes| !(3..=50).contains(&processes)) {
        return Err("--processes: 3 to 50".to_owned());
    }
    if !(Duration::from_millis(500)..=Duration::from_secs(10)).contains(&settings.ttl) {
        return Err("--ttl: 500 to 10000".to_owned());
    }
    if !(1..=1_000).contains(&settings.rate) {
        return Err("--rate: 1 to 1000".to_owned());
    }
    if settings.variant.is_some_and(Variant::is_of_redis) && !settings.place.is_redis() {
        return Err("--variant: this one is of the script for Redis".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Settings>, String> {
        parse(line.split_whitespace().map(str::to_owned).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let asked = parsed("--minutes 0.25 --store cluster --seed 7 --variant no-quarantine --keep /tmp/kept --json");
        let settings = asked.unwrap().unwrap();
        assert_eq!((settings.time, settings.seed, settings.json), (Duration::from_secs(15), 7, true));
        assert_eq!((settings.place, settings.variant), (Place::Cluster, Some(Variant::NoQuarantine)));
        assert_eq!(settings.keep, Some("/tmp/kept".into()));
        let foreign = parsed("--store redis-sentinel://a,b/jobs").unwrap().unwrap().place;
        assert_eq!(foreign, Place::Foreign("redis-sentinel://a,b/jobs".to_owned()));
        assert!(parsed("--minutes 5 --help").unwrap().is_none());
    }

    #[test]
    fn the_command_of_a_soak_means_the_same_soak() {
        let asked = parsed("--minutes 0.1 --store sqlite --seed 5 --variant no-deadline").unwrap().unwrap();
        let again = asked.command().split_once(" -- ").map(|(_, line)| line.to_owned()).unwrap();
        let again = parsed(&again).unwrap().unwrap();
        assert_eq!((again.time, again.seed, again.place.clone()), (asked.time, asked.seed, asked.place.clone()));
        assert_eq!((again.processes(), again.ttl, again.rate), (asked.processes(), asked.ttl, asked.rate));
        assert_eq!(again.variant, asked.variant);
    }

    #[test]
    fn every_variant_is_in_the_help_and_what_makes_no_sense_is_refused() {
        assert!(Variant::ALL.iter().all(|(variant, name)| {
            HELP.contains(name) && Variant::parse(name) == Ok(*variant) && variant.name() == *name
        }));
        for wrong in [
            "--store memory:",
            "--store sqlite://a.db",
            "--minutes 0",
            "--minutes soon",
            "--minutes -1",
            "--processes 1",
            "--ttl 10",
            "--rate 0",
            "--variant naught",
            "--store sqlite --variant no-quarantine",
            "something",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_url_that_is_refused_is_not_shown_for_it_may_hold_a_password() {
        assert!(!parsed("--store reddis://me:secret@host").unwrap_err().contains("secret"));
    }
}
