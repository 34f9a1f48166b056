//! Runs a soak: storms of faults, and in between all is mended, looked at and judged.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Report;
use super::check::Violation;
use super::check::ticks::Window;
use super::check::views::Struck;
use super::check::wear::{Sample, Wear};
use super::fleet::Fleet;
use super::ground::{Ground, Mend};
use super::history::History;
use super::member::{DRAIN, RESUME, STEP_DOWN, store};
use super::plan::{Fault, Plan, Planned, Whom};
use super::report::Figures;
use super::settings::{Place, Settings, Variant};
use crate::chaos::crew::{Between, Crew};
use crate::chaos::log::{nanos, now_ns, watch_stalls};
use crate::command::Agenda;
use crate::command::member::FINISH;
use crate::cron_chaos::Witness;
use crate::cron_chaos::judge::{Loss, Trouble, What};
use crate::cron_chaos::member::true_us;
use crate::process::Usage;

/// Faults come for so long, and then all is mended.
const STORM: Duration = Duration::from_secs(28);
/// Between two looks at what does not tell when it changes.
const LOOK: Duration = Duration::from_millis(50);
/// Between two lines that tell how far it is.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long anything is waited for that surely comes.
const PATIENCE: Duration = Duration::from_secs(90);
/// What is behind, and comes no nearer for so long, does not come: it was given up, or is lost.
const STUCK: Duration = Duration::from_secs(25);
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

/// What ends, and what began then.
struct End {
    what: Ending,
    fault: Fault,
    from_ns: u64,
}

enum Ending {
    /// A process begins in this slot.
    Start(usize),
    /// It goes on.
    Continue(usize),
    /// It competes again.
    Resume(usize),
    /// The store is mended.
    Mend(Mend),
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
}

/// Faults.
impl Course<'_> {
    fn faults(&mut self, end: Instant) -> Result<(), String> {
        while Instant::now() < end && !self.is_over() {
            let Some(planned) = self.plan.next() else { break };
            let at = end.min(Instant::now() + planned.after);
            while Instant::now() < at && !self.is_over() {
                self.pass(at.min(Instant::now() + 4 * LOOK))?;
            }
            if Instant::now() < end && !self.is_over() {
                let struck = self.strikes(planned)?;
                struck.into_iter().for_each(|fault| *self.faults.entry(fault.name()).or_default() += 1);
            }
        }
        Ok(())
    }

    /// What did strike: one that stands still is not stopped again, and a store has one trouble at a time.
    fn strikes(&mut self, Planned { fault, whom, group, lasts, .. }: Planned) -> Result<Option<Fault>, String> {
        let over = Instant::now() + lasts;
        if !fault.is_of_process() {
            let group = self.fleet.all_groups()[group].clone();
            let from_ns = now_ns();
            let Some(mend) = self.ground.begin(fault, &group, lasts)? else { return Ok(None) };
            self.history.fault("begins", fault, None);
            if fault.loses_memory() {
                // What was open by its claim is waited for no more.
                self.fleet.progress.forget_open(now_ns());
            }
            self.ends.add(over, End { what: Ending::Mend(mend), fault, from_ns });
            return Ok(Some(fault));
        }
        if let Fault::KillAt(after_ms) = fault {
            let wait = SECOND_US - (true_us() - after_ms * 1_000).rem_euclid(SECOND_US);
            self.pass(Instant::now() + Duration::from_micros(wait.unsigned_abs()))?;
        }
        let slot = match whom {
            Whom::Slot(slot) => Some(slot).filter(|slot| self.fleet.is_well(*slot)),
            Whom::Leader(group) => self.fleet.leader(&self.fleet.all_groups()[group]),
        };
        let Some(slot) = slot else { return Ok(None) };
        // The first process lives to the end, so that it shows what grows: whatever would end it stops it instead.
        let spared = slot == 0 && matches!(fault, Fault::Kill | Fault::KillAt(_) | Fault::Restart);
        let fault = if spared { Fault::Stop } else { fault };
        Ok(self.hurt(fault, slot, group, over).then_some(fault))
    }

    fn hurt(&mut self, fault: Fault, slot: usize, group: usize, over: Instant) -> bool {
        let (label, from_ns) = (self.fleet.slots[slot].label.clone(), now_ns());
        self.history.fault("begins", fault, Some(&label));
        let what = match fault {
            Fault::Kill | Fault::KillAt(_) => {
                let Some(death) = self.fleet.kill(slot) else { return false };
                self.window.deaths.insert(label, death);
                self.witness.iter().for_each(Witness::look);
                self.struck.push(Struck { name: fault.name(), from_ns, to_ns: death.to_ns });
                Ending::Start(slot)
            }
            Fault::Stop => {
                let Some(writing) = self.fleet.crew.stop(&label) else { return false };
                self.fleet.slots[slot].stopped = Some((from_ns, writing));
                Ending::Continue(slot)
            }
            Fault::StepDown => {
                let group = self.fleet.all_groups()[group].clone();
                self.fleet.crew.say(&label, &format!("{STEP_DOWN}{group}"));
                self.struck.push(Struck { name: fault.name(), from_ns, to_ns: now_ns() });
                return true;
            }
            Fault::Drain => {
                self.fleet.crew.say(&label, DRAIN);
                self.fleet.slots[slot].drained = true;
                Ending::Resume(slot)
            }
            _ => {
                self.fleet.crew.say(&label, FINISH);
                self.fleet.slots[slot].ending = true;
                Ending::Start(slot)
            }
        };
        self.ends.add(over, End { what, fault, from_ns });
        true
    }

    fn end(&mut self, End { what, fault, from_ns }: End) -> Result<(), String> {
        match what {
            Ending::Start(slot) => {
                let label = self.fleet.slots[slot].label.clone();
                if self.fleet.slots[slot].ending {
                    match self.fleet.crew.ended(&label) {
                        Some(status) if status.success() => {
                            self.struck.push(Struck { name: fault.name(), from_ns, to_ns: now_ns() });
                        }
                        Some(_) => self.bad_end(label.clone()),
                        None => {
                            // It takes its time.
                            self.ends.add(Instant::now() + LOOK, End { what: Ending::Start(slot), fault, from_ns });
                            return Ok(());
                        }
                    }
                }
                self.history.fault("ends", fault, Some(&label));
                self.start(slot)?;
            }
            Ending::Continue(slot) => {
                let label = self.fleet.slots[slot].label.clone();
                if let Some((from_ns, writing)) = self.fleet.cont(slot) {
                    let to_ns = now_ns();
                    push(&self.troubles, Some(&label), What::Halt, from_ns, to_ns);
                    if writing {
                        push(&self.troubles, None, What::Silence, from_ns, to_ns);
                    }
                    self.struck.push(Struck { name: fault.name(), from_ns, to_ns });
                    self.history.fault("ends", fault, Some(&label));
                }
            }
            Ending::Resume(slot) => {
                let label = self.fleet.slots[slot].label.clone();
                self.fleet.crew.say(&label, RESUME);
                self.fleet.slots[slot].drained = false;
                self.struck.push(Struck { name: fault.name(), from_ns, to_ns: now_ns() });
                self.history.fault("ends", fault, Some(&label));
            }
            Ending::Mend(mend) => {
                if let Some(rest) = self.ground.end(mend)? {
                    let waited = Duration::from_nanos(now_ns().saturating_sub(from_ns));
                    if waited > 4 * PATIENCE {
                        return Err(format!("the servers are not well {waited:.0?} after: {}", fault.name()));
                    }
                    self.ends.add(Instant::now() + 2 * LOOK, End { what: Ending::Mend(rest), fault, from_ns });
                    return Ok(());
                }
                self.mended(fault, from_ns);
            }
        }
        Ok(())
    }

    fn mended(&mut self, fault: Fault, from_ns: u64) {
        let to_ns = now_ns();
        match fault.network() {
            None => push(&self.troubles, None, What::Silence, from_ns, to_ns),
            // Of whoever was there meanwhile.
            Some(slot) => self.fleet.labels_of(slot).for_each(|label| {
                push(&self.troubles, Some(&label), What::Silence, from_ns, to_ns);
            }),
        }
        self.struck.push(Struck { name: fault.name(), from_ns, to_ns });
        self.history.fault("ends", fault, None);
        if matches!(fault, Fault::ServerKill) {
            self.window.restarts += 1;
        }
        if fault.loses_memory() {
            self.lost_memory(from_ns, to_ns);
        }
        self.look_for_promotions();
    }

    fn lost_memory(&mut self, from_ns: u64, to_ns: u64) {
        // By the clock of this host, which is that of its servers.
        let ago_us = i64::try_from(now_ns().saturating_sub(from_ns) / 1_000).unwrap_or(i64::MAX);
        let second = (true_us() - ago_us) / SECOND_US;
        self.window.losses.push(Loss { at: Between { from_ns, to_ns }, second });
        self.window.restarts += 1;
        self.figures.losses += 1;
        self.fleet.progress.forget_open(now_ns());
    }

    /// Servers may be replaced though nothing was done to them, on a busy machine.
    fn look_for_promotions(&mut self) {
        let now = (self.ground.identity(), now_ns());
        let (before, since_ns) = std::mem::replace(&mut self.identity, now);
        if before != self.identity.0 {
            self.lost_memory(since_ns, self.identity.1);
        }
    }

    fn bad_end(&mut self, member: String) {
        let wrote = self.fleet.crew.written(&member);
        self.violations.push(Violation::BadEnd { member, wrote });
    }
}

/// Peace.
impl Course<'_> {
    /// All faults end, and somebody leads each group.
    fn mend(&mut self) -> Result<(), String> {
        while let Some(end) = self.ends.pull() {
            let waits = matches!(end.what, Ending::Start(_) | Ending::Mend(_));
            self.end(end)?;
            if waits {
                self.pass(Instant::now() + LOOK)?;
            }
        }
        let calm_ns = now_ns();
        self.until(PATIENCE, |course| course.fleet.have_started())?;
        for group in self.fleet.all_groups() {
            if !self.until(PATIENCE, |course| course.fleet.views.is_led(&group, calm_ns))? {
                self.violations.push(Violation::NoLeader { group, waited: PATIENCE });
            }
        }
        self.look_for_promotions();
        Ok(())
    }

    /// All up to now is over, written down, and judged.
    fn judge(&mut self) -> Result<(), String> {
        let until = true_us() / SECOND_US;
        let without_ledger = self.settings.variant == Some(Variant::WithoutLedger);
        // As long as ticks are made up for, however slowly. What is missing after that is found by the judge.
        let mut last = (self.fleet.progress.lag(self.fleet.ticks.jobs(), until), Instant::now());
        self.until(Duration::MAX, |course| {
            let (progress, jobs) = (&course.fleet.progress, course.fleet.ticks.jobs());
            let lag = progress.lag(jobs, until);
            if lag != last.0 {
                last = (lag, Instant::now());
            }
            progress.is_over(jobs, until, without_ledger) || last.1.elapsed() > STUCK
        })?;
        self.order += 1;
        let order = self.order;
        self.fleet.order_flush(order);
        if !self.until(PATIENCE, |course| course.fleet.flushed(order).is_ok())?
            && let Err(member) = self.fleet.flushed(order)
        {
            let wrote = self.fleet.crew.written(&member);
            self.violations.push(Violation::NoAnswer { member, waited: PATIENCE, wrote });
        }
        let cut_ns = self.fleet.flushed(order).unwrap_or_else(|_| now_ns());
        self.sample();
        self.conclude(until, cut_ns)?;
        self.figures.windows += 1;
        Ok(())
    }

    /// Judges what was written before this instant, and forgets what nothing can contradict any more.
    fn conclude(&mut self, until: i64, cut_ns: u64) -> Result<(), String> {
        self.fleet.look()?;
        let gone = self.fleet.gone();
        let known = self.witness.as_mut().map_or_else(|| Ok(Default::default()), Witness::take)?;
        let new = std::mem::take(&mut *self.troubles.lock().unwrap_or_else(PoisonError::into_inner));
        self.window.troubles.extend(new);
        let groups = self.fleet.all_groups();
        let Fleet { views, ticks, locks, progress, .. } = &mut self.fleet;
        self.violations.extend(views.judge());
        self.violations.extend(locks.judge(&self.window.losses, nanos(self.settings.ttl)));
        self.violations.extend(ticks.judge(until, cut_ns, &self.window, known, &gone));
        for (name, after_ns) in views.recovery(&groups, &self.struck) {
            self.figures.led_again.entry(name).or_default().add(Duration::from_nanos(after_ns));
        }
        views.forget_before(cut_ns);
        locks.forget_before(cut_ns, &gone);
        progress.forget_before(until);
        self.struck.clear();
        let back_ns = cut_ns.saturating_sub(nanos(4 * STORM));
        self.window.deaths.retain(|_, death| death.to_ns >= back_ns);
        self.window.troubles.retain(|trouble| trouble.to_ns >= back_ns);
        self.window.losses.retain(|loss| loss.at.to_ns >= back_ns);
        if self.window.losses.is_empty() {
            self.window.restarts = 0;
        }
        (self.figures.terms, self.figures.leader_changes) = (views.terms, views.changes);
        self.figures.ticks = ticks.figures.clone();
        self.figures.locks = locks.counts;
        self.fleet.forget(&gone);
        Ok(())
    }

    fn sample(&mut self) {
        let Some(usage) = self.fleet.crew.usage(&self.fleet.slots[0].label) else { return };
        let servers = self.ground.servers();
        let memory = |server: &crate::redis::RedisServer| server.used_memory() / 1024;
        self.samples.push(Sample {
            threads: usage.threads as u64,
            descriptors: usage.descriptors as u64,
            resident_kib: usage.resident_kib,
            connections: servers.iter().map(|server| server.connections() as u64).sum(),
            server_kib: servers.iter().map(|server| memory(server)).sum(),
            checker_kib: Usage::of(std::process::id()).map_or(0, |usage| usage.resident_kib),
        });
    }

    /// All end as they should.
    fn finish(&mut self) -> Result<(), String> {
        let mut living = self.fleet.crew.living();
        living.iter().for_each(|label| self.fleet.crew.say(label, FINISH));
        let mut bad = Vec::new();
        self.until(PATIENCE, |course| {
            living.retain(|label| {
                let ended = course.fleet.crew.ended(label);
                if ended.is_some_and(|status| !status.success()) {
                    bad.push(label.clone());
                }
                ended.is_none()
            });
            living.is_empty()
        })?;
        bad.into_iter().chain(living).for_each(|label| self.bad_end(label));
        // No tick is expected any more; who led and who held a lock to the end is judged.
        if self.violations.is_empty() {
            self.conclude(self.fleet.ticks.until(), now_ns())?;
        }
        if let Some(witness) = self.witness.take() {
            witness.finish()?;
        }
        Ok(())
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
