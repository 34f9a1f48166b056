//! What a process takes of its machine.

use std::fs;

use serde::Serialize;

/// What one process has in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Threads.
    pub threads: usize,
    /// Open files, sockets among them.
    pub descriptors: usize,
    /// Memory that is resident, in KiB.
    pub resident_kib: u64,
}

impl Usage {
    /// Of the process with this id. None where there is no `/proc`, or no such process.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some(Self {
            threads: usize::try_from(number("Threads:")?).ok()?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count(),
            resident_kib: number("VmRSS:")?,
        })
    }
}
