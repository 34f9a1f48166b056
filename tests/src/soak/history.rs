//! What is kept of a soak that found something, beside the logs of its processes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Report;
use super::plan::Fault;
use super::settings::Settings;
use crate::chaos::log::now_ns;

/// The faults with their times, as they strike.
#[derive(Debug)]
pub(super) struct History {
    folder: PathBuf,
    faults: File,
}

#[derive(Serialize)]
struct Line<'a> {
    at_ns: u64,
    what: &'a str,
    fault: &'static str,
    exactly: String,
    member: Option<&'a str>,
}

impl History {
    pub(super) fn begin(folder: &Path, settings: &Settings) -> io::Result<Self> {
        fs::write(folder.join("command.txt"), format!("{}\n", settings.command()))?;
        Ok(Self { folder: folder.to_owned(), faults: File::create(folder.join("faults.json-lines"))? })
    }

    /// Something strikes, or is over. What cannot be written down is no reason to end.
    pub(super) fn fault(&mut self, what: &str, fault: Fault, member: Option<&str>) {
        let exactly = format!("{fault:?}");
        let line = Line { at_ns: now_ns(), what, fault: fault.name(), exactly, member };
        let text = serde_json::to_string(&line).unwrap_or_default();
        let _ = self.faults.write_all(format!("{text}\n").as_bytes());
    }

    pub(super) fn end(&self, report: &Report) -> io::Result<()> {
        fs::write(self.folder.join("report.txt"), format!("{report}\n"))?;
        fs::write(self.folder.join("report.json"), serde_json::to_vec_pretty(report)?)
    }
}
