//! Runs a chaos: starts the members, lets the faults strike, lets all finish in peace, and has the logs checked.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Report;
use super::check::{Bounds, Evidence, Trouble, Violation, check};
use super::crew::{Between, Crew};
use super::ground::Ground;
use super::log::{Line, nanos, now_ns, read_last, watch_stalls};
use super::member::{Options, PATIENT, Work};
use super::plan::{Fault, Planned, has_one_task, plan};
use super::settings::Settings;
use crate::command::Agenda;

/// Between two looks at what does not tell when it changes.
const LOOK: Duration = Duration::from_millis(10);
/// A pause of this length is more than that: connections were given up meanwhile.
const LONG_NS: u64 = 1_000_000_000;

/// Troubles as they come, from several threads; whoever watches ends with the owner.
type Journal = Arc<Mutex<Vec<Trouble>>>;

/// Runs it. `program` is called with the word `member` and a member's options. `None`: no Redis server is installed.
///
/// # Errors
/// If it could not be run to its end; says why.
pub fn run(settings: &Settings, program: &Path) -> Result<Option<Report>, String> {
    let io = |error: io::Error| error.to_string();
    let own = tempfile::tempdir().map_err(io)?;
    let folder = settings.logs.clone().unwrap_or_else(|| own.path().into());
    let crew = Crew::new(program, &folder).map_err(io)?;
    let Some(ground) = Ground::open(&settings.place, own.path(), settings.processes, &[])? else { return Ok(None) };
    let mut course = Course::new(settings, crew, ground, folder);
    for slot in 0..settings.processes {
        course.start(slot).map_err(io)?;
    }
    course.until_all_have_started()?;
    course.watch();
    course.faults()?;
    course.until_all_have_started()?;
    let bad_ends = course.finish();
    course.report(bad_ends).map(Some).map_err(io)
}

struct Course<'a> {
    settings: &'a Settings,
    // Before the ground: members go first.
    crew: Crew,
    ground: Ground,
    folder: PathBuf,
    slots: Vec<Slot>,
    /// What ends of itself, and when.
    ends: Agenda<End>,
    journal: Journal,
    deaths: BTreeMap<String, Between>,
    struck: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct Slot {
    label: String,
    generation: usize,
    /// It stands still since then, and all writers of the file with it.
    stopped: Option<(u64, bool)>,
    /// Its network has trouble since then.
    apart: Option<u64>,
}

enum End {
    Start(usize),
    Continue(usize),
    Ground(Fault, u64),
}

impl<'a> Course<'a> {
    fn new(settings: &'a Settings, crew: Crew, ground: Ground, folder: PathBuf) -> Self {
        let slots = (0..settings.processes).map(|_| Slot::default()).collect();
        let (ends, journal, deaths) = (Agenda::default(), Journal::default(), BTreeMap::new());
        Self { settings, crew, ground, folder, slots, ends, journal, deaths, struck: BTreeMap::new() }
    }

    fn start(&mut self, slot: usize) -> io::Result<()> {
        let Settings { seed, keys, tasks, .. } = *self.settings;
        let generation = self.slots[slot].generation;
        let label = format!("m{slot}-{generation}");
        let seed = seed.wrapping_mul(1_000_003).wrapping_add((slot * 1009 + generation) as u64);
        let options = Options {
            label: label.clone(),
            store: self.ground.url(slot),
            lock_prefix: "_chaos:".to_owned(),
            ttl: self.settings.ttl,
            operation_timeout: self.settings.operation_timeout(),
            retry: self.settings.retry(),
            work: Work::Locks { keys, tasks: if has_one_task(slot) { 1 } else { tasks }, seed },
            bad: self.settings.bad,
            log: self.crew.log(&label),
        };
        self.crew.start(&label, &options)?;
        self.slots[slot].label = label;
        self.slots[slot].generation += 1;
        Ok(())
    }

    /// One that began while its network was lost takes its time.
    fn until_all_have_started(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        for label in self.crew.living() {
            let has_started = |line: &Line| matches!(line, Line::Started { .. });
            while !self.crew.lines::<Line>(&label).map_err(|error| error.to_string())?.iter().any(has_started) {
                if begin.elapsed() > PATIENT || self.crew.ended(&label).is_some() {
                    return Err(format!("{label} does not start; it wrote last:\n{}", self.crew.written(&label)));
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// What this machine and the store do of themselves is measured, too.
    fn watch(&self) {
        let note = || {
            let journal = Arc::downgrade(&self.journal);
            move |pause: Option<(u64, u64)>| {
                let Some(journal) = journal.upgrade() else { return false };
                pause.into_iter().for_each(|pause| journal.note(None, pause, pause.1 - pause.0 > LONG_NS));
                true
            }
        };
        self.ground.watch(note());
        watch_stalls(note());
    }

    /// The faults of the plan, and what ends them.
    fn faults(&mut self) -> Result<(), String> {
        let Settings { seed, time, processes, ttl, .. } = *self.settings;
        let begin = Instant::now();
        for planned in plan(seed, time, processes, self.settings.place.is_redis(), ttl) {
            self.pass_until(begin + planned.at)?;
            if self.strikes(planned)? {
                *self.struck.entry(planned.fault.name()).or_default() += 1;
            }
        }
        self.pass_until(begin + time)?;
        // What has not ended yet ends now: all finish in peace.
        while let Some(end) = self.ends.pull() {
            self.end(end)?;
        }
        Ok(())
    }

    /// Lets time pass, and what is due meanwhile happen.
    fn pass_until(&mut self, until: Instant) -> Result<(), String> {
        while let Some(end) = self.ends.wait(until) {
            self.end(end)?;
        }
        Ok(())
    }

    /// Whether it did: one that stands still is not stopped again, and one that is not there not killed.
    fn strikes(&mut self, Planned { fault, lasts, .. }: Planned) -> Result<bool, String> {
        let over = Instant::now() + lasts;
        if let Fault::KillInBody(slot) | Fault::StopInBody(slot) = fault
            && !self.until_in_body(slot)
        {
            return Ok(false);
        }
        match fault {
            Fault::Kill(slot) | Fault::KillInBody(slot) => {
                let label = self.slots[slot].label.clone();
                let Some(death) = self.crew.kill(&label) else { return Ok(false) };
                self.continues(slot);
                self.journal.note(Some(&label), (death.from_ns, death.to_ns), true);
                self.deaths.insert(label, death);
                self.ends.add(over, End::Start(slot));
            }
            Fault::Stop(slot) | Fault::StopInBody(slot) => {
                if self.slots[slot].stopped.is_some() {
                    return Ok(false);
                }
                let label = self.slots[slot].label.clone();
                let from = now_ns();
                let Some(mut writing) = self.crew.stop(&label) else { return Ok(false) };
                // The body may have ended meanwhile: then another one.
                while matches!(fault, Fault::StopInBody(_)) && !self.is_in_body(&label) {
                    self.crew.cont(&label);
                    if !self.until_in_body(slot) {
                        self.journal.note(Some(&label), (from, now_ns()), true);
                        return Ok(false);
                    }
                    let Some(again) = self.crew.stop(&label) else { return Ok(false) };
                    writing = again;
                }
                self.slots[slot].stopped = Some((from, writing));
                self.ends.add(over, End::Continue(slot));
            }
            _ => {
                let from = now_ns();
                if let Some(slot) = fault.network() {
                    if self.slots[slot].apart.is_some() {
                        return Ok(false);
                    }
                    self.slots[slot].apart = Some(from);
                }
                if !self.ground.begin(fault, lasts)? {
                    return Ok(false);
                }
                self.ends.add(over, End::Ground(fault, from));
            }
        }
        Ok(true)
    }

    /// Waits until the process works under a lock, for a while.
    fn until_in_body(&self, slot: usize) -> bool {
        let (begin, label) = (Instant::now(), &self.slots[slot].label);
        let runs = self.slots[slot].stopped.is_none();
        while runs && begin.elapsed() < self.settings.ttl {
            if self.is_in_body(label) {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    }

    fn is_in_body(&self, label: &str) -> bool {
        let last = read_last(&self.crew.log(label));
        matches!(last, Ok(Some(Line::Began { .. } | Line::Step { .. })))
    }

    fn end(&mut self, end: End) -> Result<(), String> {
        match end {
            End::Start(slot) => self.start(slot).map_err(|error| error.to_string())?,
            End::Continue(slot) => self.continues(slot),
            End::Ground(fault, from) => {
                self.ground.end(fault);
                let lasted = (from, now_ns());
                match fault.network() {
                    None => self.journal.note(None, lasted, true),
                    Some(slot) => {
                        self.slots[slot].apart = None;
                        // Of whoever was there meanwhile.
                        for generation in 0..self.slots[slot].generation {
                            self.journal.note(Some(&format!("m{slot}-{generation}")), lasted, true);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// If it was stopped.
    fn continues(&mut self, slot: usize) {
        let Slot { label, stopped, .. } = &mut self.slots[slot];
        if let Some((from, writing)) = stopped.take() {
            self.crew.cont(label);
            let to = now_ns();
            self.journal.note(Some(label), (from, to), true);
            if writing {
                self.journal.note(None, (from, to), true);
            }
        }
    }

    /// Each member takes every lock once more, and ends. Those that do not.
    fn finish(&mut self) -> Vec<Violation> {
        let begin = Instant::now();
        let (mut living, mut bad) = (self.crew.living(), Vec::new());
        living.iter().for_each(|label| self.crew.tell(label));
        while !living.is_empty() {
            living.retain(|label| {
                let ended = self.crew.ended(label);
                let late = ended.is_none() && begin.elapsed() > 2 * PATIENT;
                if late || ended.is_some_and(|status| !status.success()) {
                    bad.push(Violation::BadEnd { member: label.clone(), wrote: self.crew.written(label) });
                    return false;
                }
                ended.is_none()
            });
            thread::sleep(LOOK);
        }
        bad
    }

    fn report(self, bad_ends: Vec<Violation>) -> io::Result<Report> {
        let mut members = BTreeMap::new();
        for label in self.crew.labels() {
            let lines = self.crew.lines::<Line>(label)?;
            for line in &lines {
                if let Line::Stalled { from_ns, to_ns } = *line {
                    self.journal.note(Some(label), (from_ns, to_ns), to_ns - from_ns > LONG_NS);
                }
            }
            members.insert(label.clone(), lines);
        }
        let bounds = Bounds {
            ttl_ns: nanos(self.settings.ttl),
            retry_ns: nanos(self.settings.retry()),
            operation_ns: nanos(self.settings.operation_timeout()),
        };
        let troubles = std::mem::take(&mut *self.journal.lock().unwrap_or_else(PoisonError::into_inner));
        let processes = members.len();
        let evidence = Evidence { members, deaths: self.deaths, troubles, bounds };
        let (figures, mut violations) = check(&evidence);
        violations.extend(bad_ends);
        let logs = self.settings.logs.is_some().then_some(self.folder);
        let (seed, seconds) = (self.settings.seed, self.settings.time.as_secs_f64());
        Ok(Report { seed, seconds, processes, faults: self.struck, figures, violations, logs })
    }
}

trait Notes {
    fn note(&self, whom: Option<&str>, lasted: (u64, u64), lingers: bool);
}

impl Notes for Journal {
    fn note(&self, whom: Option<&str>, (from_ns, to_ns): (u64, u64), lingers: bool) {
        let trouble = Trouble { whom: whom.map(str::to_owned), from_ns, to_ns, lingers };
        self.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
    }
}
