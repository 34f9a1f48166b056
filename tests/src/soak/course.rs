//! Runs a soak: storms of faults, and in between all is mended, looked at and judged.

mod faults;
mod peace;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use self::faults::End;
use super::Report;
use super::check::Violation;
use super::check::ticks::Window;
use super::check::views::Struck;
use super::check::wear::{Sample, Wear};
use super::fleet::Fleet;
use super::ground::Ground;
use super::history::History;
use super::member::store;
use super::plan::Plan;
use super::report::Figures;
use super::settings::{Place, Settings, Variant};
use crate::chaos::crew::Crew;
use crate::chaos::log::{now_ns, watch_stalls};
use crate::command::Agenda;
use crate::cron_chaos::Witness;
use crate::cron_chaos::judge::{Trouble, What};
use crate::cron_chaos::member::true_us;

/// Faults come for so long, and then all is mended.
const STORM: Duration = Duration::from_secs(28);
/// Between two looks at what does not tell when it changes.
const LOOK: Duration = Duration::from_millis(50);
/// Between two lines that tell how far it is.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long anything is waited for that surely comes.
const PATIENCE: Duration = Duration::from_secs(90);
const SECOND_US: i64 = 1_000_000;

/// Runs it in this folder, for its logs. `None`: no Redis server is installed.
pub(super) fn run(
    settings: &Settings,
    program: &Path,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Option<Report>, String> {
    let own = tempfile::tempdir().map_err(|error| error.to_string())?;
    let crew = Crew::new(program, folder).map_err(|error| error.to_string())?;
    let Some(ground) = Ground::open(&settings.place, own.path(), settings.processes())? else { return Ok(None) };
    let history = History::begin(folder, settings).map_err(|error| error.to_string())?;
    let mut course = Course::new(settings, crew, ground, history, stop);
    let done = course.all();
    let logs = course.ground.save_logs(folder);
    done?;
    logs.map_err(|error| format!("the logs of the servers cannot be written: {error}"))?;
    course.report(folder).map(Some)
}

struct Course<'a> {
    settings: &'a Settings,
    stop: &'a AtomicBool,
    // Before the ground: members go first.
    fleet: Fleet<'a>,
    witness: Option<Witness>,
    ground: Ground,
    history: History,
    plan: Plan,
    ends: Agenda<End>,
    window: Window,
    struck: Vec<Struck>,
    /// Who the primaries were, and when.
    identity: (Vec<usize>, u64),
    troubles: Arc<Mutex<Vec<Trouble>>>,
    samples: Vec<Sample>,
    figures: Figures,
    faults: std::collections::BTreeMap<&'static str, u64>,
    violations: Vec<Violation>,
    begun: Instant,
    told: Instant,
    order: u64,
    /// When was looked last whether two lead at once, and that they do: then it ends.
    alarm: (Instant, bool),
}

impl<'a> Course<'a> {
    fn new(settings: &'a Settings, crew: Crew, ground: Ground, history: History, stop: &'a AtomicBool) -> Self {
        let fleet = Fleet::new(settings, crew, ground.groups());
        let groups = fleet.all_groups().len();
        let foreign = matches!(settings.place, Place::Foreign(_));
        let figures = Figures {
            store: settings.place.name(),
            only_processes: foreign,
            bound: settings.bound(),
            command: settings.command(),
            ..Figures::default()
        };
        Self {
            settings,
            stop,
            plan: Plan::new(settings.seed, &settings.place, settings.processes(), groups, settings.ttl),
            fleet,
            witness: None,
            identity: (ground.identity(), now_ns()),
            ground,
            history,
            ends: Agenda::default(),
            window: Window::default(),
            struck: Vec::new(),
            troubles: Arc::default(),
            samples: Vec::new(),
            figures,
            faults: std::collections::BTreeMap::new(),
            violations: Vec::new(),
            begun: Instant::now(),
            told: Instant::now(),
            order: 0,
            alarm: (Instant::now(), false),
        }
    }

    fn all(&mut self) -> Result<(), String> {
        for slot in 0..self.settings.processes() {
            self.start(slot)?;
        }
        self.until_all_run()?;
        self.watch();
        self.begun = Instant::now();
        self.tell("begins");
        let end = self.begun + self.settings.time;
        while Instant::now() < end && !self.is_over() {
            self.ground.snapshot();
            self.faults(end.min(Instant::now() + STORM))?;
            self.mend()?;
            self.judge()?;
        }
        self.figures.ended_early = self.is_stopped();
        self.finish()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn is_over(&self) -> bool {
        self.is_stopped() || self.alarm.1 || !self.violations.is_empty()
    }

    fn start(&mut self, slot: usize) -> Result<(), String> {
        let url = self.ground.url(slot);
        self.fleet.start(slot, url, self.figures.only_processes)
    }

    /// Each job has begun: from the next second on each of its ticks is expected.
    fn until_all_run(&mut self) -> Result<(), String> {
        let all = |course: &mut Self| {
            course.fleet.have_started() && course.fleet.progress.all_have_begun(course.fleet.ticks.jobs())
        };
        if !self.until(PATIENCE, all)? {
            return Err(format!("the processes do not all begin; they wrote last:\n{}", self.written()));
        }
        self.fleet.ticks.begin(true_us() / SECOND_US + 1, now_ns());
        if self.settings.variant != Some(Variant::WithoutLedger) {
            let config = store(&self.ground.plain_url(), self.figures.only_processes);
            self.witness = Some(Witness::of(config, self.fleet.ticks.jobs()));
        }
        Ok(())
    }

    fn written(&self) -> String {
        let crew = &self.fleet.crew;
        let of = |label: &String| format!("{label}:\n{}", crew.written(label));
        crew.living().iter().map(of).collect::<Vec<_>>().join("\n")
    }

    /// What this machine and a server do of themselves is noted, too.
    fn watch(&self) {
        let note = |what| {
            let troubles = Arc::downgrade(&self.troubles);
            move |pause: Option<(u64, u64)>| {
                let Some(troubles) = troubles.upgrade() else { return false };
                pause.into_iter().for_each(|(from_ns, to_ns)| push(&troubles, None, what, from_ns, to_ns));
                true
            }
        };
        self.ground.watch(note(What::Silence));
        watch_stalls(note(What::Halt));
    }

    /// Waits for it; whether it came about.
    fn until(&mut self, patience: Duration, mut done: impl FnMut(&mut Self) -> bool) -> Result<bool, String> {
        let begin = Instant::now();
        loop {
            self.pass(Instant::now() + LOOK)?;
            if done(self) {
                return Ok(true);
            }
            if begin.elapsed() > patience {
                return Ok(false);
            }
        }
    }

    /// Lets time pass, and what is due meanwhile happen.
    fn pass(&mut self, until: Instant) -> Result<(), String> {
        loop {
            self.fleet.look()?;
            if self.alarm.0.elapsed() >= Duration::from_secs(1) {
                self.alarm = (Instant::now(), !self.fleet.views.judge().is_empty());
            }
            if self.told.elapsed() >= PROGRESS {
                self.tell("");
            }
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            while let Some(end) = self.ends.wait(until.min(now + 4 * LOOK)) {
                self.end(end)?;
            }
        }
    }

    /// How far it is.
    #[allow(clippy::print_stderr, reason = "a command's output")]
    fn tell(&mut self, what: &str) {
        self.told = Instant::now();
        let Figures { leader_changes, ticks, .. } = &self.figures;
        let faults: u64 = self.faults.values().sum();
        let place = if self.figures.only_processes { ", and hurts processes only" } else { "" };
        let what = if what.is_empty() {
            String::new()
        } else {
            let (seed, processes, store) = (self.settings.seed, self.settings.processes(), self.settings.place.name());
            format!("; {what} with seed {seed} and {processes} processes on {store}{place}")
        };
        eprintln!(
            "soak: {:.0} s of {:.0}, {faults} faults; judged: {leader_changes} changes of leader, {} ticks, {} violations{what}",
            self.begun.elapsed().as_secs_f64(),
            self.settings.time.as_secs_f64(),
            ticks.all.ran,
            self.violations.len(),
        );
    }

    fn report(mut self, folder: &Path) -> Result<Report, String> {
        self.figures.wear = Wear::of(&self.samples);
        self.violations.extend(self.figures.wear.judge());
        let logs = (!self.violations.is_empty()).then(|| folder.to_owned());
        let report = Report {
            seed: self.settings.seed,
            seconds: self.begun.elapsed().as_secs_f64(),
            processes: self.fleet.processes(),
            faults: self.faults,
            figures: self.figures,
            violations: self.violations,
            logs,
        };
        self.history.end(&report).map_err(|error: io::Error| format!("the report cannot be written: {error}"))?;
        Ok(report)
    }
}

fn push(troubles: &Mutex<Vec<Trouble>>, whom: Option<&str>, what: What, from_ns: u64, to_ns: u64) {
    let trouble = Trouble { whom: whom.map(str::to_owned), what, from_ns, to_ns };
    troubles.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
}
