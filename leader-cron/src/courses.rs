//! The courses of all jobs that are run once in the fleet: what each wants to ask of the ledger goes out in shared calls.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use leader_core::__private::{Entry, OnLoss};
use leader_core::store::{JobName, RunEnd, TickAnswers, TickCommand};
use leader_core::{BootInstant, GroupName, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::course::{Claimed, Course, Failure, Notice, Poll, Rules};
use crate::engine::Engine;
use crate::job::Body;
use crate::plan::Gap;
use crate::run::Run;
use crate::store_clock::StoreClock;
use crate::tick::Tick;

/// So many commands go into one call: a longer script would keep other clients of the store waiting.
const BATCH: usize = 100;

/// What a run tells.
#[derive(Debug)]
pub(crate) enum FromRun {
    /// Its lease had ended before its body began.
    Refused { course: usize, nonce: u128 },
    /// Its body has ended; `told` resolves when the ledger knows.
    Ended { course: usize, nonce: u128, end: RunEnd, cut: bool, told: oneshot::Sender<()> },
}

/// A job that is run once in the fleet.
struct Member {
    job: usize,
    group: GroupName,
    name: JobName,
    course: Course,
    /// Permission to run the tick that is being claimed: while it is held, the lease is not given back.
    entry: Option<Entry>,
    wake: Option<BootInstant>,
}

type Answered = (Vec<(usize, u64)>, Result<TickAnswers, StoreError>);

pub(crate) struct Courses {
    engine: Arc<Engine>,
    members: Vec<Member>,
    wakes: BTreeSet<(BootInstant, usize)>,
    touched: Vec<usize>,
    clock: Option<StoreClock>,
    calls: JoinSet<Answered>,
    from_runs: mpsc::UnboundedReceiver<FromRun>,
    /// How to cut a run, by the nonce of its claim.
    cuts: HashMap<u128, oneshot::Sender<()>>,
    /// Who waits until the ledger knows of the end of a run.
    waiting: Vec<(usize, u128, oneshot::Sender<()>)>,
    /// The calls fail since.
    failing: Option<StoreError>,
}

/// What there is to take in.
pub(crate) enum Happened {
    Answered(Option<Answered>),
    Run(FromRun),
}

impl Courses {
    /// Courses for the jobs that belong to a group.
    pub(crate) fn new(engine: Arc<Engine>, from_runs: mpsc::UnboundedReceiver<FromRun>) -> Self {
        let (slot, guard, operation_timeout) = engine.elector.__timing();
        let rules = Rules { slot, guard, operation_timeout };
        let member = |(job, live): (usize, &crate::engine::LiveJob)| {
            let group = live.group.clone()?;
            let name = JobName::new(&*live.name).ok()?;
            let course = Course::new(live.schedule.clone(), live.policy, seed(&group, &name), rules);
            Some(Member { job, group, name, course, entry: None, wake: None })
        };
        let members: Vec<Member> = engine.jobs.iter().enumerate().filter_map(member).collect();
        Self {
            touched: (0..members.len()).collect(),
            members,
            engine,
            wakes: BTreeSet::new(),
            clock: None,
            calls: JoinSet::new(),
            from_runs,
            cuts: HashMap::new(),
            waiting: Vec::new(),
            failing: None,
        }
    }

    /// Waits until there is something to [`take_in`](Self::take_in).
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub(crate) async fn happened(&mut self) -> Happened {
        tokio::select! {
            biased;
            Some(answered) = self.calls.join_next() => Happened::Answered(answered.ok()),
            // The engine holds a sender: it is never closed.
            Some(told) = self.from_runs.recv() => Happened::Run(told),
        }
    }

    pub(crate) fn take_in(&mut self, happened: Happened) {
        let now = BootInstant::now();
        match happened {
            Happened::Answered(Some((requests, done))) => self.answered(now, requests, done),
            // The runtime ends.
            Happened::Answered(None) => {}
            Happened::Run(told) => self.told(told),
        }
        while let Ok(told) = self.from_runs.try_recv() {
            self.told(told);
        }
    }

    fn told(&mut self, told: FromRun) {
        match told {
            FromRun::Refused { course, nonce } => {
                self.cuts.remove(&nonce);
                self.members[course].course.refused(nonce);
                self.touched.push(course);
            }
            FromRun::Ended { course, nonce, end, cut, told } => {
                self.cuts.remove(&nonce);
                self.members[course].course.ended(nonce, end, cut);
                self.waiting.push((course, nonce, told));
                self.settle(course);
            }
        }
    }

    /// Who leads which group may have changed.
    pub(crate) fn touch_all(&mut self) {
        self.touched = (0..self.members.len()).collect();
    }

    /// When to [`advance`](Self::advance), if nothing happens before.
    pub(crate) fn next_wake(&self) -> Option<BootInstant> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Nothing is owed to the ledger, and nothing is on.
    pub(crate) fn is_quiet(&self) -> bool {
        self.calls.is_empty() && self.members.iter().all(|member| member.course.is_quiet())
    }

    /// Does everything that is due. `closed`: no run begins any more.
    pub(crate) fn advance(&mut self, closed: bool) {
        let now = BootInstant::now();
        let mut due = std::mem::take(&mut self.touched);
        due.extend(self.wakes.range(..=(now, usize::MAX)).map(|(_, course)| *course));
        due.sort_unstable();
        due.dedup();
        let mut requests = Vec::new();
        for index in due {
            requests.extend(self.poll(now, index, closed));
        }
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let (asked, commands): (Vec<_>, Vec<_>) = requests.by_ref().take(BATCH).unzip();
            let answer = self.engine.elector.__ask_ledger(commands);
            self.calls.spawn(async move { (asked, answer.await) });
        }
    }

    fn poll(&mut self, now: BootInstant, index: usize, closed: bool) -> Option<((usize, u64), TickCommand)> {
        let engine = Arc::clone(&self.engine);
        let member = &mut self.members[index];
        let job = &engine.jobs[member.job];
        if let Some(at) = member.wake.take() {
            self.wakes.remove(&(at, index));
        }
        // The gate is asked before the claim, and the lease is not given back until what was claimed is settled.
        if member.entry.as_ref().is_none_or(|entry| !entry.lease().is_held()) {
            let cancels = job.cancel_on_loss && matches!(job.body, Body::Async(_));
            let on_loss = if cancels { OnLoss::Cancel } else { OnLoss::Finish };
            member.entry = engine.elector.__enter(member.group.as_str(), &job.name, on_loss).filter(|_| !closed);
        }
        match &member.entry {
            Some(entry) => member.course.led(now, entry.lease().term(), entry.lease().__unbroken_since()),
            None => member.course.unled(),
        }
        let mut notices = Vec::new();
        let poll = member.course.poll(now, self.clock.as_ref(), &mut leader_core::__private::random, &mut notices);
        if !member.course.is_claiming() {
            member.entry = None;
        }
        let wake = match &poll {
            Poll::Send(_) | Poll::Idle => None,
            Poll::Wait(at) => Some(*at),
        };
        self.wake(index, wake);
        self.tell(index, notices);
        let Poll::Send(request) = poll else { return None };
        let member = &self.members[index];
        let command = TickCommand {
            group: member.group.clone(),
            job: member.name.clone(),
            candidate: self.engine.elector.__candidate().clone(),
            op: request.op,
        };
        Some(((index, request.no), command))
    }

    fn wake(&mut self, index: usize, at: Option<BootInstant>) {
        self.members[index].wake = at;
        self.wakes.extend(at.map(|at| (at, index)));
    }

    fn answered(&mut self, now: BootInstant, requests: Vec<(usize, u64)>, done: Result<TickAnswers, StoreError>) {
        match done {
            Ok(answers) => {
                self.recovered();
                for ((index, no), answer) in requests.into_iter().zip(answers) {
                    let mut notices = Vec::new();
                    match answer {
                        Ok(answer) => {
                            self.clock = Some(StoreClock::new(now, answer.now_us));
                            self.members[index].course.answered(now, no, &answer, &mut notices);
                        }
                        Err(error) => self.failed(now, index, no, &error),
                    }
                    self.tell(index, notices);
                    self.settle(index);
                }
            }
            Err(error) => {
                for (index, no) in requests {
                    self.failed(now, index, no, &error);
                    self.settle(index);
                }
            }
        }
    }

    fn failed(&mut self, now: BootInstant, index: usize, no: u64, error: &StoreError) {
        let failure = if error.is_permanent() { Failure::Permanent } else { Failure::Passing };
        self.members[index].course.failed(now, no, failure);
        if self.failing.as_ref() != Some(error) {
            let job = &self.engine.jobs[self.members[index].job];
            let (name, group) = (&*job.name, job.group_name());
            tracing::warn!(
                target: "leader", job = name, group,
                "the ledger of ticks was not asked, so no tick of job {name} begins until it is: {error}"
            );
            self.failing = Some(error.clone());
        }
    }

    fn recovered(&mut self) {
        if self.failing.take().is_some() {
            tracing::info!(target: "leader", "the ledger of ticks answers again");
        }
    }

    fn settle(&mut self, index: usize) {
        let course = &self.members[index].course;
        for (_, _, told) in self.waiting.extract_if(.., |(of, nonce, _)| *of == index && course.is_settled(*nonce)) {
            // Who waited may have gone.
            let _ = told.send(());
        }
        self.touched.push(index);
    }

    fn tell(&mut self, index: usize, notices: Vec<Notice>) {
        for notice in notices {
            match notice {
                Notice::Run(claimed) => self.run(index, claimed),
                Notice::Cut(nonce) => {
                    if let Some(cut) = self.cuts.remove(&nonce) {
                        // It may have ended this very moment.
                        let _ = cut.send(());
                    }
                }
                notice => self.engine.jobs[self.members[index].job].report(&notice),
            }
        }
    }

    fn run(&mut self, index: usize, claimed: Claimed) {
        let member = &mut self.members[index];
        let (cut, is_cut) = oneshot::channel();
        self.cuts.insert(claimed.nonce, cut);
        let missed = claimed.missed.map_or(0, |gap: Gap| gap.count);
        let tick = Tick::of(claimed.tick).with_attempt(claimed.attempt).with_missed(missed);
        let entry = member.entry.take();
        Run::claimed(Arc::clone(&self.engine), member.job, tick, (index, claimed.nonce), entry, is_cut).spawn();
    }
}

/// Spreads the jitter of different jobs.
fn seed(group: &GroupName, job: &JobName) -> u64 {
    // FNV-1a: the same on every instance, whatever its build.
    let bytes = group.as_str().bytes().chain([0]).chain(job.as_str().bytes());
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}
