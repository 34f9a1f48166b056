//! A fleet of real processes that elect a leader, lose it to a crash, a stall and a stop, and go on:
//!
//! ```text
//! cargo run --example fleet
//! ```
//!
//! The parent starts instances of this very program (`instance.rs` is what a service would look like), does to them what it
//! has announced, and reads their logs, which prove that never two of them led one group at the same time.
#[cfg(not(unix))]
compile_error!("this example stops and kills processes by signals: it needs Linux, macOS or a BSD");

mod cli;
mod faults;
mod instance;
mod log;
mod member;
mod message;
mod parent;
mod plan;
mod process;
mod report;
mod sampler;
mod screen;
mod table;

use std::process::ExitCode;

use cli::Command;
use parent::FleetError;
use screen::Screen;

fn main() -> ExitCode {
    match cli::parse(lexopt::Parser::from_env()) {
        Ok(Command::Help) => {
            print!("{}", cli::HELP);
            ExitCode::SUCCESS
        }
        Ok(Command::Fleet(options)) => watch_fleet(&options),
        Ok(Command::Instance(options)) => match instance::run(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn watch_fleet(options: &cli::Options) -> ExitCode {
    let mut screen = Screen::new(options.json);
    match parent::run(options, &mut screen) {
        Ok(report) => {
            screen.print(&format!("\n{}", report.to_text()));
            if options.json {
                match report.to_json() {
                    Ok(json) => println!("{json}"),
                    Err(error) => eprintln!("the report cannot be written as JSON: {error}"),
                }
            }
            if report.violations().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if matches!(error, FleetError::Interrupted) { 130 } else { 3 })
        }
    }
}
