//! Watching nodes: what they tell, what they log, and what that must never show.

use std::fmt::Write as _;
use std::time::Instant;

use leader_core::BootInstant;
use leader_examples::history::{History, View};

use super::fleet::Fleet;
use super::patience::{LOOK, PATIENCE};
use super::talk::{Command, Told};

/// Who leads a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reign {
    /// The node's label.
    pub label: String,
    /// Under which term.
    pub term: u64,
}

impl Fleet {
    /// Waits until a node leads `group` under a larger term than `after`.
    pub fn leader(&mut self, group: &str, after: u64) -> Reign {
        self.until(&format!("somebody leads {group} under a term larger than {after}"), |fleet| {
            let reigns = fleet.told.iter().filter_map(|(label, told)| {
                let term = told.leads(group).filter(|term| *term > after)?;
                Some(Reign { label: label.clone(), term })
            });
            reigns.min_by_key(|reign| reign.term)
        })
    }

    /// Waits for the view of `group` that follows the one of `term`, and began after `from`.
    pub fn next_view(&mut self, group: &str, from: BootInstant, term: u64) -> View {
        self.until(&format!("a view of {group} after term {term}"), |fleet| {
            fleet.read_logs().next_view(group, from.as_nanos(), term).cloned()
        })
    }

    /// Waits until a node has seen itself lead `group`, under `term` and at `instant` or later.
    pub fn still_leads(&mut self, reign: &Reign, group: &str, instant: BootInstant) -> View {
        self.until(&format!("{reign:?} leads {group} at {instant:?}"), |fleet| {
            let mut views = fleet.read_logs().views().iter();
            let same = |view: &&View| view.instance == reign.label && view.group == group && view.term == reign.term;
            views.find(|view| same(view) && view.ended_ns >= instant.as_nanos()).cloned()
        })
    }

    /// Waits until a node has told what is wanted.
    pub fn hears(&mut self, label: &str, what: &str, wanted: impl Fn(&Told) -> bool) -> Told {
        self.until(&format!("{label} tells {what}"), |fleet| fleet.heard(label, &wanted))
    }

    fn heard(&self, label: &str, wanted: impl Fn(&Told) -> bool) -> Option<Told> {
        self.told_by(label).find(|told| wanted(told)).cloned()
    }

    /// All that a node has told so far.
    pub fn told_by(&self, label: &str) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(move |(teller, _)| teller == label).map(|(_, told)| told)
    }

    /// Waits until `look` finds something; it looks again whenever a node tells something, and now and then for the logs.
    ///
    /// # Panics
    /// If it does not come about for very long; with all that was told.
    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            while let Ok(told) = self.inbox.try_recv() {
                self.told.push(told);
            }
            if let Some(found) = look(self) {
                return found;
            }
            assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}; {}", self.describe());
            if let Ok(told) = self.inbox.recv_timeout(LOOK) {
                self.told.push(told);
            }
        }
    }

    /// All that the nodes have logged so far.
    ///
    /// # Panics
    /// If a log is damaged.
    pub fn read_logs(&mut self) -> &History {
        for tail in &mut self.tails {
            self.history.extend(tail.read().expect("a node writes nothing else"));
        }
        &self.history
    }

    /// No two nodes led a group at once, and no term came twice or fell. No node may be stopped.
    ///
    /// # Panics
    /// If not; with what was found.
    pub fn assert_safe(&mut self) {
        for label in self.labels() {
            // What lasts is logged now and then: without this, the end of the newest view would be missing.
            if self.heard(&label, |told| matches!(told, Told::NotStarted { .. } | Told::Gone)).is_none() {
                self.ask(&label, &Command::Flush).expect("the sampler runs as long as the process");
            }
        }
        let history = self.read_logs();
        let overlaps: Vec<_> = history.overlaps().iter().map(ToString::to_string).collect();
        let faults: Vec<_> = history.term_faults().iter().map(ToString::to_string).collect();
        let safe = overlaps.is_empty() && faults.is_empty();
        assert!(safe, "overlaps: {overlaps:#?}\nterms: {faults:#?}\n{}", self.describe());
    }

    fn describe(&self) -> String {
        let mut text = "told so far, but answers:".to_owned();
        let no_answers = self.told.iter().filter(|(_, told)| !matches!(told, Told::Answer { outcome: Ok(_) }));
        for (label, told) in no_answers {
            // Writing to a string does not fail.
            let _ = write!(text, "\n  {label}: {told:?}");
        }
        for label in self.nodes.keys() {
            let written = self.written(label);
            let lines: Vec<_> = written.lines().collect();
            let _ = write!(text, "\n{label} wrote last:\n  {}", lines[lines.len().saturating_sub(10)..].join("\n  "));
        }
        text
    }
}
