//! A process of the fleet: it plays what drives the courses in life.
//!
//! The gate is asked before a course is told that it leads, and the entry is kept for as long as a tick is being claimed, or
//! given back: a drain waits for it.

use std::collections::HashMap;

use leader_core::store::{JobName, TickAnswer, TickCommand, TickOp, TickReply};
use leader_core::{BootInstant, Candidate, Incarnation, Term};
use leader_cron::testing::{Course, Failure, Notice, Poll, Reason, Rules, Schedule, StoreClock};

use super::election::Seat;
use super::ledger::Done;
use super::locks::Locks;
use super::runs::Body;
use super::settings::Variant;
use super::topology::{Arrival, Link, Waiting};
use super::world::{Happening, World};
use crate::sim::clock::Clock;

pub(super) struct Host {
    pub(super) clock: Clock,
    /// What its wall clock is ahead of the true time, in microseconds.
    pub(super) wall: i64,
    pub(super) start: u32,
    /// None while no process runs.
    pub(super) process: Option<Process>,
    /// The process has stood still since then.
    pub(super) still: Option<u64>,
    /// It stood still from then until then.
    pub(super) stood: Option<(u64, u64)>,
    /// What has come meanwhile.
    pub(super) deferred: Vec<Happening>,
    /// What it sends is lost or held up; and what is sent to it.
    pub(super) cut: (bool, bool),
    /// Which version of the program is started next.
    pub(super) version: usize,
}

pub(super) struct Process {
    pub(super) candidate: Candidate,
    /// By group.
    pub(super) seats: Vec<Option<Seat>>,
    pub(super) members: Vec<Member>,
    pub(super) clock: Option<StoreClock>,
    /// No run begins any more.
    pub(super) closed: bool,
    pub(super) withdrawn: bool,
    pub(super) bodies: Vec<Body>,
    pub(super) locks: Locks,
}

/// A job on this process.
pub(super) struct Member {
    pub(super) job: usize,
    pub(super) name: JobName,
    schedule: Schedule,
    pub(super) course: Course,
    /// Permission to run what is being claimed.
    pub(super) entry: Option<Entry>,
    planned: Option<BootInstant>,
    wake: u32,
    /// For the variant in which claims have fresh ones.
    nonces: HashMap<u128, u128>,
}

/// The gate said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) term: Term,
    unbroken_since: Term,
}

/// Who asked the ledger.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker {
    pub(super) host: usize,
    pub(super) start: u32,
    pub(super) member: usize,
    pub(super) no: u64,
}

impl World<'_> {
    pub(super) fn start(&mut self, h: usize) {
        if self.hosts[h].process.is_some() {
            return;
        }
        let (id, version) = (self.new_id(), self.hosts[h].version);
        let (ttl, guard, operation_timeout) =
            (self.settings.ttl, self.settings.guard(), self.settings.operation_timeout());
        let rules = Rules { slot: ttl, guard, operation_timeout };
        let member = |(index, job): (usize, &super::jobs::Job)| {
            let schedule = job.schedule(version)?;
            let course = Course::new(schedule.clone(), job.policy, index as u64, rules);
            let name = JobName::new(job.name).expect("a valid name");
            let (entry, planned, wake, nonces) = (None, None, 0, HashMap::new());
            Some(Member { job: index, name, schedule, course, entry, planned, wake, nonces })
        };
        let members: Vec<_> = self.jobs.iter().enumerate().filter_map(member).collect();
        let host = &mut self.hosts[h];
        host.start += 1;
        let incarnation = Incarnation::from_u128((h as u128) << 32 | u128::from(host.start));
        let candidate = Candidate { id, incarnation };
        let now = host.clock.read(self.now);
        let own = StoreClock::new(now, self.truth_us.saturating_add(self.now / 1000).saturating_add_signed(host.wall));
        let clock = self.settings.is(Variant::OwnClock).then_some(own);
        let seats = vec![None, None];
        let (closed, withdrawn, bodies, locks) = (false, false, Vec::new(), Locks::default());
        host.process = Some(Process { candidate, seats, members, clock, closed, withdrawn, bodies, locks });
        self.say(h, || format!("starts, version {}", version + 1));
        self.sit_down(h, 0);
        if version == 1 {
            self.sit_down(h, 1);
        }
        if self.settings.locks {
            self.begin_locks(h);
        }
        self.advance_all(h);
    }

    /// Who leads may have changed, or whether runs may begin.
    pub(super) fn advance_all(&mut self, h: usize) {
        let members = self.hosts[h].process.as_ref().map_or(0, |process| process.members.len());
        for member in 0..members {
            self.advance(h, member);
        }
    }

    /// Lets a course do what is due.
    pub(super) fn advance(&mut self, h: usize, m: usize) {
        let host = &mut self.hosts[h];
        let (now, start) = (host.clock.read(self.now), host.start);
        let Some(process) = &mut host.process else { return };
        let group = self.jobs[process.members[m].job].group;
        let led = process.seats[group].as_ref().and_then(|seat| seat.led(now));
        let closed = process.closed;
        let clock = process.clock;
        let member = &mut process.members[m];
        let entry = |(term, unbroken_since)| Entry { term, unbroken_since };
        if member.entry.is_none_or(|entry| led.is_none_or(|(term, _)| term != entry.term)) {
            member.entry = led.map(entry).filter(|_| !closed);
        }
        match member.entry {
            Some(entry) => member.course.led(now, entry.term, entry.unbroken_since),
            None => member.course.unled(),
        }
        let rng = &mut self.rng;
        let mut notices = Vec::new();
        let mut nonce = || u128::from(rng.bits()) << 64 | u128::from(rng.bits());
        // After a request there may be something to come back for before its answer.
        let mut requests = Vec::new();
        let at = loop {
            match member.course.poll(now, clock.as_ref(), &mut nonce, &mut notices) {
                Poll::Send(request) => requests.push(request),
                Poll::Wait(at) => break Some(at),
                Poll::Idle => break None,
            }
        };
        if !member.course.is_claiming() {
            member.entry = None;
        }
        if member.planned != at {
            member.planned = at;
            member.wake += 1;
            if let Some(at) = at {
                let wake = Happening::CourseWake { host: h, start, member: m, wake: member.wake };
                self.agenda.add(host.clock.when(at).max(self.now), wake);
            }
        }
        self.tell(h, m, notices);
        for request in requests {
            self.ask(Asker { host: h, start, member: m, no: request.no }, request.op);
        }
        self.drained(h);
    }

    pub(super) fn course_wakes(&mut self, h: usize, m: usize, wake: u32) {
        let Some(process) = &mut self.hosts[h].process else { return };
        let member = &mut process.members[m];
        if member.wake == wake {
            member.planned = None;
            self.advance(h, m);
        }
    }

    fn ask(&mut self, from: Asker, mut op: TickOp) {
        let settings = self.settings;
        let fresh = u128::from(self.rng.bits()) << 64 | u128::from(self.rng.bits());
        let process = self.hosts[from.host].process.as_mut().expect("it asks");
        let member = &mut process.members[from.member];
        if settings.is(Variant::NoNonce) {
            match &mut op {
                TickOp::Claim(claim) => {
                    member.nonces.insert(claim.nonce, fresh);
                    claim.nonce = fresh;
                }
                TickOp::KeepSlot { nonce, .. } | TickOp::End { nonce, .. } | TickOp::GiveBack { nonce, .. } => {
                    *nonce = member.nonces.get(nonce).copied().unwrap_or(*nonce);
                }
                _ => {}
            }
        }
        if let TickOp::Claim(claim) = &mut op {
            match settings.variant {
                Some(Variant::NoNotAfter) => claim.not_after_us = u64::MAX,
                Some(Variant::SlotNotLookedAt) => claim.forbid = false,
                Some(Variant::VouchAlways) => claim.vouch = true,
                _ => {}
            }
        }
        // What the course takes a time-out for.
        let instead = match &op {
            TickOp::Claim(claim) if settings.is(Variant::TwoClaims) => Some(TickReply::Moved { last: claim.expect }),
            TickOp::End { .. } if settings.is(Variant::DebtsOnce) => Some(TickReply::Ended),
            TickOp::GiveBack { .. } if settings.is(Variant::DebtsOnce) => Some(TickReply::NotOpen),
            _ => None,
        };
        let job = member.job;
        let group = self.groups[self.jobs[job].group].clone();
        let command = TickCommand { group, job: member.name.clone(), candidate: process.candidate.clone(), op };
        let clock = self.hosts[from.host].clock;
        let patience = clock.read(self.now).saturating_add(settings.operation_timeout());
        self.agenda.add(clock.when(patience), Happening::TickTimeout(from, instead));
        self.say(from.host, || format!("{} asks {:?}", command.job, command.op));
        if let Some((to, way)) = self.way_out(from.host) {
            self.agenda.add(self.now + way, Happening::TickRequest { from, to, job, command });
        }
    }

    pub(super) fn ticks_at_store(&mut self, from: Asker, to: Link, job: usize, command: TickCommand) {
        match self.arrives(to) {
            Arrival::Lost => return,
            Arrival::Waits(at, to) => {
                self.agenda.add(at, Happening::TickRequest { from, to, job, command });
                return;
            }
            Arrival::Refused => {
                self.tick_answers(from, to.node, None);
                return;
            }
            Arrival::Now => {}
        }
        let (node, group) = (to.node, self.jobs[job].group);
        let now_us = self.us_of(node);
        let Done { mut answer, forgotten } = self.cluster.nodes[node].server.tick(now_us, group, job, &command);
        self.cluster.written(self.now, node, &mut self.rng, |ledger| ledger.tick_write(group, job));
        self.report.commands += 1;
        self.say_store(|| {
            format!("{node}: {} {:?} of {:?}: {:?}", command.job, command.op.name(), command.candidate, answer.reply)
        });
        let record = self.cluster.nodes[node].server.record(job);
        self.checker.executed((self.now, node), &from, job, &command.op, &answer, record);
        for tick in forgotten {
            self.checker.reported(job, tick, Some(Reason::Forgotten), now_us, self.now);
        }
        if let (TickOp::Claim(claim), TickReply::Early { .. }) = (&command.op, &answer.reply)
            && self.settings.is(Variant::EarlyIsRun)
        {
            answer.reply = TickReply::Run { tick: claim.tick, attempt: 1 };
        }
        if let (TickReply::Loaded(record) | TickReply::Registered(record), true) =
            (&mut answer.reply, self.settings.is(Variant::VouchAlways))
        {
            record.floor = 0;
        }
        let waits = self.cluster.waits() && !self.settings.is(Variant::ClaimsDoNotWait);
        // As the library does: whatever lets a body run, or go on, or leaves its tick to others.
        if waits && matches!(answer.reply, TickReply::Run { .. } | TickReply::Kept | TickReply::Returned) {
            let patience = self.settings.operation_timeout().as_nanos() as u64;
            self.cluster.hold(self.now, node, Waiting::Tick(from, answer), patience);
        } else {
            self.tick_answers(from, node, Some(answer));
        }
    }

    /// Sends an answer back; none: it has failed.
    pub(super) fn tick_answers(&mut self, from: Asker, node: usize, answer: Option<TickAnswer>) {
        if let Some(way) = self.way_back(from.host, node) {
            let happening = match answer {
                Some(answer) => Happening::TickAnswer(from, answer),
                None => Happening::TickTimeout(from, None),
            };
            self.agenda.add(self.now + way, happening);
        }
    }

    pub(super) fn tick_answered(&mut self, from: Asker, answer: &TickAnswer) {
        let host = &mut self.hosts[from.host];
        let now = host.clock.read(self.now);
        let Some(process) = &mut host.process else { return };
        if !self.settings.is(Variant::OwnClock) {
            process.clock = Some(StoreClock::new(now, answer.now_us));
        }
        let mut notices = Vec::new();
        process.members[from.member].course.answered(now, from.no, answer, &mut notices);
        self.tell(from.host, from.member, notices);
        self.advance(from.host, from.member);
    }

    pub(super) fn tick_timed_out(&mut self, from: Asker, instead: Option<TickReply>) {
        let host = &mut self.hosts[from.host];
        let now = host.clock.read(self.now);
        let Some(process) = &mut host.process else { return };
        let course = &mut process.members[from.member].course;
        match (instead, process.clock) {
            (Some(reply), Some(clock)) => {
                let now_us = u64::try_from(clock.micros(now)).unwrap_or(0);
                let mut notices = Vec::new();
                course.answered(now, from.no, &TickAnswer { now_us, reply }, &mut notices);
                self.tell(from.host, from.member, notices);
            }
            _ => {
                course.failed(now, from.no, Failure::Passing);
            }
        }
        self.advance(from.host, from.member);
    }

    /// Does what a course says.
    pub(super) fn tell(&mut self, h: usize, m: usize, notices: Vec<Notice>) {
        let now_us = self.store_us();
        for notice in notices {
            let Some(process) = &self.hosts[h].process else { return };
            let job = process.members[m].job;
            self.say(h, || format!("{} {notice:?}", self.jobs[job].name));
            match notice {
                Notice::Run(claimed) => self.may_run(h, m, claimed),
                Notice::Cut(_) if self.settings.is(Variant::SlotNotLookedAt) => {}
                Notice::Cut(nonce) => self.cut(h, nonce),
                Notice::Missed(gap) => {
                    let schedule = process.members[m].schedule.clone();
                    let first = schedule.next_after(gap.from - 1);
                    let ticks = std::iter::successors(first, |tick| schedule.next_after(*tick));
                    for tick in ticks.take(usize::try_from(gap.count).unwrap_or(usize::MAX)) {
                        self.checker.reported(job, tick, Some(gap.reason), now_us, self.now);
                    }
                }
                Notice::Superseded(tick) => self.checker.reported(job, tick, None, now_us, self.now),
                Notice::GaveUp { tick, .. } => self.checker.gave_up(job, tick),
                Notice::Corrupt(field) => panic!("seed {}: nothing corrupts `{field}`", self.seed),
                Notice::Ended => panic!("seed {}: no schedule ends", self.seed),
                // Clocks that are set back are among the faults.
                // The next claim tells of them again.
                Notice::Ahead { .. } | Notice::TooOld(_) | Notice::Paused(_) => {}
                Notice::Free(_) | Notice::Taken { .. } => panic!("seed {}: nobody runs a job by hand", self.seed),
            }
        }
    }
}
