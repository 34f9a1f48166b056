//! Cron jobs under everything that can go wrong; see `--help`.
#![allow(clippy::print_stderr, reason = "a command's output")]

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
    use std::path::Path;
    use std::process::ExitCode;

    use leader_tests::command::{NO_REDIS, Program, show};
    use leader_tests::cron_chaos::cli::{Arguments, HELP, parse};
    use leader_tests::cron_chaos::{member, run};

    pub(crate) fn main() -> ExitCode {
        Program { name: "cron-chaos", help: HELP, member: member::run, parse, run: chaos }.main()
    }

    fn chaos(Arguments { settings, json }: &Arguments, program: &Path) -> Result<bool, String> {
        let report = run(settings, program)?.ok_or(NO_REDIS)?;
        show(&report, *json)?;
        Ok(report.is_clean())
    }
}
