//! What a fleet did, as its instances logged it, and the checks of what was promised.
//!
//! Each instance appends lines of JSON: a [`View`] for every interval in which it saw itself lead, a [`Run`] for every job
//! body that ran. The times are nanoseconds of the boot clock, which all processes of one host share, so the logs of several
//! instances can be laid over each other:
//!
//! - no two instances may see themselves lead one group at the same time ([`History::overlaps`]);
//! - terms never repeat and never fall ([`History::term_faults`]);
//! - every tick runs, and none twice ([`History::ticks`]).
//!
//! ```
//! use leader_examples::history::{History, View};
//!
//! let view = |instance: &str, term, began_ns, ended_ns| View {
//!     group: "default".to_owned(), instance: instance.to_owned(), term, began_ns, ended_ns,
//! };
//! let mut history = History::default();
//! history.add(view("a", 1, 0, 500));
//! history.add(view("b", 2, 400, 900));
//! let overlaps = history.overlaps();
//! assert_eq!((overlaps.len(), overlaps[0].shared_ns()), (1, 101));
//! ```

mod check;
mod line;
mod read;
mod ticks;

pub use check::{Overlap, TermFault};
pub use line::{Line, Run, View};
pub use read::{LogError, Tail};
pub use ticks::{Tick, Ticks};

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// All that the instances of a fleet logged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    runs: Vec<Run>,
    views: Vec<View>,
}

impl History {
    /// Reads every log in `folder`: the files whose names end in `.jsonl`.
    ///
    /// # Errors
    /// [`LogError`] if a file cannot be read, or a whole line in it is not one of ours.
    pub fn read_folder(folder: &Path) -> Result<Self, LogError> {
        let in_folder = |error: io::Error| LogError::io(folder, error);
        let mut history = Self::default();
        for entry in std::fs::read_dir(folder).map_err(in_folder)? {
            let path = entry.map_err(in_folder)?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                history.extend(Tail::new(path).read()?);
            }
        }
        Ok(history)
    }

    /// Adds one line. A view that is known by an earlier line, with the same beginning, is extended.
    pub fn add(&mut self, line: impl Into<Line>) {
        match line.into() {
            Line::Run(run) => self.runs.push(run),
            // From the end: what is extended is nearly always among the newest.
            Line::View(view) => match self.views.iter_mut().rev().find(|known| known.is_same_as(&view)) {
                Some(known) => known.ended_ns = known.ended_ns.max(view.ended_ns),
                None => self.views.push(view),
            },
        }
    }

    /// Every run of a job, in the order of the logs.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Every interval of leading, in the order of the logs.
    #[must_use]
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// The groups that anybody led.
    #[must_use]
    pub fn groups(&self) -> BTreeSet<&str> {
        self.views.iter().map(|view| view.group.as_str()).collect()
    }

    /// The newest view of `group`.
    #[must_use]
    pub fn newest_view(&self, group: &str) -> Option<&View> {
        self.views.iter().filter(|view| view.group == group).max_by_key(|view| (view.term, view.ended_ns))
    }

    /// The first view of `group` that began at `from_ns` or later, under a larger term than `after_term`: the end of a
    /// hand-over.
    #[must_use]
    pub fn next_view(&self, group: &str, from_ns: u64, after_term: u64) -> Option<&View> {
        let follows = |view: &&View| view.group == group && view.began_ns >= from_ns && view.term > after_term;
        self.views.iter().filter(follows).min_by_key(|view| view.began_ns)
    }
}

impl<L: Into<Line>> Extend<L> for History {
    fn extend<I: IntoIterator<Item = L>>(&mut self, lines: I) {
        for line in lines {
            self.add(line);
        }
    }
}
