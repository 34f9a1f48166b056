//! The elections of a process, driven as in life: who leads is the real election's word.

use leader_core::store::{Answer, Command};
use leader_core::testing::election::{Election, Event, Failure, Next, Notice, RequestNo, Rules};
use leader_core::{BootInstant, Reclaim, RenewalFailure, Term};

use super::topology::{Arrival, Link, Waiting};
use super::world::{Happening, World};

/// One group's election on one process.
pub(super) struct Seat {
    pub(super) election: Election,
    planned: Option<Next>,
    wake: u32,
}

/// Who asked about a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Voter {
    pub(super) host: usize,
    pub(super) start: u32,
    pub(super) group: usize,
    no: RequestNo,
}

impl Seat {
    /// The term that is led under, and since which one nobody else can have led.
    pub(super) fn led(&self, now: BootInstant) -> Option<(Term, Term)> {
        let (term, _) = self.election.view(now)?;
        Some((term, self.election.unbroken_since()))
    }
}

impl World<'_> {
    /// A process takes part in a group's election from now on.
    pub(super) fn sit_down(&mut self, h: usize, group: usize) {
        let settings = self.settings;
        let rules = Rules {
            ttl: settings.ttl,
            guard: settings.guard(),
            heartbeat: settings.ttl / 3,
            retry: settings.ttl / 10,
            renewal_failure: RenewalFailure::DemoteAtOnce,
            reclaim: Reclaim::AtOnce,
            observe: false,
            known_bad: None,
        };
        let host = &mut self.hosts[h];
        let Some(process) = &mut host.process else { return };
        let election =
            Election::new(self.groups[group].clone(), process.candidate.clone(), rules, host.clock.read(self.now));
        process.seats[group] = Some(Seat { election, planned: None, wake: 0 });
        self.plan_election(h, group);
    }

    pub(super) fn election_wakes(&mut self, h: usize, group: usize, wake: u32) {
        let host = &mut self.hosts[h];
        let (now, start) = (host.clock.read(self.now), host.start);
        let Some(seat) = host.process.as_mut().and_then(|process| process.seats[group].as_mut()) else { return };
        if seat.wake != wake {
            return;
        }
        let mut notices = Vec::new();
        let request = seat.election.poll(now, &mut notices);
        seat.planned = None;
        if let Some(request) = request {
            let from = Voter { host: h, start, group, no: request.no };
            let clock = self.hosts[h].clock;
            let patience = clock.read(self.now).saturating_add(self.settings.operation_timeout());
            self.agenda.add(clock.when(patience), Happening::LeaseTimeout(from));
            if let Some((to, way)) = self.way_out(h) {
                let command = request.command;
                self.agenda.add(self.now + way, Happening::LeaseRequest { from, to, command });
            }
        }
        self.elected(h, group, notices);
    }

    pub(super) fn vote(&mut self, h: usize, group: usize, event: Event) {
        let host = &mut self.hosts[h];
        let now = host.clock.read(self.now);
        let Some(seat) = host.process.as_mut().and_then(|process| process.seats[group].as_mut()) else { return };
        let mut notices = Vec::new();
        seat.election.handle(now, event, &mut notices);
        self.elected(h, group, notices);
    }

    pub(super) fn lease_answered(&mut self, from: Voter, answer: Answer) {
        self.vote(from.host, from.group, Event::Answered(from.no, answer));
    }

    pub(super) fn lease_timed_out(&mut self, from: Voter) {
        self.vote(from.host, from.group, Event::Failed(from.no, Failure::Passing));
    }

    fn elected(&mut self, h: usize, group: usize, notices: Vec<Notice>) {
        self.observe_leader(h, group);
        self.plan_election(h, group);
        let changed = notices.iter().any(|notice| matches!(notice, Notice::Acquired(_) | Notice::Lost(..)));
        for notice in notices {
            self.say(h, || format!("{}: {notice:?}", self.groups[group]));
        }
        if changed {
            self.cancel_what_lost_its_lease(h, group);
            self.advance_all(h);
        }
        self.ends_if_all_is_released(h);
    }

    fn plan_election(&mut self, h: usize, group: usize) {
        let host = &mut self.hosts[h];
        let (now, start) = (host.clock.read(self.now), host.start);
        let Some(seat) = host.process.as_mut().and_then(|process| process.seats[group].as_mut()) else { return };
        let next = seat.election.next();
        if seat.planned == Some(next) {
            return;
        }
        seat.planned = Some(next);
        seat.wake += 1;
        let at = match next {
            Next::Idle | Next::Waiting(None) => return,
            Next::Waiting(Some(at)) => at,
            Next::Renew { earliest, latest } | Next::Retry { earliest, latest } => {
                let within = self.rng.below(latest.saturating_since(earliest));
                earliest.saturating_add(std::time::Duration::from_nanos(within))
            }
            Next::At(at) if at > now && seat.election.view(now).is_none() => {
                at.saturating_add(std::time::Duration::from_nanos(self.rng.below(self.settings.ttl / 50)))
            }
            Next::At(at) => at,
        };
        let wake = Happening::ElectionWake { host: h, start, group, wake: seat.wake };
        self.agenda.add(host.clock.when(at).max(self.now), wake);
    }

    pub(super) fn lease_at_store(&mut self, from: Voter, to: Link, command: Command) {
        match self.arrives(to) {
            Arrival::Lost => return,
            Arrival::Waits(at, to) => {
                self.agenda.add(at, Happening::LeaseRequest { from, to, command });
                return;
            }
            Arrival::Refused => {
                self.lease_answers(from, to.node, None);
                return;
            }
            Arrival::Now => {}
        }
        let (node, group) = (to.node, from.group);
        let now_us = self.us_of(node);
        let done = self.cluster.nodes[node].server.lease(now_us, group, &command);
        self.cluster.written(self.now, node, &mut self.rng, |ledger| ledger.lease_write(group));
        self.report.commands += 1;
        self.report.acquisitions += u64::from(done.minted.is_some());
        self.say_store(|| format!("{node}: {:?} of {:?}: {:?}", command.op, command.candidate, done.answer));
        if done.announced {
            for other in (0..self.hosts.len()).filter(|other| *other != from.host) {
                if self.cluster.targets[other] != node {
                    continue;
                }
                if let Some(way) = self.way_back(other, node) {
                    self.agenda.add(self.now + way, Happening::Announced(other, group));
                }
            }
        }
        if self.cluster.waits() && matches!(done.answer, Answer::Won(_) | Answer::Renewed) {
            let patience = self.settings.operation_timeout().as_nanos() as u64;
            self.cluster.hold(self.now, node, Waiting::Lease(from, done.answer), patience);
        } else {
            self.lease_answers(from, node, Some(done.answer));
        }
    }

    /// Sends an answer back; none: it has failed.
    pub(super) fn lease_answers(&mut self, from: Voter, node: usize, answer: Option<Answer>) {
        if let Some(way) = self.way_back(from.host, node) {
            let happening = match answer {
                Some(answer) => Happening::LeaseAnswer(from, answer),
                None => Happening::LeaseTimeout(from),
            };
            self.agenda.add(self.now + way, happening);
        }
    }

    /// Tells the judge what a host's gate answers from now on.
    pub(super) fn observe_leader(&mut self, h: usize, group: usize) {
        let host = &self.hosts[h];
        let seat = host.process.as_ref().and_then(|process| process.seats[group].as_ref());
        let view = seat.and_then(|seat| seat.election.view(host.clock.read(self.now)));
        let believed = view.map(|(term, deadline)| (term.get(), host.clock.when(deadline)));
        let leaders = &mut self.leaders[group];
        let before = (leaders.overlaps, leaders.bad_terms);
        let wrong = leaders.view(self.now, h, believed);
        let after = (leaders.overlaps, leaders.bad_terms);
        // A server's clock that is set can give two leaders: a limit that is stated.
        if self.settings.keeps_time()
            && let Some(wrong) = wrong
        {
            self.report.leaders += after.0 - before.0;
            self.report.terms += after.1 - before.1;
            self.wrong(format!("{}: {wrong}", self.groups[group]));
        }
    }
}
