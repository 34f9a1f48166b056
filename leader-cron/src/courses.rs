//! The courses of all jobs that are run once in the fleet: what each wants to ask of the ledger goes out in shared calls.

mod by_hand;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use leader_core::__private::{Entry, Hold, OnLoss};
use leader_core::store::{HistoryEvent, JobName, RunEnd, TickAnswers, TickCommand};
use leader_core::{BootInstant, GroupName, StoreError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::by_hand::Wish;
use crate::course::{Claimed, Course, Failure, Notice, Poll, Rules};
use crate::engine::Engine;
use crate::fnv::fnv1a;
use crate::live_job::LiveJob;
use crate::orders::Tell;
use crate::plan::Gap;
use crate::run::Run;
use crate::store_clock::StoreClock;
use crate::tick::Tick;

/// So many commands go into one call: a longer script would keep other clients of the store waiting.
const BATCH: usize = 100;

/// After this a job is looked at again whose run by hand somebody else began.
const HELD_UP: Duration = Duration::from_millis(250);

/// A job that is run once in the fleet.
struct Member {
    job: Arc<LiveJob>,
    group: GroupName,
    name: JobName,
    /// Tells it from others of the same name on this elector.
    id: u128,
    course: Course,
    /// No run of it begins any more.
    removed: bool,
    /// Permission to run the tick that is being claimed: while it is held, the lease is not given back.
    entry: Option<Entry>,
    /// Runs by hand that wait for the course.
    wishes: Vec<Wish>,
    wake: Option<BootInstant>,
    /// Its own commands fail, and the log was told why.
    failing: Option<StoreError>,
}

/// What becomes of it when the ledger knows.
enum Waits {
    Told(Tell),
    Dropped(Option<Hold>),
}

type Answered = (Vec<(usize, u64)>, Result<TickAnswers, StoreError>);

pub(crate) struct Courses {
    engine: Arc<Engine>,
    rules: Rules,
    /// By the number of the job.
    members: BTreeMap<usize, Member>,
    wakes: BTreeSet<(BootInstant, usize)>,
    touched: Vec<usize>,
    clock: Option<StoreClock>,
    calls: JoinSet<Answered>,
    /// How to cut a run, by the nonce of its claim.
    cuts: HashMap<u128, oneshot::Sender<()>>,
    /// Who waits until the ledger knows of the end of a run.
    waiting: HashMap<usize, Vec<(u128, Waits)>>,
    /// Jobs of which the ledger has to be told something, and what keeps the elector from ending before.
    owing: BTreeSet<usize>,
    owed: Option<Box<dyn Any + Send + Sync>>,
    /// The calls fail since.
    failing: Option<StoreError>,
}

impl Courses {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let (slot, guard, operation_timeout) = engine.elector.__timing();
        let mut courses = Self {
            rules: Rules { slot, guard, operation_timeout },
            members: BTreeMap::new(),
            wakes: BTreeSet::new(),
            touched: Vec::new(),
            clock: None,
            calls: JoinSet::new(),
            cuts: HashMap::new(),
            waiting: HashMap::new(),
            owing: BTreeSet::new(),
            owed: None,
            failing: None,
            engine,
        };
        for job in courses.engine.jobs() {
            courses.add(job);
        }
        courses
    }

    /// A job that belongs to a group is run by its course.
    pub(crate) fn add(&mut self, job: Arc<LiveJob>) {
        let (Some(group), Ok(name)) = (job.group.clone(), JobName::new(&*job.name)) else { return };
        let course = Course::new(job.schedule.clone(), job.policy, seed(&group, &name), self.rules);
        let course = course.renamed_from(job.renamed_from.clone());
        self.touched.push(job.id);
        let (removed, entry, wishes, wake, failing) = (false, None, Vec::new(), None, None);
        let id = leader_core::__private::random();
        self.members.insert(job.id, Member { job, group, name, id, course, removed, entry, wishes, wake, failing });
    }

    pub(crate) fn remove(&mut self, job: usize) {
        if let Some(member) = self.members.get_mut(&job) {
            member.removed = true;
            self.touched.push(job);
        }
    }

    /// Waits for an answer of the ledger, and takes it in.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub(crate) async fn answer(&mut self) {
        match self.calls.join_next().await {
            Some(Ok((requests, done))) => self.answered(BootInstant::now(), requests, done),
            // The runtime ends.
            Some(Err(_)) => {}
            None => pending().await,
        }
    }

    /// The body of this claim never began.
    pub(crate) fn refused(&mut self, job: usize, nonce: u128, held: Option<Hold>) {
        self.cuts.remove(&nonce);
        if let Some(member) = self.members.get_mut(&job) {
            member.course.refused(nonce);
            self.waiting.entry(job).or_default().push((nonce, Waits::Dropped(held)));
            self.settle(job);
        }
    }

    /// The body of this claim has ended.
    pub(crate) fn ended(&mut self, job: usize, nonce: u128, end: RunEnd, cut: bool, tell: Tell) {
        self.cuts.remove(&nonce);
        if let Some(member) = self.members.get_mut(&job) {
            let instance = || self.engine.elector.instance_id().clone();
            let manual = || HistoryEvent::Manual { instance: instance(), end: end.clone() };
            if !member.course.ended_by_hand(nonce, manual) {
                member.course.ended(nonce, end, cut);
            }
            self.waiting.entry(job).or_default().push((nonce, Waits::Told(tell)));
            self.settle(job);
        }
    }

    /// Somebody else's scheduler says that a tick of this job has come. Whether there is a course of it.
    #[cfg(feature = "tokio-cron-scheduler")]
    pub(crate) fn ring(&mut self, job: usize) -> bool {
        let Some(member) = self.members.get_mut(&job) else { return false };
        member.course.ring(BootInstant::now());
        self.touched.push(job);
        true
    }

    /// The records of all jobs may have changed.
    pub(crate) fn look(&mut self) {
        let now = BootInstant::now();
        self.members.values_mut().for_each(|member| member.course.look(now));
        self.touch_all();
    }

    /// Who leads which group may have changed.
    pub(crate) fn touch_all(&mut self) {
        self.touched = self.members.keys().copied().collect();
    }

    /// When to [`advance`](Self::advance), if nothing happens before.
    pub(crate) fn next_wake(&self) -> Option<BootInstant> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Nothing is owed to the ledger, and nothing is on.
    pub(crate) fn is_quiet(&self) -> bool {
        self.calls.is_empty() && self.members.values().all(|member| member.course.is_quiet())
    }

    /// No run is on.
    pub(crate) fn is_idle(&self) -> bool {
        self.members.values().all(|member| member.course.is_idle())
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
        if self.owing.is_empty() {
            self.owed = None;
        } else if self.owed.is_none() {
            self.owed = Some(Box::new(self.engine.elector.__owe()));
        }
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let (asked, commands): (Vec<_>, Vec<_>) = requests.by_ref().take(BATCH).unzip();
            let answer = self.engine.elector.__ask_ledger(commands);
            self.calls.spawn(async move { (asked, answer.await) });
        }
    }

    fn poll(&mut self, now: BootInstant, index: usize, closed: bool) -> Option<((usize, u64), TickCommand)> {
        let member = self.members.get_mut(&index)?;
        if let Some(at) = member.wake.take() {
            self.wakes.remove(&(at, index));
        }
        member.deny_what_comes_too_late(closed || member.removed);
        // The gate is asked before the claim, and the lease is not given back until what was claimed is settled. Unless nobody can
        // tell whether it was: then the claim is given back once it can no longer be executed.
        let goes = closed || member.removed || member.entry.as_ref().is_some_and(|entry| entry.lease().__is_ending());
        if goes && member.course.is_unsure() {
            member.entry = None;
        }
        if member.entry.as_ref().is_none_or(|entry| !entry.lease().is_held()) {
            // What the body is, is said once it begins.
            let entry = self.engine.elector.__enter(member.group.as_str(), &member.job.name, OnLoss::Cancel);
            member.entry = entry.filter(|_| !closed && !member.removed);
        }
        let held_up = member.is_held_up(&self.engine.elector);
        if held_up && !member.course.is_claiming() {
            member.entry = None;
        }
        match &member.entry {
            Some(entry) => member.course.led(now, entry.lease().term(), entry.lease().__unbroken_since()),
            None => member.course.unled(),
        }
        let mut notices = Vec::new();
        let (clock, mut random) = (self.clock.as_ref(), leader_core::__private::random);
        let (request, wait) = match member.course.poll(now, clock, &mut random, &mut notices) {
            // A slot may end before the answer comes.
            Poll::Send(request) => (Some(request), member.course.poll(now, clock, &mut random, &mut notices)),
            wait => (None, wait),
        };
        if !member.course.is_claiming() {
            member.entry = None;
        }
        // Also without a lease: what was claimed under it, and not run, is given back by nobody else.
        if member.course.owes() {
            self.owing.insert(index);
        } else {
            self.owing.remove(&index);
        }
        if member.removed && member.course.is_quiet() {
            self.members.remove(&index);
            self.waiting.remove(&index);
            return None;
        }
        let again = held_up.then(|| now.saturating_add(HELD_UP));
        let at = if let Poll::Wait(at) = wait { Some(at) } else { None };
        if let Some(at) = at.into_iter().chain(again).min() {
            member.wake = Some(at);
            self.wakes.insert((at, index));
        }
        self.tell(index, notices);
        let request = request?;
        let member = self.members.get(&index)?;
        let command = TickCommand {
            group: member.group.clone(),
            job: request.job.unwrap_or_else(|| member.name.clone()),
            candidate: self.engine.elector.__candidate().clone(),
            op: request.op,
        };
        Some(((index, request.no), command))
    }

    fn answered(&mut self, now: BootInstant, requests: Vec<(usize, u64)>, done: Result<TickAnswers, StoreError>) {
        match done {
            Ok(answers) => {
                self.recovered();
                for ((index, no), answer) in requests.into_iter().zip(answers) {
                    let mut notices = Vec::new();
                    match (answer, self.members.get_mut(&index)) {
                        (Ok(answer), Some(member)) => {
                            self.clock = Some(StoreClock::new(now, answer.now_us));
                            member.failing = None;
                            member.course.answered(now, no, &answer, &mut notices);
                        }
                        (Err(error), _) => {
                            if self.failed(now, index, no, &error) {
                                self.job_failed(index, error);
                            } else if let Some(member) = self.members.get(&index) {
                                member.job.report_unwritten(&error);
                            }
                        }
                        (Ok(_), None) => {}
                    }
                    self.tell(index, notices);
                    self.settle(index);
                }
            }
            Err(error) => {
                self.call_failed(error.clone());
                for (index, no) in requests {
                    self.failed(now, index, no, &error);
                    self.settle(index);
                }
            }
        }
    }

    /// Whether it matters to the job.
    fn failed(&mut self, now: BootInstant, index: usize, no: u64, error: &StoreError) -> bool {
        let failure = if error.is_permanent() { Failure::Permanent } else { Failure::Passing };
        let Some(member) = self.members.get_mut(&index) else { return true };
        let matters = member.course.failed(now, no, failure);
        if matters {
            member.deny_for(error);
        }
        matters
    }

    /// A call failed, with all that it asked.
    fn call_failed(&mut self, error: StoreError) {
        if self.failing.as_ref().is_none_or(|known| !known.__is_like(&error)) {
            tracing::warn!(
                target: "leader",
                "the ledger of ticks was not asked, so no tick of a group begins until it is: {error}"
            );
            self.failing = Some(error);
        }
    }

    /// The command of one job failed; the others of its call did not.
    fn job_failed(&mut self, index: usize, error: StoreError) {
        let Some(member) = self.members.get_mut(&index) else { return };
        if member.failing.as_ref().is_none_or(|known| !known.__is_like(&error)) {
            let (name, group) = (&*member.job.name, member.job.group_name());
            tracing::error!(
                target: "leader", job = name, group,
                "no tick of job {name} begins, others are not touched: {error}"
            );
            member.failing = Some(error);
        }
    }

    fn recovered(&mut self) {
        if self.failing.take().is_some() {
            tracing::info!(target: "leader", "the ledger of ticks answers again");
        }
    }

    fn settle(&mut self, index: usize) {
        let Some(Member { course, .. }) = self.members.get(&index) else { return };
        if let Some(waiting) = self.waiting.get_mut(&index) {
            for (_, waits) in waiting.extract_if(.., |(nonce, _)| course.is_settled(*nonce)) {
                match waits {
                    Waits::Told(tell) => tell.tell(),
                    Waits::Dropped(held) => drop(held),
                }
            }
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
                Notice::Free(nonce) => self.free(index, nonce),
                Notice::Taken { nonce, by } => self.taken(index, nonce, by),
                notice => {
                    let Some(member) = self.members.get_mut(&index) else { continue };
                    if let Notice::Corrupt(field) = notice {
                        member.deny_as_corrupt(field);
                    }
                    member.job.report(&notice);
                }
            }
        }
    }

    fn run(&mut self, index: usize, claimed: Claimed) {
        let Some(member) = self.members.get_mut(&index) else { return };
        let (cut, is_cut) = oneshot::channel();
        self.cuts.insert(claimed.nonce, cut);
        let missed = claimed.missed.map_or(0, |gap: Gap| gap.count);
        let tick = Tick::of(claimed.tick).with_attempt(claimed.attempt).with_missed(missed);
        let entry = member.entry.take();
        Run::claimed(Arc::clone(&self.engine), Arc::clone(&member.job), tick, claimed.nonce, entry, is_cut).spawn();
    }
}

/// Spreads the jitter of different jobs.
fn seed(group: &GroupName, job: &JobName) -> u64 {
    fnv1a(group.as_str().bytes().chain([0]).chain(job.as_str().bytes()))
}
