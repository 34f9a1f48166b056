//! Logs that processes write while they may be killed at any instant, and that are read when all is over.
//!
//! Each line is one JSON object and one write, so a kill leaves at most the last one torn. The times are nanoseconds of the
//! boot clock, which all processes of one host share.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use leader_core::BootInstant;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Nanoseconds of the boot clock, now.
#[must_use]
pub fn now_ns() -> u64 {
    BootInstant::now().as_nanos()
}

/// A duration in nanoseconds.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// One line of a member's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// The process takes part.
    Started {
        /// Since then.
        at_ns: u64,
    },
    /// It is about to ask for a lock.
    Asked {
        /// Which of its attempts.
        attempt: u64,
        /// Of which lock.
        key: String,
        /// Before it asked.
        at_ns: u64,
        /// How long it will wait.
        wait_ns: u64,
        /// All is calm, and it can wait: it must get it.
        must: bool,
    },
    /// The body runs.
    Began {
        /// Of this attempt.
        attempt: u64,
        /// The number of the acquisition.
        token: u64,
        /// Before the library was given the processor, which then let the body run.
        since_ns: u64,
        /// In the body.
        at_ns: u64,
    },
    /// The body has run a step more.
    Step {
        /// Of this attempt.
        attempt: u64,
        /// Before the library was given the processor, which then let the body run.
        since_ns: u64,
    },
    /// The attempt is over.
    Left {
        /// Which.
        attempt: u64,
        /// When that was known.
        at_ns: u64,
        /// How it ended.
        how: How,
    },
    /// The process did not get the processor, though it wanted to run.
    Stalled {
        /// From then.
        from_ns: u64,
        /// To then.
        to_ns: u64,
    },
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The body has ended, and the lock was given back.
    Done,
    /// The work had been done by another one.
    Before,
    /// The lock was lost while the body ran.
    Lost,
    /// Another one had it to the end of the wait.
    Busy,
    /// The store did not do it.
    Failed(String),
    /// The attempt was dropped, at a random instant.
    Dropped,
}

/// The log of this process.
#[derive(Debug, Clone)]
pub struct Log(Arc<File>);

impl Log {
    /// Creates it, or goes on with it.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(OpenOptions::new().create(true).append(true).open(path)?)))
    }

    /// Appends it by one write.
    ///
    /// # Panics
    /// If the log cannot be written.
    pub fn add(&self, line: &impl Serialize) {
        let mut text = serde_json::to_string(line).expect("text and numbers can be written as JSON");
        text.push('\n');
        (&*self.0).write_all(text.as_bytes()).expect("the log can be written");
    }
}

/// All whole lines of a log. The torn last line of a process that was killed is left out; a file that does not exist is empty.
///
/// # Errors
/// If it cannot be read, or a whole line is none.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    Tail::new(path.into()).more()
}

/// A log that is read while it is written.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    read: u64,
}

impl Tail {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: 0 }
    }

    /// The whole lines that came since the last time; none while the file does not exist.
    ///
    /// # Errors
    /// If it cannot be read, or a whole line is none.
    pub fn more<T: DeserializeOwned>(&mut self) -> io::Result<Vec<T>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let (lines, whole) = lines(&text)?;
        self.read += whole as u64;
        Ok(lines)
    }
}

/// The whole lines of a text, and how long they are together.
fn lines<T: DeserializeOwned>(text: &[u8]) -> io::Result<(Vec<T>, usize)> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = text[..whole].split_inclusive(|byte| *byte == b'\n');
    let read = lines.map(|line| serde_json::from_slice(line).map_err(io::Error::other)).collect::<io::Result<_>>()?;
    Ok((read, whole))
}

/// The last whole line of a log, if there is one and it is not a long one.
///
/// # Errors
/// If it cannot be read.
pub fn read_last<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    const LONG: i64 = 4096;
    let mut file = File::open(path)?;
    let back = LONG.min(i64::try_from(file.metadata()?.len()).unwrap_or(LONG));
    file.seek(SeekFrom::End(-back))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let whole = text.split_inclusive(|byte| *byte == b'\n').rfind(|line| line.ends_with(b"\n"));
    Ok(whole.and_then(|line| serde_json::from_slice(line).ok()))
}

/// Tells `note` of every time in which this process did not get the processor, from a thread that does nothing else, until
/// `note` wants no more.
pub fn watch_stalls(mut note: impl FnMut(Option<(u64, u64)>) -> bool + Send + 'static) {
    const PERIOD: Duration = Duration::from_millis(5);
    const STALL: Duration = Duration::from_millis(60);
    let mut last = now_ns();
    let watch = move || {
        loop {
            thread::sleep(PERIOD);
            let now = now_ns();
            let stall = (now - last > nanos(STALL)).then_some((last, now));
            if !note(stall) {
                return;
            }
            last = now;
        }
    };
    thread::Builder::new().name("watch".to_owned()).spawn(watch).expect("a thread can be started");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_killed_process_all_is_read_but_the_line_it_was_at() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        assert_eq!(read::<Line>(&path).unwrap(), []);
        let line = Line::Left { attempt: 3, at_ns: 4, how: How::Failed("no".to_owned()) };
        let log = Log::open(&path).unwrap();
        log.add(&line);
        (&*log.0).write_all(b"{\"kind\":\"left\",\"att").unwrap();
        assert_eq!(read_last::<Line>(&path).unwrap().as_ref(), Some(&line));
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.more::<Line>().unwrap(), [line]);
        assert_eq!(tail.more::<Line>().unwrap(), []);
        (&*log.0).write_all(b"\n").unwrap();
        assert!(read::<Line>(&path).is_err(), "a whole line that is none");
    }
}
