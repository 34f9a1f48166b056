//! One simulated fleet with its jobs: hosts, the network, the store.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use leader_core::store::{Answer, Command, LockCommand, TickAnswer, TickCommand, TickReply};
use leader_core::testing::election::Event;
use leader_core::testing::lock::AskedNo;
use leader_core::{GroupName, InstanceId};

use super::checker::Checker;
use super::election::Voter;
use super::faults::Fault;
use super::host::{Asker, Host};
use super::jobs::{GROUPS, Job, jobs};
use super::ledger::Memory;
use super::lock_judge::LockJudge;
use super::locks::{LockEvent, Locker};
use super::report::Report;
use super::settings::Settings;
use super::topology::{Link, Servers, ServersTurn, servers};
use crate::sim::agenda::Agenda;
use crate::sim::checker::Checker as Leaders;
use crate::sim::clock::Clock;
use crate::sim::fault_set::Kind as _;
use crate::sim::rng::Rng;

/// A round hour in the year 2027, in microseconds since 1970.
const EPOCH_US: u64 = 1_800_000_000_000_000;

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Its figures.
    pub report: Report,
    /// What happened around the first failure, if it was asked for.
    pub trace: Vec<String>,
}

/// Runs the world of this seed to its end. `trace`: keeps the lines of what happened that hold one of these words.
///
/// # Panics
/// If a course tells what cannot be.
#[must_use]
pub fn run(settings: &Settings, seed: u64, trace: Option<&[String]>) -> Outcome {
    World::new(settings, seed, trace).run()
}

/// Something that is going to happen.
#[derive(Debug)]
pub(super) enum Happening {
    ElectionWake {
        host: usize,
        start: u32,
        group: usize,
        wake: u32,
    },
    CourseWake {
        host: usize,
        start: u32,
        member: usize,
        wake: u32,
    },
    LeaseRequest {
        from: Voter,
        to: Link,
        command: Command,
    },
    LeaseAnswer(Voter, Answer),
    LeaseTimeout(Voter),
    Announced(usize, usize),
    TickRequest {
        from: Asker,
        to: Link,
        job: usize,
        command: TickCommand,
    },
    TickAnswer(Asker, TickAnswer),
    TickTimeout(Asker, Option<TickReply>),
    /// A body's task is polled for the first time; its body ends by itself.
    Begins {
        host: usize,
        start: u32,
        nonce: u128,
    },
    Ends {
        host: usize,
        start: u32,
        nonce: u128,
    },
    /// The next fault is due.
    Fault,
    GoesOn(usize),
    Reconnected(usize),
    Starts(usize),
    /// Who leads is killed.
    LeaderKilled,
    Killed {
        host: usize,
        start: u32,
    },
    /// A process is asked to stop, and started again as this version.
    Stops {
        host: usize,
        version: usize,
    },
    GraceOver {
        host: usize,
        start: u32,
    },
    StoreBack(usize),
    Resumed(usize),
    /// Something happens among the servers.
    Cluster(ServersTurn),
    Lock(LockEvent),
    LockRequest {
        from: Locker,
        no: AskedNo,
        to: Link,
        key: usize,
        command: LockCommand,
    },
}

pub(super) struct World<'a> {
    pub(super) settings: &'a Settings,
    pub(super) rng: Rng,
    pub(super) now: u64,
    pub(super) end: u64,
    pub(super) quiet_from: u64,
    pub(super) agenda: Agenda<Happening>,
    pub(super) hosts: Vec<Host>,
    pub(super) jobs: Vec<Job>,
    pub(super) groups: Vec<GroupName>,
    pub(super) cluster: Servers,
    /// What the store's clock has shown at most, in microseconds, before it was set last.
    pub(super) store_peak: u64,
    pub(super) snapshots: VecDeque<(u64, Memory)>,
    pub(super) truth_us: u64,
    pub(super) checker: Checker,
    /// Who leads, by group.
    pub(super) leaders: Vec<Leaders>,
    pub(super) lock_judge: LockJudge,
    pub(super) report: Report,
    pub(super) seed: u64,
    ids: u32,
    trace: Option<(&'a [String], RefCell<Vec<String>>)>,
}

impl<'a> World<'a> {
    fn new(settings: &'a Settings, seed: u64, trace: Option<&'a [String]>) -> Self {
        let mut rng = Rng::new(seed);
        let end = settings.run.as_nanos() as u64;
        let ppm = i64::from(settings.drift_ppm);
        let store_clock = Clock::new(EPOCH_US * 1000, rng.between(-ppm, ppm)).wall();
        let jobs = jobs();
        let more = if settings.more_instances > 0 { rng.index(settings.more_instances + 1) } else { 0 };
        let instances = settings.instances + more;
        let mut world = Self {
            settings,
            now: 0,
            end,
            quiet_from: end.saturating_sub(settings.quiet.as_nanos() as u64),
            agenda: Agenda::new(),
            hosts: Vec::new(),
            groups: GROUPS.iter().map(|name| GroupName::new(*name).expect("a valid name")).collect(),
            cluster: servers(settings, &mut rng, store_clock, jobs.len(), instances),
            store_peak: 0,
            snapshots: VecDeque::new(),
            truth_us: EPOCH_US,
            checker: Checker::new(jobs.len()),
            leaders: GROUPS.iter().map(|_| Leaders::new(instances)).collect(),
            lock_judge: LockJudge::default(),
            jobs,
            report: Report { runs: 1, simulated: end, ..Report::default() },
            seed,
            ids: 0,
            trace: trace.map(|words| (words, RefCell::default())),
            rng,
        };
        for host in 0..instances {
            let offset = world.rng.between(1_000_000_000, 1_000_000_000_000_000) as u64;
            let clock = Clock::new(offset, world.rng.between(-ppm, ppm));
            let skew = settings.skew.as_micros() as i64;
            let version = world.rng.index(2);
            world.hosts.push(Host {
                clock,
                wall: world.rng.between(-skew, skew),
                start: 0,
                process: None,
                still: None,
                stood: None,
                deferred: Vec::new(),
                cut: (false, false),
                version,
            });
            world.agenda.add(0, Happening::Starts(host));
        }
        // In the end every process knows every job.
        for host in 0..instances {
            let at = world.quiet_from + host as u64 * 2_000_000_000;
            world.agenda.add(at, Happening::Stops { host, version: 1 });
        }
        world.plan_fault();
        world
    }

    fn run(mut self) -> Outcome {
        while let Some((at, happening)) = self.agenda.pop() {
            if at > self.end {
                break;
            }
            self.now = at;
            self.happen(happening);
            self.heed_cluster();
        }
        self.judge_locks();
        let until = self.store_us_at(self.quiet_from + (self.end - self.quiet_from) / 2) / 1_000_000;
        let mut report = self.report;
        self.checker.judge(&self.jobs, until as i64, self.end, self.seed, &mut report);
        Outcome { report, trace: self.trace.map(|(_, lines)| lines.into_inner()).unwrap_or_default() }
    }

    fn happen(&mut self, happening: Happening) {
        use Happening as H;
        let of = match &happening {
            H::ElectionWake { host, start, .. }
            | H::CourseWake { host, start, .. }
            | H::Begins { host, start, .. }
            | H::Ends { host, start, .. }
            | H::GraceOver { host, start } => Some((*host, Some(*start))),
            H::LeaseAnswer(voter, _) | H::LeaseTimeout(voter) => Some((voter.host, Some(voter.start))),
            H::TickAnswer(asker, _) | H::TickTimeout(asker, _) => Some((asker.host, Some(asker.start))),
            H::Announced(host, _) => Some((*host, None)),
            H::Lock(event) => Some((event.locker().host, Some(event.locker().start))),
            _ => None,
        };
        if let Some((host, start)) = of {
            let host = &mut self.hosts[host];
            if host.process.is_none() || start.is_some_and(|start| start != host.start) {
                return;
            }
            if host.still.is_some() {
                host.deferred.push(happening);
                return;
            }
        }
        match happening {
            H::ElectionWake { host, group, wake, .. } => self.election_wakes(host, group, wake),
            H::CourseWake { host, member, wake, .. } => self.course_wakes(host, member, wake),
            H::LeaseRequest { from, to, command } => self.lease_at_store(from, to, command),
            H::LeaseAnswer(from, answer) => self.lease_answered(from, answer),
            H::LeaseTimeout(from) => self.lease_timed_out(from),
            H::Announced(host, group) => self.vote(host, group, Event::Announced),
            H::TickRequest { from, to, job, command } => self.ticks_at_store(from, to, job, command),
            H::TickAnswer(from, answer) => self.tick_answered(from, &answer),
            H::TickTimeout(from, instead) => self.tick_timed_out(from, instead),
            H::Lock(event) => self.lock_event(event),
            H::LockRequest { from, no, to, key, command } => self.lock_at_store(from, no, to, key, command),
            H::Begins { host, nonce, .. } => self.begins(host, nonce),
            H::Ends { host, nonce, .. } => self.body_ends(host, nonce, false),
            other => self.upheaval(other),
        }
    }

    /// What the store's clock shows, in microseconds.
    pub(super) fn store_us(&self) -> u64 {
        self.store_us_at(self.now)
    }

    fn store_us_at(&self, at: u64) -> u64 {
        self.cluster.nodes[self.cluster.primary].clock.nanos(at) / 1000
    }

    /// What any server's clock has shown at most.
    pub(super) fn store_peak(&self) -> u64 {
        self.cluster.nodes.iter().map(|node| node.clock.nanos(self.now) / 1000).fold(self.store_peak, u64::max)
    }

    /// How long a message is on its way; none if it is lost.
    pub(super) fn way(&mut self, cut: bool) -> Option<u64> {
        let settings = self.settings;
        let quiet = self.now >= self.quiet_from;
        if !quiet && self.rng.chance(settings.loss) || cut && self.rng.chance(0.5) {
            return None;
        }
        let usual = 50_000 + self.rng.around(Duration::from_micros(300));
        let held_up = !quiet && self.rng.chance(settings.held_up);
        let more = if held_up || cut { self.rng.below(settings.ttl) } else { 0 };
        Some(usual + more)
    }

    pub(super) fn new_id(&mut self) -> InstanceId {
        self.ids += 1;
        InstanceId::new(format!("i{}", self.ids)).expect("a valid id")
    }

    /// Plans the next fault.
    pub(super) fn plan_fault(&mut self) {
        let later = self.rng.around(self.settings.fault_gap);
        self.agenda.add(self.now + later, Happening::Fault);
    }

    pub(super) fn struck(&mut self, fault: Fault) {
        self.report.faults[fault.number()] += 1;
    }

    pub(super) fn wrong(&mut self, what: String) {
        self.say_store(|| format!("!! {what}"));
        let at = Duration::from_nanos(self.now);
        self.report.failure.get_or_insert_with(|| (self.seed, format!("at {at:.6?}: {what}")));
    }

    /// Keeps a line of a host's doings, if lines are kept.
    pub(super) fn say(&self, h: usize, line: impl FnOnce() -> String) {
        if self.trace.is_some() {
            self.keep(format!("{h}.{} {}", self.hosts[h].start, line()));
        }
    }

    /// Keeps a line of what befalls the store.
    pub(super) fn say_store(&self, line: impl FnOnce() -> String) {
        if self.trace.is_some() {
            let clock = self.store_us() - EPOCH_US.min(self.store_us());
            self.keep(format!("  store at {:.3}: {}", clock as f64 / 1e6, line()));
        }
    }

    fn keep(&self, line: String) {
        let Some((words, lines)) = &self.trace else { return };
        if words.is_empty() || words.iter().any(|word| line.contains(word)) {
            lines.borrow_mut().push(format!("{:12.6} {line}", self.now as f64 / 1e9));
        }
    }
}
