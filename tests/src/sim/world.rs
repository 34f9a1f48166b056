//! One simulated fleet: instances with their clocks and drivers, the network, the store.
//!
//! The world plays the driver by the contract of [`Election`]: it polls when `next` says, sends what comes out at once,
//! hands back each answer or its time-out, and keeps at most one request in flight.

use std::collections::VecDeque;
use std::time::Duration;

use leader_core::store::{Answer, Command};
use leader_core::testing::election::{Election, Event, Failure, Next, Notice, RequestNo};
use leader_core::{BootInstant, Candidate, GroupName, Incarnation, InstanceId};

use super::agenda::Agenda;
use super::backend::{Backend, Memory};
use super::checker::Checker;
use super::clock::Clock;
use super::cluster::Cluster;
use super::report::Report;
use super::rng::Rng;
use super::settings::{Settings, Variant};
use super::topology::{Servers, ServersTurn};

/// The last lines before a failure that are kept.
const TRACE_LINES: usize = 48;
/// A follower asks up to so much later than it could, so that followers do not move in step.
const FOLLOWER_DELAY: Duration = Duration::from_millis(20);

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Its figures.
    pub report: Report,
    /// The last things that happened before the first failure, if they were asked for.
    pub trace: Vec<String>,
}

/// Runs the world of this seed to its end; with `trace`, up to the first failure only, keeping what led to it.
///
/// # Panics
/// If the election breaks its contract with the driver: asks to be polled at an instant that has come, and does nothing.
#[must_use]
pub fn run(settings: &Settings, seed: u64, trace: bool) -> Outcome {
    World::new(settings, seed, trace).run()
}

/// Something that is going to happen.
#[derive(Debug)]
pub(super) enum Happening {
    /// The driver of an instance comes back, as it planned when it planned for the so-manieth time.
    Wake(usize, u32),
    /// A request gets to the store.
    Request { from: Sender, node: usize, connection: u32, command: Command },
    /// An answer gets to an instance.
    Answer(Sender, Answer),
    /// An instance waits no longer for an answer.
    Timeout(Sender),
    /// An announced release gets to an instance.
    Announced(usize),
    /// The next fault is due.
    Fault,
    /// An instance that stood still goes on.
    GoesOn(usize),
    /// An instance's connection is whole again.
    Reconnected(usize),
    /// An instance starts again, with its old id or a new one.
    Starts { instance: usize, same_id: bool },
    /// A process that takes too long to stop is killed.
    Killed { instance: usize, start: u32 },
    /// An instance that stood aside resumes.
    Resumes { instance: usize, start: u32 },
    /// This server of the store is back.
    StoreBack(usize),
    /// Something happens among the servers.
    Cluster(ServersTurn),
}

/// Which request of which process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    pub(super) instance: usize,
    /// Which start of it.
    pub(super) start: u32,
    pub(super) no: RequestNo,
}

pub(super) struct Instance {
    pub(super) candidate: Candidate,
    /// None while no process runs.
    pub(super) election: Option<Election>,
    pub(super) clock: Clock,
    pub(super) start: u32,
    /// Paused, or its driver gets no processor time.
    pub(super) still: bool,
    /// What has come meanwhile.
    pub(super) deferred: Vec<Happening>,
    /// What it sends is lost or held up.
    pub(super) cut_out: bool,
    /// What is sent to it is lost or held up.
    pub(super) cut_back: bool,
    /// Ends as soon as nothing is left to send.
    pub(super) leaving: bool,
    planned: Option<Next>,
    wake: u32,
}

pub(super) struct World<'a> {
    pub(super) settings: &'a Settings,
    pub(super) rng: Rng,
    pub(super) now: u64,
    pub(super) end: u64,
    /// No fault from here on.
    pub(super) quiet_from: u64,
    pub(super) agenda: Agenda<Happening>,
    pub(super) instances: Vec<Instance>,
    pub(super) cluster: Servers,
    pub(super) snapshots: VecDeque<Memory>,
    pub(super) report: Report,
    pub(super) checker: Checker,
    pub(super) group: GroupName,
    ids: u32,
    seed: u64,
    notices: Vec<Notice>,
    pub(super) trace: Option<VecDeque<String>>,
}

impl<'a> World<'a> {
    fn new(settings: &'a Settings, seed: u64, trace: bool) -> Self {
        let mut rng = Rng::new(seed);
        let end = settings.run.as_nanos() as u64;
        let longest = settings.longest_ttl().as_nanos() as u64;
        let store_ppm = drift(&mut rng, settings.drift_ppm);
        let mut world = Self {
            settings,
            now: 0,
            end,
            quiet_from: end.saturating_sub(10 * longest),
            agenda: Agenda::new(),
            instances: Vec::new(),
            cluster: servers(settings, &mut rng, store_ppm),
            snapshots: VecDeque::new(),
            report: Report { runs: 1, simulated: end, ..Report::default() },
            checker: Checker::new(settings.instances),
            group: GroupName::new(GroupName::DEFAULT).expect("a valid name"),
            ids: 0,
            seed,
            notices: Vec::new(),
            trace: trace.then(VecDeque::new),
            rng,
        };
        for instance in 0..settings.instances {
            let offset = world.rng.between(1_000_000_000, 1_000_000_000_000_000) as u64;
            let clock = Clock::new(offset, drift(&mut world.rng, settings.drift_ppm));
            let clock = if settings.variant == Some(Variant::WallClock) { clock.wall() } else { clock };
            let id =
                if settings.twins && instance == 1 { world.instances[0].candidate.id.clone() } else { world.new_id() };
            world.instances.push(Instance {
                candidate: Candidate { id, incarnation: Incarnation::from_u128(0) },
                election: None,
                clock,
                start: 0,
                still: false,
                deferred: Vec::new(),
                cut_out: false,
                cut_back: false,
                leaving: false,
                planned: None,
                wake: 0,
            });
            world.agenda.add(0, Happening::Starts { instance, same_id: true });
        }
        world.plan_fault();
        world
    }

    fn run(mut self) -> Outcome {
        while let Some((at, happening)) = self.agenda.pop() {
            if at > self.end || self.trace.is_some() && self.report.failure.is_some() {
                break;
            }
            self.now = at;
            self.happen(happening);
            self.heed_cluster();
        }
        self.checker.finish(self.end);
        let (checker, mut report) = (self.checker, self.report);
        report.overlaps = checker.overlaps;
        report.longest_overlap = checker.longest_overlap;
        report.bad_terms = checker.bad_terms;
        report.led = checker.led;
        report.longest_gap = checker.longest_gap;
        report.handovers = checker.handovers;
        report.handover_gaps = checker.handover_gaps;
        report.stuck = u64::from(!checker.led_after((self.quiet_from + self.end) / 2));
        Outcome { report, trace: self.trace.unwrap_or_default().into() }
    }

    fn happen(&mut self, happening: Happening) {
        let instance = match &happening {
            Happening::Wake(instance, _) | Happening::Announced(instance) => Some(*instance),
            Happening::Answer(sender, _) | Happening::Timeout(sender) => Some(sender.instance),
            Happening::Resumes { instance, .. } => Some(*instance),
            _ => None,
        };
        if let Some(instance) = instance.map(|i| &mut self.instances[i]).filter(|i| i.still) {
            instance.deferred.push(happening);
            return;
        }
        match happening {
            Happening::Wake(instance, wake) => self.wake(instance, wake),
            Happening::Request { from, node, connection, command } => self.at_store(from, node, connection, command),
            Happening::Answer(Sender { instance, start, no }, answer) => {
                if self.instances[instance].start == start {
                    self.handle(instance, Event::Answered(no, answer));
                }
            }
            Happening::Timeout(Sender { instance, start, no }) => {
                if self.instances[instance].start == start {
                    self.handle(instance, Event::Failed(no, Failure::Passing));
                }
            }
            Happening::Announced(instance) => self.handle(instance, Event::Announced),
            Happening::Resumes { instance, start } => {
                if self.instances[instance].start == start {
                    self.say(instance, || "resumes".to_owned());
                    self.handle(instance, Event::Resume);
                }
            }
            Happening::Starts { instance, same_id } => self.start(instance, same_id),
            other => self.upheaval(other),
        }
    }

    /// The driver comes back.
    fn wake(&mut self, i: usize, wake: u32) {
        let instance = &mut self.instances[i];
        let Some(election) = instance.election.as_mut().filter(|_| instance.wake == wake) else { return };
        let now = instance.clock.read(self.now);
        let before = election.next();
        let request = election.poll(now, &mut self.notices);
        let did_nothing =
            request.is_none() && election.next() == before && earliest(before).is_some_and(|at| at <= now);
        if did_nothing && self.settings.variant.is_some() {
            return;
        }
        assert!(!did_nothing, "seed {}: polled at {now:?} for {before:?}, nothing changes: {election:?}", self.seed);
        instance.planned = None;
        let start = instance.start;
        if let Some(request) = request {
            self.say(i, || format!("asks {:?}", request.command.op));
            self.send(Sender { instance: i, start, no: request.no }, request.command);
        }
        self.settle(i);
    }

    /// Hands an event to an election.
    pub(super) fn handle(&mut self, i: usize, event: Event) {
        let instance = &mut self.instances[i];
        let Some(election) = &mut instance.election else { return };
        let now = instance.clock.read(self.now);
        if let (Some(trace), Event::Answered(..) | Event::Failed(..)) = (&mut self.trace, &event) {
            push(trace, self.now, &format!("{i} {:?} hears {event:?}", instance.candidate));
        }
        election.handle(now, event, &mut self.notices);
        self.settle(i);
    }

    /// Does what a driver does after each event.
    pub(super) fn settle(&mut self, i: usize) {
        let mut notices = std::mem::take(&mut self.notices);
        for notice in notices.drain(..) {
            self.say(i, || format!("{notice:?}"));
            if notice == Notice::Duplicate {
                self.report.duplicates += 1;
                // Somebody looks at it, and starts it again.
                let later = self.rng.around(self.settings.ttl(i) * 20);
                let start = self.instances[i].start;
                self.agenda.add(self.now + later, Happening::Killed { instance: i, start });
            }
        }
        self.notices = notices;
        self.observe(i);
        self.plan(i);
        let instance = &self.instances[i];
        if instance.leaving && instance.election.as_ref().is_some_and(Election::is_quiet) {
            self.say(i, || "has stopped".to_owned());
            self.process_ends(i);
        }
    }

    /// Tells the checker what an instance's gate answers from now on.
    pub(super) fn observe(&mut self, i: usize) {
        let Instance { election, clock, .. } = &self.instances[i];
        let view = election.as_ref().and_then(|election| election.view(clock.read(self.now)));
        let believed = view.map(|(term, deadline)| match self.settings.variant {
            Some(Variant::NoDeadline) => (term.get(), u64::MAX),
            _ => (term.get(), clock.when(deadline)),
        });
        if let Some(wrong) = self.checker.view(self.now, i, believed) {
            self.wrong(wrong);
        }
    }

    /// Plans when the driver comes back.
    pub(super) fn plan(&mut self, i: usize) {
        let instance = &mut self.instances[i];
        let Some(election) = &instance.election else { return };
        let next = election.next();
        if instance.planned == Some(next) {
            return;
        }
        instance.planned = Some(next);
        instance.wake += 1;
        let now = instance.clock.read(self.now);
        let at = match next {
            Next::Idle | Next::Waiting(None) => return,
            Next::Waiting(Some(at)) => at,
            Next::Renew { earliest, latest } | Next::Retry { earliest, latest } => {
                earliest.saturating_add(Duration::from_nanos(self.rng.below(latest.saturating_since(earliest))))
            }
            Next::At(at) if at > now && election.view(now).is_none() => {
                at.saturating_add(Duration::from_nanos(self.rng.below(FOLLOWER_DELAY)))
            }
            Next::At(at) => at,
        };
        self.agenda.add(instance.clock.when(at).max(self.now), Happening::Wake(i, instance.wake));
    }

    pub(super) fn process_ends(&mut self, i: usize) {
        let instance = &mut self.instances[i];
        instance.election = None;
        instance.still = false;
        instance.leaving = false;
        instance.deferred.clear();
        self.observe(i);
        let later = self.rng.below(self.settings.ttl(0) * 2);
        let same_id = self.settings.twins || self.rng.chance(0.5);
        self.agenda.add(self.now + later, Happening::Starts { instance: i, same_id });
    }

    fn start(&mut self, i: usize, same_id: bool) {
        let id = if same_id { self.instances[i].candidate.id.clone() } else { self.new_id() };
        let instance = &mut self.instances[i];
        instance.start += 1;
        let incarnation = Incarnation::from_u128((i as u128) << 32 | u128::from(instance.start));
        instance.candidate = Candidate { id, incarnation };
        let (now, rules) = (instance.clock.read(self.now), self.settings.rules(i));
        instance.election = Some(Election::new(self.group.clone(), instance.candidate.clone(), rules, now));
        instance.planned = None;
        self.say(i, || "starts".to_owned());
        self.settle(i);
    }

    fn new_id(&mut self) -> InstanceId {
        self.ids += 1;
        InstanceId::new(format!("i{}", self.ids)).expect("a valid id")
    }

    /// Plans the next fault.
    pub(super) fn plan_fault(&mut self) {
        let later = self.rng.around(self.settings.ttl(0).mul_f64(self.settings.fault_gap));
        self.agenda.add(self.now + later, Happening::Fault);
    }

    /// Replans after a clock was set.
    pub(super) fn clock_was_set(&mut self, i: usize) {
        self.instances[i].planned = None;
        self.observe(i);
        self.plan(i);
    }

    /// Keeps a line of an instance's doings, if lines are kept.
    pub(super) fn say(&mut self, i: usize, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            push(trace, self.now, &format!("{i} {:?} {}", self.instances[i].candidate, line()));
        }
    }

    /// Keeps a line of what befalls the store.
    pub(super) fn say_store(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            push(trace, self.now, &format!("  store: {}", line()));
        }
    }

    pub(super) fn wrong(&mut self, what: String) {
        if let Some(trace) = &mut self.trace {
            push(trace, self.now, &format!("!! {what}"));
        }
        let at = Duration::from_nanos(self.now);
        self.report.failure.get_or_insert_with(|| (self.seed, format!("at {at:.6?}: {what}")));
    }

    /// Whether an instance's gate answers yes.
    pub(super) fn leads(&self, i: usize) -> bool {
        let Instance { election, clock, .. } = &self.instances[i];
        election.as_ref().is_some_and(|election| election.view(clock.read(self.now)).is_some())
    }
}

pub(super) fn push(trace: &mut VecDeque<String>, now: u64, line: &str) {
    if trace.len() == TRACE_LINES {
        trace.pop_front();
    }
    trace.push_back(format!("{:12.6} {line}", now as f64 / 1e9));
}

/// The store's servers, whose clocks differ a little, and not more with time: were that of a promoted server far behind, a term
/// could be handed out that is no larger than one of which nobody has heard. That is a limit that is stated.
fn servers(settings: &Settings, rng: &mut Rng, ppm: i64) -> Servers {
    // About the microseconds since 1970, so that terms look as they do in life.
    let clock = Clock::new(1_700_000_000_000_000_000, ppm).wall();
    let mut all = vec![(Backend::new(settings), clock)];
    for _ in 0..settings.replicas {
        let mut clock = clock;
        clock.set(rng.between(-2_000_000, 2_000_000));
        all.push((Backend::new(settings), clock));
    }
    let by_run_alone = settings.variant == Some(Variant::RunIdOnly);
    Cluster::new(all, settings.instances, settings.wait, settings.longest_ttl(), by_run_alone)
}

/// Up to `ppm` in either direction; often the utmost, where the guard matters most.
fn drift(rng: &mut Rng, ppm: u32) -> i64 {
    let ppm = i64::from(ppm);
    match rng.index(4) {
        0 => ppm,
        1 => -ppm,
        _ => rng.between(-ppm, ppm),
    }
}

fn earliest(next: Next) -> Option<BootInstant> {
    match next {
        Next::Idle | Next::Waiting(None) => None,
        Next::Waiting(Some(at)) | Next::At(at) => Some(at),
        Next::Renew { earliest, .. } | Next::Retry { earliest, .. } => Some(earliest),
    }
}
