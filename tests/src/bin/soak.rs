//! Everything at once, for hours; see `--help`.
#![allow(clippy::print_stderr, reason = "a command's output")]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    soak::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("soak: only on Linux");
    ExitCode::from(3)
}

#[cfg(target_os = "linux")]
mod soak {
    use std::path::Path;
    use std::process::ExitCode;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use leader_tests::command::{Program, show};
    use leader_tests::soak::cli::{HELP, parse};
    use leader_tests::soak::{Settings, member, run};

    pub(crate) fn main() -> ExitCode {
        Program { name: "soak", help: HELP, member: member::run, parse, run: soak }.main()
    }

    fn soak(settings: &Settings, program: &Path) -> Result<bool, String> {
        let stop = told_to_end()?;
        let report = run(settings, program, &stop)?;
        show(&report, settings.json)?;
        if let Some(logs) = &report.logs {
            eprintln!("soak: the history is in {}", logs.display());
        }
        Ok(report.is_clean())
    }

    /// Set by Ctrl-C and SIGTERM. Who sends a second one wants an end at once.
    fn told_to_end() -> Result<Arc<AtomicBool>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        let wait = move || {
            for end_at_once in [false, true] {
                if runtime.block_on(leader_core::shutdown_signal()).is_err() {
                    return;
                }
                if end_at_once {
                    std::process::exit(3);
                }
                tell.store(true, Ordering::SeqCst);
                eprintln!("soak: ends in peace; once more, and it ends at once");
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(|error| error.to_string())?;
        Ok(told)
    }
}
