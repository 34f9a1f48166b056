//! The processes of a soak, and what they have written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use leader_examples::history;

use super::check::locks::Locks;
use super::check::ticks::Ticks;
use super::check::views::Views;
use super::member::Options;
use super::settings::Settings;
use crate::chaos::crew::{Between, Crew};
use crate::chaos::log::{Line as LockLine, Tail, now_ns};
use crate::cron_chaos::Line;
use crate::cron_chaos::jobs::Jobs;
use crate::cron_chaos::progress::Progress;

/// What can be seen of a process, and what is the matter with it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) label: String,
    generation: usize,
    /// It stands still since then, and all writers of the file with it.
    pub(super) stopped: Option<(u64, bool)>,
    /// It was told to end.
    pub(super) ending: bool,
    /// It takes no part for now.
    pub(super) drained: bool,
}

struct Tails {
    ticks: Tail,
    views: history::Tail,
    locks: Tail,
}

/// The processes, one in each slot, and all that they wrote which still matters.
pub(super) struct Fleet<'a> {
    settings: &'a Settings,
    pub(super) crew: Crew,
    pub(super) groups: Vec<String>,
    pub(super) slots: Vec<Slot>,
    tails: BTreeMap<String, Tails>,
    pub(super) ticks: Ticks,
    pub(super) views: Views,
    pub(super) locks: Locks,
    pub(super) progress: Progress,
    started: BTreeSet<String>,
    flushed: BTreeMap<String, (u64, u64)>,
}

fn label(slot: usize, generation: usize) -> String {
    format!("m{slot}-{generation}")
}

impl<'a> Fleet<'a> {
    /// Nobody yet. `groups`: besides `default`.
    pub(super) fn new(settings: &'a Settings, crew: Crew, groups: Vec<String>) -> Self {
        let jobs = Jobs::Spread(settings.rate, groups.clone()).list();
        let ledger = settings.variant != Some(super::settings::Variant::WithoutLedger);
        Self {
            settings,
            crew,
            groups,
            slots: (0..settings.processes()).map(|_| Slot::default()).collect(),
            tails: BTreeMap::new(),
            progress: Progress::of(&jobs),
            ticks: Ticks::new(jobs, ledger),
            views: Views::default(),
            locks: Locks::default(),
            started: BTreeSet::new(),
            flushed: BTreeMap::new(),
        }
    }

    /// All groups, of which `default` is always one.
    pub(super) fn all_groups(&self) -> Vec<String> {
        std::iter::once("default".to_owned()).chain(self.groups.iter().cloned()).collect()
    }

    /// How many there have been.
    pub(super) fn processes(&self) -> usize {
        self.crew.labels().len()
    }

    /// Starts the next one in a slot, on this store.
    pub(super) fn start(&mut self, slot: usize, store: String, foreign: bool) -> Result<(), String> {
        let generation = self.slots[slot].generation;
        let label = label(slot, generation);
        let seed = self.settings.seed.wrapping_mul(1_000_003).wrapping_add((slot * 1009 + generation) as u64);
        let beside = |name: &str| -> PathBuf { self.crew.folder().join(format!("{label}.{name}.jsonl")) };
        let options = Options {
            label: label.clone(),
            store,
            foreign,
            groups: self.groups.clone(),
            ttl: self.settings.ttl,
            operation_timeout: self.settings.operation_timeout(),
            retry: self.settings.retry(),
            hold: slot % 2 == 1,
            jobs: Jobs::Spread(self.settings.rate, self.groups.clone()),
            seed,
            variant: self.settings.variant,
            log: self.crew.log(&label),
            views: beside("views"),
            locks: beside("locks"),
        };
        self.crew.start(&label, &options).map_err(|error| format!("{label} cannot be started: {error}"))?;
        let tails = Tails {
            ticks: Tail::new(options.log),
            views: history::Tail::new(options.views),
            locks: Tail::new(options.locks),
        };
        self.tails.insert(label.clone(), tails);
        self.slots[slot] = Slot { label, generation: generation + 1, ..Slot::default() };
        Ok(())
    }

    /// Reads what processes have written.
    pub(super) fn look(&mut self) -> Result<(), String> {
        for (label, tails) in &mut self.tails {
            let wrong = |error: &dyn std::fmt::Display| format!("a log of {label}: {error}");
            let lines: Vec<Line> = tails.ticks.more().map_err(|error| wrong(&error))?;
            for line in &lines {
                match line {
                    Line::Started { .. } => drop(self.started.insert(label.clone())),
                    Line::Flushed { order, at_ns } => drop(self.flushed.insert(label.clone(), (*order, *at_ns))),
                    _ => self.progress.note(label, line),
                }
            }
            if !lines.is_empty() {
                self.ticks.add(label, lines);
            }
            self.views.add(tails.views.read().map_err(|error| wrong(&error))?);
            let locks: Vec<LockLine> = tails.locks.more().map_err(|error| wrong(&error))?;
            self.locks.add(label, locks);
        }
        Ok(())
    }

    /// The process in this slot runs, and nothing is the matter with it.
    pub(super) fn is_well(&self, slot: usize) -> bool {
        let Slot { label, stopped, ending, drained, .. } = &self.slots[slot];
        stopped.is_none() && !ending && !drained && self.crew.is_living(label) && self.started.contains(label)
    }

    /// All that run have begun to take part.
    pub(super) fn have_started(&self) -> bool {
        self.crew.living().iter().all(|label| self.started.contains(label))
    }

    /// Where a process is that has been killed, or stopped: whoever leads this group, as far as is known; or whoever is well.
    pub(super) fn leader(&self, group: &str) -> Option<usize> {
        let leader = self.views.leader(group);
        let slots = || (0..self.slots.len()).filter(|slot| self.is_well(*slot));
        let leads = |slot: &usize| leader == Some(self.slots[*slot].label.as_str());
        slots().find(leads).or_else(|| slots().next())
    }

    /// All that have been in this slot.
    pub(super) fn labels_of(&self, slot: usize) -> impl Iterator<Item = String> + use<> {
        (0..self.slots[slot].generation).map(move |generation| label(slot, generation))
    }

    /// Kills the process in this slot.
    pub(super) fn kill(&mut self, slot: usize) -> Option<Between> {
        self.crew.kill(&self.slots[slot].label)
    }

    /// Continues the one in this slot, if it was stopped: since when, and whether it stopped all writers of the file.
    pub(super) fn cont(&mut self, slot: usize) -> Option<(u64, bool)> {
        let stopped = self.slots[slot].stopped.take();
        if stopped.is_some() {
            self.crew.cont(&self.slots[slot].label);
        }
        stopped
    }

    /// Tells all to write down what came before this.
    pub(super) fn order_flush(&mut self, order: u64) {
        for label in self.crew.living() {
            self.crew.say(&label, &format!("{}{order}", super::member::FLUSH));
        }
    }

    /// Since which instant all have written down what came before, or who has not.
    pub(super) fn flushed(&self, order: u64) -> Result<u64, String> {
        let mut first = now_ns();
        for label in self.crew.living() {
            match self.flushed.get(&label) {
                Some((of, at_ns)) if *of == order => first = first.min(*at_ns),
                _ => return Err(label),
            }
        }
        Ok(first)
    }

    /// Those that have ended, and of which all was read.
    pub(super) fn gone(&self) -> BTreeSet<String> {
        self.tails.keys().filter(|label| !self.crew.is_living(label)).cloned().collect()
    }

    /// These write nothing any more.
    pub(super) fn forget(&mut self, gone: &BTreeSet<String>) {
        self.tails.retain(|label, _| !gone.contains(label));
        self.flushed.retain(|label, _| !gone.contains(label));
        self.started.retain(|label| !gone.contains(label));
    }
}
