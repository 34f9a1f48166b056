//! Reading logs, also while they grow.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::Line;

/// Reads the log of one process as it grows.
///
/// A process that was killed may have left half of its last line: what has no line end yet is not read.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// What of the file was read: whole lines.
    read: u64,
    lines: usize,
}

impl Tail {
    /// Begins at the start of the file, which need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: 0, lines: 0 }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that were completed since the last call.
    ///
    /// # Errors
    /// [`LogError`] if the file cannot be read, or a whole line is not one of ours. After the latter the next call goes on
    /// behind that line.
    pub fn read(&mut self) -> Result<Vec<Line>, LogError> {
        let text = self.read_whole_lines().map_err(|error| LogError::io(&self.path, error))?;
        let mut lines = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            self.read += line.len() as u64;
            self.lines += 1;
            lines.push(serde_json::from_slice(line).map_err(|cause| LogError::Line {
                path: self.path.clone(),
                number: self.lines,
                text: String::from_utf8_lossy(line).trim_end().to_owned(),
                cause,
            })?);
        }
        Ok(lines)
    }

    fn read_whole_lines(&self) -> io::Result<Vec<u8>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        text.truncate(whole);
        Ok(text)
    }
}

/// A log that cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// It could not be read.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A whole line in it is not one of ours.
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        number: usize,
        /// The line.
        text: String,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
}

impl LogError {
    pub(super) fn io(path: &Path, cause: io::Error) -> Self {
        Self::Io { path: path.to_owned(), cause }
    }
}

impl std::fmt::Display for LogError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { path, cause } => write!(f, "reading the log {} failed: {cause}", path.display()),
            Self::Line { path, number, text, cause } => {
                write!(f, "line {number} of the log {} is not a run or a view ({cause}): {text}", path.display())
            }
        }
    }
}

impl std::error::Error for LogError {}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{History, View};
    use super::*;

    fn view(ended_ns: u64) -> Line {
        View { group: "g".into(), instance: "a".into(), term: 1, began_ns: 1, ended_ns }.into()
    }

    #[test]
    fn the_torn_last_line_of_a_killed_process_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let whole = view(5).to_json() + &view(9).to_json();
        let torn = view(12).to_json();
        std::fs::write(folder.path().join("a.jsonl"), whole + &torn[..torn.len() / 2]).unwrap();
        std::fs::write(folder.path().join("a.log"), "something else").unwrap();
        let history = History::read_folder(folder.path()).unwrap();
        assert_eq!(history.views().iter().map(|v| v.ended_ns).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn a_line_is_read_once_and_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.read().unwrap(), [], "there is no file yet");
        let mut file = File::create(path).unwrap();
        let second = view(7).to_json();
        write!(file, "{}{}", view(5).to_json(), &second[..9]).unwrap();
        assert_eq!(tail.read().unwrap(), [view(5)]);
        write!(file, "{}", &second[9..]).unwrap();
        assert_eq!(tail.read().unwrap(), [view(7)]);
        assert_eq!(tail.read().unwrap(), []);
    }

    #[test]
    fn a_whole_line_that_is_not_ours_is_an_error_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, view(5).to_json() + "{\"kind\":\"vi{\"kind\":\"view\"}\n").unwrap();
        let error = Tail::new(path).read().unwrap_err().to_string();
        assert!(error.contains("line 2 of the log") && error.contains("a.jsonl"), "{error}");
    }
}
