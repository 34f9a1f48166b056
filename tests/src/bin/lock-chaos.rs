//! Locks under everything that can go wrong; see `--help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    chaos::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("lock-chaos: only on Linux");
    ExitCode::from(3)
}

#[cfg(target_os = "linux")]
mod chaos {
    use std::path::Path;
    use std::process::ExitCode;
    use std::time::Instant;

    use leader_tests::chaos::cli::{Arguments, HELP, parse};
    use leader_tests::chaos::{Settings, member, run, run_once};

    pub(crate) fn main() -> ExitCode {
        let mut arguments = std::env::args().skip(1).peekable();
        if arguments.next_if(|first| first == "member").is_some() {
            return match member::run(&arguments.next().unwrap_or_default()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            };
        }
        let arguments = match parse(arguments) {
            Ok(Some(arguments)) => arguments,
            Ok(None) => {
                println!("{HELP}");
                return ExitCode::SUCCESS;
            }
            Err(error) => {
                eprintln!("lock-chaos: {error}; see --help");
                return ExitCode::from(2);
            }
        };
        let done = std::env::current_exe().map_err(|error| error.to_string()).and_then(|program| {
            let Arguments { settings, once, json } = &arguments;
            match once {
                None => locks(settings, *json, &program),
                Some(instances) => once_again(settings, *instances, *json, &program),
            }
        });
        match done {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("lock-chaos: {error}");
                ExitCode::from(3)
            }
        }
    }

    const NO_REDIS: &str = "no redis-server is installed";

    fn locks(settings: &Settings, json: bool, program: &Path) -> Result<bool, String> {
        let report = run(settings, program)?.ok_or(NO_REDIS)?;
        if json {
            println!("{:#}", serde_json::to_value(&report).map_err(|error| error.to_string())?);
        } else {
            println!("{report}");
        }
        Ok(report.is_clean())
    }

    /// One scene after the other, each by the next seed.
    fn once_again(settings: &Settings, instances: usize, json: bool, program: &Path) -> Result<bool, String> {
        let begun = Instant::now();
        let mut settings = settings.clone();
        loop {
            let report = run_once(&settings, instances, program)?.ok_or(NO_REDIS)?;
            if json {
                println!("{}", serde_json::to_value(&report).map_err(|error| error.to_string())?);
            } else {
                println!("{report}");
            }
            if !report.violations.is_empty() {
                return Ok(false);
            }
            if begun.elapsed() >= settings.time {
                return Ok(true);
            }
            settings.seed += 1;
        }
    }
}
