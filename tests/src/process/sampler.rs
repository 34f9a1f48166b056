//! Looks all the time whether this instance leads, and logs every interval in which it does.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use leader_core::{BootInstant, Elector};
use leader_examples::history::{Line, View};

use super::talk::Told;

/// How often it looks and logs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Between two looks.
    pub(crate) period: Duration,
    /// So often a view that lasts is logged again: a kill shortens it by no more.
    pub(crate) flush: Duration,
}

impl Pace {
    /// For tests, which are short.
    pub(crate) const CLOSE: Self = Self { period: Duration::from_micros(400), flush: Duration::from_millis(10) };
}

/// Who was not looking for so long has stood still.
const STOOD_STILL: Duration = Duration::from_secs(1);

/// The log of this process.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<File>);

impl Log {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(OpenOptions::new().create(true).append(true).open(path)?)))
    }

    /// Appends it by one write.
    pub(crate) fn add(&self, line: impl Into<Line>) {
        (&*self.0).write_all(line.into().to_json().as_bytes()).expect("the log can be written");
    }
}

/// Asks for what lasts to be logged up to now, and is told when it was.
pub(crate) type Flush = Sender<()>;

/// Starts the thread; it runs as long as the process.
pub(crate) fn start(elector: Elector, label: String, log: Log, pace: Pace) -> io::Result<Sender<Flush>> {
    let (flush, flushes) = channel();
    let groups: Vec<_> = elector.groups().iter().map(|g| Watched { group: g.to_string(), view: None }).collect();
    let mut sampler = Sampler { elector, label, log, groups, pace };
    let run = move || {
        let mut last = BootInstant::now();
        loop {
            let now = BootInstant::now();
            let since = now.saturating_since(std::mem::replace(&mut last, now));
            let leading = sampler.sample();
            sampler.flush(&flushes);
            if since >= STOOD_STILL {
                Told::Woke { stood_still: since, leading }.tell();
            }
            thread::sleep(pace.period);
        }
    };
    thread::Builder::new().name("sampler".to_owned()).spawn(run)?;
    Ok(flush)
}

struct Sampler {
    elector: Elector,
    label: String,
    log: Log,
    groups: Vec<Watched>,
    pace: Pace,
}

struct Watched {
    group: String,
    view: Option<(View, u64)>,
}

impl Sampler {
    fn flush(&self, asked: &Receiver<Flush>) {
        for done in asked.try_iter() {
            for (view, _) in self.groups.iter().filter_map(|watched| watched.view.as_ref()) {
                self.log.add(view.clone());
            }
            // Who asked may have given up.
            let _ = done.send(());
        }
    }

    /// The groups for which `is_leader()` said yes.
    fn sample(&mut self) -> Vec<String> {
        let mut leading = Vec::new();
        for Watched { group, view } in &mut self.groups {
            let yes = self.elector.is_leader(group);
            if yes {
                leading.push(group.clone());
            }
            let seen = yes.then(|| confirm(&self.elector, group)).flatten();
            match (&mut *view, seen) {
                (Some((view, logged)), Some((at, term))) if view.term == term => {
                    view.ended_ns = at;
                    if at >= *logged + u64::try_from(self.pace.flush.as_nanos()).unwrap_or(u64::MAX) {
                        *logged = at;
                        self.log.add(view.clone());
                    }
                }
                (_, seen) => {
                    if let Some((ended, _)) = view.take() {
                        self.log.add(ended);
                    }
                    *view = seen.map(|(at, term)| {
                        let instance = self.label.clone();
                        let began = View { group: group.clone(), instance, term, began_ns: at, ended_ns: at };
                        self.log.add(began.clone());
                        (began, at)
                    });
                }
            }
        }
        leading
    }
}

/// An instant at which this instance led for certain, however the thread was interrupted: `is_leader()` has said yes before
/// it, and says yes after it, under one term. Nothing if another term began in between.
///
/// A yes without a lease is a lie of the gate; it is logged as term 0, which no check lets pass.
fn confirm(elector: &Elector, group: &str) -> Option<(u64, u64)> {
    let term = || elector.lease(group).map(|lease| lease.term().get());
    let before = term();
    let at = BootInstant::now();
    if !elector.is_leader(group) {
        return None;
    }
    match (before, term()) {
        (Some(before), after) if after.is_none_or(|after| after == before) => Some((at.as_nanos(), before)),
        (None, None) => Some((at.as_nanos(), 0)),
        _ => None,
    }
}
