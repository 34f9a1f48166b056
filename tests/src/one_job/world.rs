//! What happens, in order of time.

use std::time::Duration;

use leader_core::store::{JobName, RunEnd, RunOutcome, TickAnswer, TickCommand, TickOp};
use leader_core::{Candidate, GroupName, Incarnation, InstanceId, Term};
use leader_cron::testing::{Course, Gap, Notice, Poll, Reason, Rules, Schedule, StoreClock};

use super::report::{Ran, Report};
use super::store::Store;
use super::{Broken, INSTANCES, Plan, Reign, Reigns, Steps, Wakes};
use crate::sim::agenda::Agenda;
use crate::sim::clock::Clock;
use crate::sim::rng::Rng;

const SECOND: u64 = 1_000_000_000;
/// The waker looks so often, whatever it was woken for.
const LOOK: u64 = SECOND;
/// How long a message is on its way, and how long a body takes.
const WAY: u64 = 1_000_000;
const BODY: u64 = 10_000_000;
const RULES: Rules = Rules {
    slot: Duration::from_secs(10),
    guard: Duration::from_millis(100),
    operation_timeout: Duration::from_secs(2),
};

enum Happening {
    Wake { instance: usize, start: u32 },
    Request { instance: usize, start: u32, no: u64, op: TickOp },
    Answer { instance: usize, start: u32, no: u64, answer: TickAnswer },
    Ends { instance: usize, start: u32, nonce: u128 },
    Reign(Reign),
    Step { round: usize },
}

struct Instance {
    candidate: Candidate,
    /// How often it was started.
    start: u32,
    course: Course,
    clock: Option<StoreClock>,
    boot: Clock,
    /// What the wall clock that it reads is ahead of the true one, in seconds.
    wall: i64,
    /// It does nothing before.
    stands_until: u64,
}

pub(super) struct World<'a> {
    plan: &'a Plan,
    schedule: Schedule,
    rng: Rng,
    now: u64,
    agenda: Agenda<Happening>,
    instances: Vec<Instance>,
    store: Store,
    leader: Option<usize>,
    term: u64,
    /// What the clock of the store has shown at most, to anybody.
    peak_us: u64,
    peaks: Vec<u64>,
    report: Report,
}

impl<'a> World<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let mut rng = Rng::new(plan.seed);
        let schedule = Schedule::parse(plan.schedule, plan.zone).expect("a valid schedule");
        let instances = (0..INSTANCES).map(|number| {
            let boot = Clock::new(rng.below(Duration::from_secs(1_000_000)), rng.between(-200, 200));
            Instance {
                candidate: candidate(number, 1),
                start: 1,
                course: Course::new(schedule.clone(), plan.policy, 7, RULES),
                clock: None,
                boot,
                wall: 0,
                stands_until: 0,
            }
        });
        let mut world = Self {
            plan,
            instances: instances.collect(),
            schedule,
            rng,
            now: 0,
            agenda: Agenda::new(),
            store: Store::default(),
            leader: None,
            term: 0,
            peak_us: 0,
            peaks: Vec::new(),
            report: Report::default(),
        };
        for instance in 0..INSTANCES {
            world.agenda.add(0, Happening::Wake { instance, start: 1 });
        }
        match &plan.reigns {
            Reigns::Alternating => world.agenda.add(0, Happening::Reign(Reign::Of(0))),
            Reigns::Scripted(reigns) => {
                for (second, reign) in reigns {
                    let at = (second - plan.begins).unsigned_abs() * SECOND;
                    world.agenda.add(at, Happening::Reign(*reign));
                }
            }
        }
        if plan.steps != Steps::None {
            world.agenda.add(100 * SECOND, Happening::Step { round: 0 });
        }
        world
    }

    pub(super) fn run(mut self) -> Report {
        let end = self.plan.span.as_nanos() as u64;
        while let Some((at, happening)) = self.agenda.pop() {
            if at > end {
                break;
            }
            self.now = at;
            self.happen(happening);
        }
        self.now = end;
        // What is due now may still be on its way, to whoever's clock is behind, and the leader may stand still.
        let least = (0..INSTANCES).map(|instance| self.store_us(instance)).min().unwrap_or(0) / 1_000_000;
        let (since, until) = (self.store.since().unwrap_or(0), least as i64 - 40);
        self.report.judge(&self.schedule, since, until, &self.peaks);
        self.report
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Wake { instance, start } if self.is(instance, start) => {
                self.report.wakes += 1;
                self.advance(instance);
            }
            // Also of an instance that has died meanwhile.
            Happening::Request { instance, start, no, op } => {
                let candidate = candidate(instance, start);
                let group = GroupName::new("default").expect("a valid name");
                let job = JobName::new("job").expect("a valid name");
                let mut now_us = self.store_us(instance);
                let forgets = matches!(op, TickOp::Claim(_)) && self.breaks(Broken::ClaimForgotten);
                if self.breaks(Broken::ClockAhead) {
                    now_us += 2_000_000;
                }
                let command = TickCommand { group, job, candidate, op };
                let answer = self.store.execute(self.now, now_us, &command, forgets);
                self.agenda.add(self.now + WAY, Happening::Answer { instance, start, no, answer });
            }
            Happening::Answer { instance, start, no, answer } if self.is(instance, start) => {
                let of = &mut self.instances[instance];
                if self.now < of.stands_until {
                    let later = of.stands_until;
                    self.agenda.add(later, Happening::Answer { instance, start, no, answer });
                    return;
                }
                let now = of.boot.read(self.now);
                of.clock = Some(StoreClock::new(now, answer.now_us));
                let mut notices = Vec::new();
                of.course.answered(now, no, &answer, &mut notices);
                self.tell(instance, notices);
                self.advance(instance);
            }
            Happening::Ends { instance, start, nonce } if self.is(instance, start) => {
                let end = RunEnd {
                    outcome: RunOutcome::Succeeded,
                    message: String::new(),
                    began_us: 0,
                    took: Duration::from_nanos(BODY),
                };
                self.instances[instance].course.ended(nonce, end, false);
                self.advance(instance);
            }
            Happening::Reign(reign) => self.reign(reign),
            Happening::Step { round } => self.step(round),
            // Of an instance that has died.
            Happening::Wake { .. } | Happening::Answer { .. } | Happening::Ends { .. } => {}
        }
    }

    fn breaks(&mut self, broken: Broken) -> bool {
        self.plan.broken == Some(broken) && self.rng.chance(0.05)
    }

    fn is(&self, instance: usize, start: u32) -> bool {
        self.instances[instance].start == start
    }

    /// Lets a course do what is due.
    fn advance(&mut self, instance: usize) {
        let of = &mut self.instances[instance];
        if self.now < of.stands_until {
            self.agenda.add(of.stands_until, Happening::Wake { instance, start: of.start });
            return;
        }
        let (now, start) = (of.boot.read(self.now), of.start);
        let mut notices = Vec::new();
        let mut nonce = || u128::from(self.rng.bits()) << 64 | u128::from(self.rng.bits());
        let at = loop {
            match of.course.poll(now, of.clock.as_ref(), &mut nonce, &mut notices) {
                Poll::Send(request) => {
                    let (no, op) = (request.no, request.op);
                    self.agenda.add(self.now + WAY, Happening::Request { instance, start, no, op });
                }
                Poll::Wait(at) => break Some(of.boot.when(at).max(self.now + 1)),
                Poll::Idle => break None,
            }
        };
        if let Some(at) = at {
            self.plan_wake(instance, start, at);
        }
        self.tell(instance, notices);
    }

    fn plan_wake(&mut self, instance: usize, start: u32, at: u64) {
        let mut wake = |at| self.agenda.add(at, Happening::Wake { instance, start });
        if self.plan.wakes == Wakes::Exact {
            return wake(at);
        }
        match self.rng.index(1_000) {
            // Everything stands still, not only the wake-up.
            0 => {
                let until = at + self.rng.below(Duration::from_secs(20));
                self.instances[instance].stands_until = until;
                wake(until);
            }
            1..300 => wake(at + self.rng.below(Duration::from_millis(300))),
            300..500 => {
                wake(at);
                wake(at + self.rng.below(Duration::from_millis(5)));
            }
            500..600 => {
                wake(self.now + 1 + self.rng.below(Duration::from_nanos(at - self.now)));
                wake(at);
            }
            // Lost.
            600..800 => wake(at + LOOK),
            _ => wake(at),
        }
    }

    fn tell(&mut self, instance: usize, notices: Vec<Notice>) {
        for notice in notices {
            match notice {
                Notice::Run(claimed) => {
                    let (store_us, start) = (self.store_us(instance), self.instances[instance].start);
                    let missed = claimed.missed.map_or(0, |gap| gap.count);
                    if !self.breaks(Broken::RunSwallowed) {
                        self.peaks.push(self.peak_us);
                        self.report.ran.push(Ran { tick: claimed.tick, instance, missed, store_us });
                    }
                    if self.breaks(Broken::ToldWrongly) {
                        self.report.gaps.push(Gap { from: claimed.tick, count: 1, reason: Reason::TooOld });
                    }
                    self.agenda.add(self.now + BODY, Happening::Ends { instance, start, nonce: claimed.nonce });
                }
                Notice::Missed(gap) => self.report.gaps.push(gap),
                Notice::Superseded(tick) => {
                    self.report.superseded.insert(tick);
                }
                // The run has ended in time, but stood still with all else.
                Notice::Cut(_) => {}
                // The next claim tells of them again; and clocks are set back here.
                Notice::TooOld(_) | Notice::Ahead { .. } => {}
                Notice::GaveUp { .. }
                | Notice::Paused(_)
                | Notice::Corrupt(_)
                | Notice::Ended
                | Notice::Free(_)
                | Notice::Taken { .. } => {
                    panic!("nothing leads to {notice:?}")
                }
            }
        }
    }

    fn reign(&mut self, reign: Reign) {
        self.report.reigns += 1;
        let before = self.leader.take();
        if let Some(before) = before {
            self.instances[before].course.unled();
        }
        match reign {
            Reign::Of(instance) => {
                self.leader = Some(instance);
                self.term += 1;
                let (term, of) = (Term::new(self.term), &mut self.instances[instance]);
                self.store.lease = Some((of.candidate.clone(), term));
                of.course.led(of.boot.read(self.now), term, term);
            }
            Reign::Killed => {
                self.store.lease = None;
                let instance = before.expect("somebody leads who can be killed");
                let of = &mut self.instances[instance];
                of.start += 1;
                of.candidate = candidate(instance, of.start);
                of.course = Course::new(self.schedule.clone(), self.plan.policy, 7, RULES);
                of.clock = None;
            }
        }
        for instance in 0..INSTANCES {
            self.advance(instance);
        }
        if let Reigns::Alternating = self.plan.reigns {
            let later = self.now + 60 * SECOND + self.rng.below(Duration::from_secs(300));
            let next = (self.leader.unwrap_or(0) + 1) % INSTANCES;
            self.agenda.add(later, Happening::Reign(Reign::Of(next)));
        }
    }

    fn step(&mut self, round: usize) {
        self.report.steps += 1;
        match self.plan.steps {
            Steps::None => {}
            Steps::Store => {
                let by = [-5, 10][round % 2];
                self.instances.iter_mut().for_each(|instance| instance.wall += by);
            }
            // In the end as far from the truth as in the beginning, or they would part for ever.
            Steps::Instances => self.instances[round / 3 % INSTANCES].wall += [-5, 10, -5][round % 3],
        }
        let later = self.now + 100 * SECOND + self.rng.below(Duration::from_secs(400));
        self.agenda.add(later, Happening::Step { round: round + 1 });
    }

    /// What the store's clock shows to this instance, in microseconds.
    fn store_us(&mut self, instance: usize) -> u64 {
        let seconds = self.plan.begins + self.instances[instance].wall;
        let shown = seconds.unsigned_abs() * 1_000_000 + self.now / 1_000;
        self.peak_us = self.peak_us.max(shown);
        shown
    }
}

fn candidate(instance: usize, start: u32) -> Candidate {
    let id = InstanceId::new(format!("i{instance}")).expect("a valid id");
    Candidate { id, incarnation: Incarnation::from_u128((instance as u128) << 32 | u128::from(start)) }
}
