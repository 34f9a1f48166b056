//! From the arguments of a program to its exit code.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

use std::error::Error;
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

/// Why nothing could be run.
pub const NO_REDIS: &str = "no redis-server is installed";

/// A program that starts processes of itself, its members, and hurts them.
#[derive(Debug, Clone, Copy)]
pub struct Program<A> {
    /// Its name.
    pub name: &'static str,
    /// The text of `--help`.
    pub help: &'static str,
    /// What a member does, by its one argument.
    pub member: fn(&str) -> Result<(), Box<dyn Error>>,
    /// Understands the arguments; `None`: help was asked for.
    pub parse: fn(Vec<String>) -> Result<Option<A>, lexopt::Error>,
    /// Does what was asked for, with the path of this program: whether all was well. The error says why it could not be run.
    pub run: fn(&A, &Path) -> Result<bool, String>,
}

impl<A> Program<A> {
    /// Runs it: 0 if all is well, 1 if something was found that must not be, 2 on wrong arguments, 3 if it could not be run.
    #[must_use]
    pub fn main(&self) -> ExitCode {
        let mut arguments = std::env::args().skip(1).peekable();
        if arguments.next_if(|first| first == "member").is_some() {
            return match (self.member)(&arguments.next().unwrap_or_default()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            };
        }
        let arguments = match (self.parse)(arguments.collect()) {
            Ok(Some(arguments)) => arguments,
            Ok(None) => {
                println!("{}", self.help);
                return ExitCode::SUCCESS;
            }
            Err(error) => {
                eprintln!("{}: {error}; see --help", self.name);
                return ExitCode::from(2);
            }
        };
        let program = std::env::current_exe().map_err(|error| error.to_string());
        match program.and_then(|program| (self.run)(&arguments, &program)) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("{}: {error}", self.name);
                ExitCode::from(3)
            }
        }
    }
}

/// Prints a report.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn show(report: &(impl Display + Serialize), json: bool) -> Result<(), String> {
    if json {
        println!("{:#}", serde_json::to_value(report).map_err(|error| error.to_string())?);
    } else {
        println!("{report}");
    }
    Ok(())
}
