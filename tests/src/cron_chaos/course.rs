//! Runs a chaos of jobs: starts the members, lets the faults strike, lets all finish in peace, and has the lines judged.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use leader_core::Config;

use super::Report;
use super::jobs::{Facts, Jobs};
use super::judge::{Bounds, Evidence, Shift, Trouble, Violation, What, judge};
use super::line::Line;
use super::member::{Options, STEP_DOWN, true_us};
use super::plan::{Fault, Plan, Planned, Whom, offset_ms};
use super::progress::Progress;
use super::settings::Settings;
use super::witness::{Known, Witness};
use crate::chaos::crew::{Between, Crew};
use crate::chaos::ground::Ground;
use crate::chaos::log::{Tail, now_ns, watch_stalls};
use crate::command::Agenda;
use crate::command::member::FINISH;
use crate::process::Wall;

/// Between two looks at what does not tell when it changes.
const LOOK: Duration = Duration::from_millis(20);
/// How long anything is waited for that surely comes: a clock that is a minute behind has to catch up before.
const PATIENCE: Duration = Duration::from_secs(150);
const SECOND_US: i64 = 1_000_000;

/// Runs it. `program` is called with the word `member` and a member's options. `None`: no Redis server is installed.
///
/// # Errors
/// If it could not be run to its end; says why.
pub fn run(settings: &Settings, program: &Path) -> Result<Option<Report>, String> {
    let io = |error: io::Error| error.to_string();
    let own = tempfile::tempdir().map_err(io)?;
    let folder = settings.logs.clone().unwrap_or_else(|| own.path().into());
    let crew = Crew::new(program, &folder).map_err(io)?;
    // A server that keeps its memory over a restart.
    let kept = [("appendonly", "yes"), ("appendfsync", "always")];
    let Some(ground) = Ground::open(&settings.place, own.path(), settings.processes, &kept)? else { return Ok(None) };
    let mut course = Course::new(settings, crew, ground, folder);
    for slot in 0..settings.processes {
        course.start(slot)?;
    }
    course.until_all_run()?;
    let from = true_us() / SECOND_US + 1;
    course.watch();
    course.faults()?;
    let until = true_us() / SECOND_US;
    course.until_all_is_done(until)?;
    course.finish()?;
    course.report((from, until)).map(Some)
}

struct Course<'a> {
    settings: &'a Settings,
    jobs: Vec<Facts>,
    // Before the ground: members go first.
    crew: Crew,
    witness: Option<Witness>,
    ground: Ground,
    folder: PathBuf,
    slots: Vec<Slot>,
    started: u64,
    calm: bool,
    tails: BTreeMap<String, Tail>,
    members: BTreeMap<String, Vec<Line>>,
    progress: Progress,
    /// What ends of itself, and when.
    ends: Agenda<End>,
    troubles: Arc<Mutex<Vec<Trouble>>>,
    deaths: BTreeMap<String, Between>,
    shifts: Vec<Shift>,
    struck: BTreeMap<&'static str, u64>,
    /// The store does not answer, or is not there.
    away: bool,
    bad_ends: Vec<Violation>,
}

#[derive(Default)]
struct Slot {
    label: String,
    generation: usize,
    wall: Option<Wall>,
    offset_ms: i64,
    /// It stands still since then, and all writers of the file with it.
    stopped: Option<(u64, bool)>,
    /// Its network has trouble.
    apart: bool,
    /// It was told to end.
    ending: bool,
}

enum End {
    Start(usize),
    Continue(usize),
    /// Its clock goes back to what it was; of this process alone.
    Back(usize, String, i64),
    Store(Fault, usize, u64),
}

impl<'a> Course<'a> {
    fn new(settings: &'a Settings, crew: Crew, ground: Ground, folder: PathBuf) -> Self {
        let jobs = Jobs::All(settings.rate).list();
        Self {
            settings,
            progress: Progress::of(&jobs),
            jobs,
            crew,
            witness: None,
            ground,
            folder,
            slots: (0..settings.processes).map(|_| Slot::default()).collect(),
            started: 0,
            calm: true,
            tails: BTreeMap::new(),
            members: BTreeMap::new(),
            ends: Agenda::default(),
            troubles: Arc::default(),
            deaths: BTreeMap::new(),
            shifts: Vec::new(),
            struck: BTreeMap::new(),
            away: false,
            bad_ends: Vec::new(),
        }
    }

    fn is_redis(&self) -> bool {
        self.settings.place.is_redis()
    }

    fn start(&mut self, slot: usize) -> Result<(), String> {
        let label = format!("m{slot}-{}", self.slots[slot].generation);
        let options = Options {
            label: label.clone(),
            store: self.ground.url(slot),
            ttl: self.settings.ttl,
            operation_timeout: self.settings.operation_timeout(),
            retry: self.settings.retry(),
            jobs: Jobs::All(self.settings.rate),
            without_ledger: self.settings.without_ledger,
            log: self.crew.log(&label),
        };
        let wall = Wall::in_folder(self.crew.folder(), &label);
        let environment = wall.as_ref().map_or_else(Vec::new, Wall::environment);
        let (generation, started) = (self.slots[slot].generation + 1, self.started);
        self.started += 1;
        self.slots[slot] = Slot { label: label.clone(), generation, wall, ..Slot::default() };
        let offset = if self.calm { 0 } else { offset_ms(self.settings.seed, started, self.is_redis()) };
        self.set_clock(slot, offset);
        self.crew.start_in(&label, &options, &environment).map_err(|error| error.to_string())?;
        self.tails.insert(label.clone(), Tail::new(self.crew.log(&label)));
        Ok(())
    }

    fn set_clock(&mut self, slot: usize, offset_ms: i64) {
        let Slot { label, wall: Some(wall), offset_ms: known, .. } = &mut self.slots[slot] else { return };
        let from_ns = now_ns();
        wall.jump_to_ms(offset_ms);
        *known = offset_ms;
        let at = Between { from_ns, to_ns: now_ns() };
        self.shifts.push(Shift { member: label.clone(), at, offset_us: offset_ms * 1_000 });
    }

    /// Reads what members have written.
    fn look(&mut self) -> Result<(), String> {
        for (label, tail) in &mut self.tails {
            let lines: Vec<Line> = tail.more().map_err(|error| format!("the log of {label}: {error}"))?;
            let all = self.members.entry(label.clone()).or_default();
            for line in &lines {
                self.progress.note(label, line);
            }
            all.extend(lines);
        }
        Ok(())
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            self.look()?;
            if done(self) {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                let written: Vec<_> =
                    self.crew.living().iter().map(|label| format!("{label}: {}", self.crew.written(label))).collect();
                return Err(format!("waited in vain until {what}; members wrote last:\n{}", written.join("\n")));
            }
            thread::sleep(LOOK);
        }
    }

    /// Each job has begun: from here on each of its ticks is expected.
    fn until_all_run(&mut self) -> Result<(), String> {
        self.until("all jobs run", |course| {
            let started = |lines: &Vec<Line>| lines.iter().any(|line| matches!(line, Line::Started { .. }));
            let members = course.members.values().filter(|lines| started(lines)).count();
            members == course.settings.processes && course.progress.all_have_begun(&course.jobs)
        })?;
        if !self.settings.without_ledger {
            let watched: Vec<_> = self.jobs.iter().filter(|job| !job.kind.has_no_excuse()).cloned().collect();
            self.witness = Some(Witness::of(Config::new(self.ground.plain_url()), &watched));
        }
        Ok(())
    }

    /// What this machine and the store do of themselves is noted, too.
    fn watch(&self) {
        let note = |what| {
            let troubles = Arc::downgrade(&self.troubles);
            move |pause: Option<(u64, u64)>| {
                let Some(troubles) = troubles.upgrade() else { return false };
                pause.into_iter().for_each(|pause| push(&troubles, None, what, pause));
                true
            }
        };
        self.ground.watch(note(What::Silence));
        watch_stalls(note(What::Halt));
    }

    fn faults(&mut self) -> Result<(), String> {
        let Settings { seed, processes, ttl, .. } = *self.settings;
        self.calm = false;
        for slot in 0..processes {
            self.set_clock(slot, offset_ms(seed, slot as u64, self.is_redis()));
        }
        let end = Instant::now() + self.settings.time();
        for planned in Plan::new(seed, processes, self.is_redis(), ttl) {
            self.pass_until(end.min(Instant::now() + planned.after))?;
            if Instant::now() >= end {
                break;
            }
            if self.strikes(planned)? {
                *self.struck.entry(planned.fault.name()).or_default() += 1;
            }
        }
        // What has not ended yet ends now, and all clocks are right: all finish in peace.
        self.calm = true;
        while let Some(end) = self.ends.pull() {
            self.end(end)?;
        }
        for slot in 0..processes {
            if self.slots[slot].offset_ms != 0 {
                self.set_clock(slot, 0);
            }
        }
        Ok(())
    }

    /// Lets time pass, and what is due meanwhile happen.
    fn pass_until(&mut self, until: Instant) -> Result<(), String> {
        self.look()?;
        while let Some(end) = self.ends.wait(until) {
            self.end(end)?;
            self.look()?;
        }
        Ok(())
    }

    /// Who leads, as far as is known; whoever runs, if nobody does.
    fn victim(&self, whom: Whom) -> Option<usize> {
        let runs = |slot: &usize| {
            let Slot { label, stopped, ending, .. } = &self.slots[*slot];
            stopped.is_none() && !ending && self.crew.living().contains(label)
        };
        let leader = self.progress.leader();
        let leads = |slot: &usize| leader == Some(self.slots[*slot].label.as_str());
        let slots = || (0..self.slots.len()).filter(runs);
        match whom {
            Whom::Slot(slot) => Some(slot).filter(runs),
            Whom::Leader => slots().find(leads).or_else(|| slots().next()),
        }
    }

    /// Whether it did: one that stands still is not stopped again, and the store restarts once at a time.
    fn strikes(&mut self, Planned { fault, whom, lasts, .. }: Planned) -> Result<bool, String> {
        if let Fault::KillAt(after_ms) | Fault::KillAtRare(after_ms) = fault {
            let Some(slot) = self.victim(whom) else { return Ok(false) };
            let period = if matches!(fault, Fault::KillAtRare(_)) { 5 } else { 1 };
            let shows = true_us() + self.slots[slot].offset_ms * 1_000;
            let (period, after) = (period * SECOND_US, after_ms * 1_000);
            let wait = period - (shows - after).rem_euclid(period);
            self.pass_until(Instant::now() + Duration::from_micros(wait.unsigned_abs()))?;
        }
        let Some(slot) = self.victim(whom) else { return Ok(false) };
        let (label, over) = (self.slots[slot].label.clone(), Instant::now() + lasts);
        match fault {
            Fault::KillAt(_) | Fault::KillAtRare(_) => {
                let Some(death) = self.crew.kill(&label) else { return Ok(false) };
                self.deaths.insert(label, death);
                self.witness.iter().for_each(Witness::look);
                self.ends.add(over, End::Start(slot));
            }
            Fault::Stop => {
                let from = now_ns();
                let Some(writing) = self.crew.stop(&label) else { return Ok(false) };
                self.slots[slot].stopped = Some((from, writing));
                self.ends.add(over, End::Continue(slot));
            }
            Fault::StepDown => self.crew.say(&label, STEP_DOWN),
            Fault::Restart => {
                self.crew.say(&label, FINISH);
                self.slots[slot].ending = true;
                self.ends.add(over, End::Start(slot));
            }
            Fault::Jump(by) => {
                let Slot { wall: Some(_), offset_ms, .. } = self.slots[slot] else { return Ok(false) };
                self.set_clock(slot, offset_ms + by);
                self.ends.add(over, End::Back(slot, label, offset_ms));
            }
            Fault::ServerRestart => {
                if self.away || self.ground.server().is_none() {
                    return Ok(false);
                }
                let from = now_ns();
                self.ground.server().into_iter().for_each(crate::redis::RedisServer::restart);
                push(&self.troubles, None, What::Silence, (from, now_ns()));
            }
            Fault::ServerStop => {
                let Some(server) = self.ground.server().filter(|_| !self.away) else { return Ok(false) };
                let from = now_ns();
                server.stop();
                self.away = true;
                self.ends.add(over, End::Store(fault, slot, from));
            }
            _ => {
                let Some(of_store) = fault.of_store(slot) else { return Ok(false) };
                let from = now_ns();
                // What is stopped takes no orders.
                if self.away || (of_store.network().is_some() && self.slots[slot].apart) {
                    return Ok(false);
                }
                if !self.ground.begin(of_store, lasts)? {
                    return Ok(false);
                }
                self.away = matches!(fault, Fault::PauseClients | Fault::HoldFile);
                self.slots[slot].apart |= of_store.network().is_some();
                self.ends.add(over, End::Store(fault, slot, from));
            }
        }
        Ok(true)
    }

    fn end(&mut self, end: End) -> Result<(), String> {
        match end {
            End::Start(slot) => {
                if self.slots[slot].ending {
                    let label = self.slots[slot].label.clone();
                    match self.crew.ended(&label) {
                        Some(status) if status.success() => {}
                        Some(_) => {
                            let wrote = self.crew.written(&label);
                            self.bad_ends.push(Violation::BadEnd { member: label, wrote });
                        }
                        None => {
                            // It takes its time.
                            self.ends.add(Instant::now() + LOOK, End::Start(slot));
                            thread::sleep(if self.calm { LOOK } else { Duration::ZERO });
                            return Ok(());
                        }
                    }
                }
                self.start(slot)?;
            }
            End::Continue(slot) => {
                let label = self.slots[slot].label.clone();
                if let Some((from, writing)) = self.slots[slot].stopped.take() {
                    self.crew.cont(&label);
                    push(&self.troubles, Some(&label), What::Halt, (from, now_ns()));
                    if writing {
                        push(&self.troubles, None, What::Silence, (from, now_ns()));
                    }
                }
            }
            End::Back(slot, label, offset_ms) => {
                if self.slots[slot].label == label {
                    self.set_clock(slot, offset_ms);
                }
            }
            End::Store(fault, slot, from) => {
                if fault == Fault::ServerStop {
                    self.ground.server().into_iter().for_each(|server| server.cont());
                }
                let of_store = fault.of_store(slot);
                of_store.into_iter().for_each(|fault| self.ground.end(fault));
                match of_store.and_then(crate::chaos::plan::Fault::network) {
                    None => {
                        self.away = false;
                        push(&self.troubles, None, What::Silence, (from, now_ns()));
                    }
                    Some(_) => {
                        self.slots[slot].apart = false;
                        // Of whoever was there meanwhile.
                        for generation in 0..self.slots[slot].generation {
                            let label = format!("m{slot}-{generation}");
                            push(&self.troubles, Some(&label), What::Silence, (from, now_ns()));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// All ticks up to this second have been begun or passed over, and what is to be run until it ends has ended; if that
    /// does not come about, the judge will find what is missing.
    fn until_all_is_done(&mut self, until: i64) -> Result<(), String> {
        let begin = Instant::now();
        self.until("all ticks are over", |course| {
            let done = course.progress.is_over(&course.jobs, until, course.settings.without_ledger);
            done || begin.elapsed() > PATIENCE / 2
        })
    }

    /// All members end; those that do not as they should.
    fn finish(&mut self) -> Result<(), String> {
        let mut living = self.crew.living();
        living.iter().for_each(|label| self.crew.say(label, FINISH));
        self.until("all members have ended", |course| {
            living.retain(|label| {
                let ended = course.crew.ended(label);
                if ended.is_some_and(|status| !status.success()) {
                    let wrote = course.crew.written(label);
                    course.bad_ends.push(Violation::BadEnd { member: label.clone(), wrote });
                }
                ended.is_none()
            });
            living.is_empty()
        })?;
        self.look()
    }

    fn report(mut self, expected: (i64, i64)) -> Result<Report, String> {
        let known = self.witness.take().map_or_else(|| Ok(Known::default()), Witness::finish)?;
        let troubles = std::mem::take(&mut *self.troubles.lock().unwrap_or_else(PoisonError::into_inner));
        let restarts = self.struck.get(Fault::ServerRestart.name()).copied().unwrap_or_default();
        let evidence = Evidence {
            jobs: self.jobs,
            members: self.members,
            deaths: self.deaths,
            shifts: self.shifts,
            troubles,
            losses: Vec::new(),
            known,
            bounds: Bounds {
                expected,
                own_clocks: !self.settings.place.is_redis(),
                ledger: !self.settings.without_ledger,
                restarts,
                news_ns: 0,
            },
        };
        let (figures, mut violations) = judge(&evidence);
        violations.extend(self.bad_ends);
        let logs = self.settings.logs.is_some().then_some(self.folder);
        let (seed, seconds, processes) =
            (self.settings.seed, self.settings.time().as_secs_f64(), evidence.members.len());
        Ok(Report { seed, seconds, processes, faults: self.struck, figures, violations, logs })
    }
}

fn push(troubles: &Mutex<Vec<Trouble>>, whom: Option<&str>, what: What, (from_ns, to_ns): (u64, u64)) {
    let trouble = Trouble { whom: whom.map(str::to_owned), what, from_ns, to_ns };
    troubles.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
}
