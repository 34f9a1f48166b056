//! What the waker, the runs and the handle share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use leader_core::Elector;
use tokio::sync::mpsc;

use crate::bodies::Bodies;
use crate::by_hand::{Asked, Denied};
use crate::data::Data;
use crate::live_job::LiveJob;
use crate::orders::Order;
use crate::run::Run;
use crate::tick::Tick;
use crate::timetable::Due;

pub(crate) struct Engine {
    pub(crate) elector: Elector,
    /// Annotated functions do not ask this elector by themselves.
    pub(crate) scoped: bool,
    pub(crate) data: Arc<Data>,
    jobs: Mutex<BTreeMap<usize, Arc<LiveJob>>>,
    /// The number of the next job.
    next: AtomicUsize,
    pub(crate) bodies: Arc<Bodies>,
    /// To the waker.
    orders: mpsc::UnboundedSender<Order>,
}

impl Engine {
    pub(crate) fn new(
        elector: Elector,
        data: Data,
        jobs: Vec<Arc<LiveJob>>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Order>) {
        let (orders, inbox) = mpsc::unbounded_channel();
        let scoped = !elector.__is_process_wide();
        let next = AtomicUsize::new(jobs.len());
        let jobs = Mutex::new(jobs.into_iter().map(|job| (job.id, job)).collect());
        let engine = Self { elector, scoped, data: Arc::new(data), jobs, next, bodies: Arc::default(), orders };
        (Arc::new(engine), inbox)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<LiveJob>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn job(&self, id: usize) -> Option<Arc<LiveJob>> {
        self.lock().get(&id).cloned()
    }

    /// Adds a job, under a number of its own.
    pub(crate) fn insert(&self, make: impl FnOnce(usize) -> LiveJob) -> Arc<LiveJob> {
        let mut jobs = self.lock();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let job = Arc::new(make(id));
        jobs.insert(id, Arc::clone(&job));
        job
    }

    pub(crate) fn remove(&self, id: usize) {
        self.lock().remove(&id);
    }

    /// All jobs, in order of their names.
    pub(crate) fn jobs(&self) -> Vec<Arc<LiveJob>> {
        let mut jobs: Vec<_> = self.lock().values().cloned().collect();
        jobs.sort_by(|a, b| a.name.cmp(&b.name));
        jobs
    }

    pub(crate) fn order(&self, order: Order) {
        // Nobody listens any more once the runtime ends.
        let _ = self.orders.send(order);
    }

    /// A tick has come.
    pub(crate) fn dispatch(self: &Arc<Self>, due: Due) {
        let Some(job) = self.job(due.job) else { return };
        job.record().next = due.next;
        let (name, tick, group) = (&*job.name, due.tick, job.group_name());
        if due.next.is_none() {
            tracing::warn!(target: "leader", job = name, tick, group, "this was the last tick of job {name}: its schedule ends");
        }
        if let Some(group) = group {
            // A leader walks its ticks by the ledger.
            if !self.elector.is_leader(group) {
                job.skip(tick);
            }
            return;
        }
        let mut record = job.record();
        record.missed += due.missed;
        record.owed += due.missed;
        if record.busy > 0 {
            record.overlapping += 1;
            record.owed += 1;
            drop(record);
            tracing::warn!(
                target: "leader", job = name, tick, group,
                "a tick of job {name} was not run, because the run before it is still on; give it more time between two ticks"
            );
            return;
        }
        record.busy += 1;
        let missed = std::mem::take(&mut record.owed);
        drop(record);
        if due.missed > 0 {
            tracing::warn!(
                target: "leader", job = name, tick, group, missed = due.missed,
                "job {name} is late by {} ticks (a stall, or a step of the wall clock): the newest is run for all", due.missed
            );
        }
        Run::own(Arc::clone(self), Arc::clone(&job), Tick::of(tick).with_missed(missed), None).spawn();
    }

    /// A job that each instance runs, by hand.
    pub(crate) fn run_by_hand(self: &Arc<Self>, job: Arc<LiveJob>, asked: Asked) {
        let mut record = job.record();
        if record.busy > 0 {
            drop(record);
            let busy = Denied::Busy { elsewhere: None, running_for: self.running_for(&job) };
            // Who asked may have gone.
            let _ = asked.send(Err(busy));
            return;
        }
        record.busy += 1;
        drop(record);
        Run::own(Arc::clone(self), job, Tick::at(SystemTime::now()).by_hand(), Some(asked)).spawn();
    }

    /// For how long the oldest run of a job is on here; zero of one that is about to begin.
    pub(crate) fn running_for(&self, job: &LiveJob) -> Duration {
        let running = self.bodies.running().into_iter().filter(|(running, _)| running.id == job.id);
        running.map(|(_, running_for)| running_for).max().unwrap_or_default()
    }
}
