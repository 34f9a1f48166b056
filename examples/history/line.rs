//! One line of a log.

use serde::{Deserialize, Serialize};

/// One line of an instance's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Line {
    /// A job's body ran.
    Run(Run),
    /// The instance saw itself lead.
    View(View),
}

/// A job's body ran once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The job's name.
    pub job: String,
    /// The intended time, in seconds since 1970-01-01 00:00 UTC.
    pub tick: i64,
    /// Who ran it.
    pub instance: String,
    /// Under which term.
    pub term: u64,
    /// When the body began, in nanoseconds of the boot clock.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
}

/// An interval in which an instance saw itself lead. Both ends were seen.
///
/// While it lasts, it is logged again and again with the same beginning and a later end, so that a kill only shortens it.
/// Each such line is true by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The group that is led.
    pub group: String,
    /// Who leads.
    pub instance: String,
    /// Under which term.
    pub term: u64,
    /// When it was first seen, in nanoseconds of the boot clock.
    pub began_ns: u64,
    /// When it was last seen.
    pub ended_ns: u64,
}

impl Line {
    /// The line as it stands in the log, with its end.
    ///
    /// Append it by one `write_all`, to a file that was opened to append: else the lines of several threads tear.
    ///
    /// # Panics
    /// Never: the fields of a line are numbers and text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string(self).expect("numbers and text can be written as JSON");
        text.push('\n');
        text
    }
}

impl View {
    /// Whether both tell of the same interval.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.began_ns == other.began_ns
            && self.term == other.term
            && self.group == other.group
            && self.instance == other.instance
    }
}

impl From<Run> for Line {
    fn from(run: Run) -> Self {
        Self::Run(run)
    }
}

impl From<View> for Line {
    fn from(view: View) -> Self {
        Self::View(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_with_its_kind() {
        let view = View { group: "g".into(), instance: "a".into(), term: 7, began_ns: 1, ended_ns: 2 };
        let line = Line::from(view);
        assert_eq!(
            line.to_json(),
            "{\"kind\":\"view\",\"group\":\"g\",\"instance\":\"a\",\"term\":7,\"began_ns\":1,\"ended_ns\":2}\n"
        );
        assert_eq!(serde_json::from_str::<Line>(&line.to_json()).unwrap(), line);
        let run = Run { job: "j".into(), tick: 9, instance: "a".into(), term: 7, began_ns: 1, ended_ns: 2 };
        assert_eq!(
            Line::from(run).to_json(),
            "{\"kind\":\"run\",\"job\":\"j\",\"tick\":9,\"instance\":\"a\",\"term\":7,\"began_ns\":1,\"ended_ns\":2}\n"
        );
    }
}
