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
    use leader_tests::command::{NO_REDIS, Program, show};

    pub(crate) fn main() -> ExitCode {
        Program { name: "lock-chaos", help: HELP, member: member::run, parse, run: chaos }.main()
    }

    fn chaos(Arguments { settings, once, json }: &Arguments, program: &Path) -> Result<bool, String> {
        if let Some(instances) = once {
            return once_again(settings, *instances, *json, program);
        }
        let report = run(settings, program)?.ok_or(NO_REDIS)?;
        show(&report, *json)?;
        Ok(report.is_clean())
    }

    /// One scene after the other, each by the next seed.
    fn once_again(settings: &Settings, instances: usize, json: bool, program: &Path) -> Result<bool, String> {
        let begun = Instant::now();
        let mut settings = settings.clone();
        loop {
            let report = run_once(&settings, instances, program)?.ok_or(NO_REDIS)?;
            if json {
                // A line each.
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
