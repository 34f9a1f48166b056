//! The log of one instance.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use leader_core::BootInstant;
use leader_cron::Tick;
use leader_examples::history::{Line, Run};

/// Appends whole lines. What the jobs do is written here, so it is also the state that they are lent.
pub struct Log {
    file: File,
    instance: String,
}

impl Log {
    pub fn open(path: &Path, instance: String) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, instance })
    }

    /// Appends one line in one call, so that the lines of several threads do not tear.
    pub fn append(&self, line: impl Into<Line>) -> io::Result<()> {
        (&self.file).write_all(line.into().to_json().as_bytes())
    }

    /// Notes that the body of `job` ran for this tick, and began at `began`.
    pub fn ran(&self, job: &str, tick: &Tick, began: BootInstant) -> io::Result<()> {
        let Some(lease) = leader_core::lease() else {
            return Err(io::Error::other(format!("the body of {job} runs without a lease")));
        };
        self.append(Run {
            job: job.to_owned(),
            tick: tick.unix_seconds(),
            instance: self.instance.clone(),
            term: lease.term().get(),
            began_ns: began.as_nanos(),
            ended_ns: BootInstant::now().as_nanos(),
        })
    }
}
