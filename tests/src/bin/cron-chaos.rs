//! Cron jobs under everything that can go wrong; see `--help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    chaos::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("cron-chaos: only on Linux");
    ExitCode::from(3)
}

#[cfg(target_os = "linux")]
mod chaos {
    use std::process::ExitCode;

    use leader_tests::cron_chaos::cli::{Arguments, HELP, parse};
    use leader_tests::cron_chaos::{Report, member, run};

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
                eprintln!("cron-chaos: {error}; see --help");
                return ExitCode::from(2);
            }
        };
        match chaos(&arguments) {
            Ok(report) if report.is_clean() => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("cron-chaos: {error}");
                ExitCode::from(3)
            }
        }
    }

    fn chaos(arguments: &Arguments) -> Result<Report, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let report = run(&arguments.settings, &program)?.ok_or("no redis-server is installed")?;
        if arguments.json {
            println!("{:#}", serde_json::to_value(&report).map_err(|error| error.to_string())?);
        } else {
            println!("{report}");
        }
        Ok(report)
    }
}
