//! The waker: one task that sleeps until a job is due, at most a second, and reads the wall clock again.
//!
//! It runs no work itself: a job that is due, free, and on the leader of its group is spawned.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use leader_core::{Elector, GroupName};

use crate::bodies::Bodies;
use crate::data::Data;
use crate::job::{Body, Membership};
use crate::run::Run;
use crate::status::Record;
use crate::tick::{Tick, instant, unix_seconds};
use crate::timetable::{Due, Timetable};

/// A step of the wall clock is noticed after this at the latest.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// What the waker, the runs and the handle share.
pub(crate) struct Engine {
    pub(crate) elector: Elector,
    /// Annotated functions do not ask this elector by themselves.
    pub(crate) scoped: bool,
    pub(crate) data: Arc<Data>,
    pub(crate) jobs: Vec<LiveJob>,
    pub(crate) bodies: Arc<Bodies>,
}

/// A job that was started.
pub(crate) struct LiveJob {
    pub(crate) name: Arc<str>,
    pub(crate) expression: String,
    pub(crate) zone: &'static str,
    pub(crate) membership: Membership,
    pub(crate) group: Option<GroupName>,
    pub(crate) cancel_on_loss: bool,
    pub(crate) body: Body,
    pub(crate) record: Mutex<Record>,
}

impl LiveJob {
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn group_name(&self) -> Option<&str> {
        self.group.as_ref().map(GroupName::as_str)
    }

    /// The tick belongs to another instance.
    pub(crate) fn skip(&self, tick: i64) {
        let mut record = self.record();
        record.skipped += 1;
        // What was not run here before is the leader's business too.
        record.owed = 0;
        drop(record);
        let (job, group) = (&*self.name, self.group_name());
        tracing::debug!(target: "leader", job, tick, group, "job {job} was skipped: this instance does not lead its group");
    }
}

impl Engine {
    /// A tick has come.
    fn dispatch(self: &Arc<Self>, due: Due) {
        let job = &self.jobs[due.job];
        job.record().next = due.next;
        let (name, tick, group) = (&*job.name, due.tick, job.group_name());
        if due.next.is_none() {
            tracing::warn!(target: "leader", job = name, tick, group, "this was the last tick of job {name}: its schedule ends");
        }
        if group.is_some_and(|group| !self.elector.is_leader(group)) {
            job.skip(tick);
            return;
        }
        let mut record = job.record();
        record.missed += due.missed;
        record.owed += due.missed;
        if record.busy {
            record.overlapping += 1;
            record.owed += 1;
            drop(record);
            tracing::warn!(
                target: "leader", job = name, tick, group,
                "a tick of job {name} was not run, because the run before it is still on; give it more time between two ticks"
            );
            return;
        }
        record.busy = true;
        let missed = std::mem::take(&mut record.owed);
        drop(record);
        if due.missed > 0 {
            tracing::warn!(
                target: "leader", job = name, tick, group, missed = due.missed,
                "job {name} is late by {} ticks (a stall, or a step of the wall clock): the newest is run for all", due.missed
            );
        }
        Run::new(Arc::clone(self), due.job, Tick::of(tick).with_missed(missed)).spawn();
    }
}

/// Wakes the jobs until the elector ends or the bodies are closed. `wall` reads the wall clock.
pub(crate) async fn wake(engine: Arc<Engine>, mut timetable: Timetable, wall: impl Fn() -> SystemTime) {
    let mut closing = pin!(engine.elector.__closing());
    let mut before = wall();
    loop {
        let now = wall();
        warn_if_set_back(before, now);
        before = now;
        while let Some(due) = timetable.take_due(unix_seconds(now)) {
            engine.dispatch(due);
        }
        let until_next = timetable.next().map(|next| instant(next).duration_since(now).unwrap_or_default());
        tokio::select! {
            biased;
            () = engine.bodies.closed() => return,
            () = &mut closing => break,
            () = tokio::time::sleep(until_next.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)) => {}
        }
    }
    engine.bodies.close();
    tracing::info!(target: "leader", "the elector ends, and with it its jobs: no run begins any more");
}

fn warn_if_set_back(before: SystemTime, now: SystemTime) {
    let by = before.duration_since(now).unwrap_or_default();
    if by >= Duration::from_secs(1) {
        tracing::warn!(
            target: "leader",
            "the wall clock was set back by {:.1} s: ticks that were run are not run again, so jobs wait until it has caught \
             up; if it was wrong by far before, restart this instance",
            by.as_secs_f64()
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use leader_core::testing::FixedElector;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::job::Job;
    use crate::schedule::Schedule;
    use crate::scheduler::live;

    const START: i64 = 1_800_000_000;

    /// A job each second, under a wall clock that stands still until the test moves it. The runtime's own time is paused:
    /// it moves on by itself as soon as all tasks wait, so that the waker looks at the wall clock over and over.
    struct Bench {
        wall: Arc<AtomicI64>,
        ticks: UnboundedReceiver<(i64, u64)>,
        engine: Arc<Engine>,
    }

    impl Bench {
        fn start() -> (Self, FixedElector) {
            let elector = FixedElector::following(["none"]);
            let (sender, ticks) = unbounded_channel();
            let job = Job::new("work", "* * * * * *", move |tick: Tick| {
                sender.send((tick.unix_seconds() - START, tick.missed())).unwrap();
                async {}
            });
            let schedule = Schedule::parse(&job.schedule, None).unwrap();
            let engine = Arc::new(Engine {
                elector: elector.clone(),
                scoped: true,
                data: Arc::default(),
                jobs: vec![live(job, &schedule)],
                bodies: Arc::default(),
            });
            let wall = Arc::new(AtomicI64::new(START));
            let now = Arc::clone(&wall);
            let timetable = Timetable::new(vec![schedule], START);
            drop(tokio::spawn(wake(Arc::clone(&engine), timetable, move || instant(now.load(Ordering::SeqCst)))));
            (Self { wall, ticks, engine }, elector)
        }

        /// Sets the wall clock, and lets the waker look at it a few times.
        async fn set(&self, seconds: i64) {
            self.wall.store(START + seconds, Ordering::SeqCst);
            tokio::time::sleep(LONGEST_SLEEP * 3).await;
        }

        fn seen(&mut self) -> Vec<(i64, u64)> {
            std::iter::from_fn(|| self.ticks.try_recv().ok()).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_is_set_back_runs_no_tick_twice() {
        let (mut bench, _elector) = Bench::start();
        for seconds in [1, 2, 3, -3600, 0, 3] {
            bench.set(seconds).await;
        }
        assert_eq!(bench.seen(), [(1, 0), (2, 0), (3, 0)]);
        bench.set(4).await;
        assert_eq!(bench.seen(), [(4, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_jumps_ahead_runs_the_newest_tick_and_tells_of_the_others() {
        let (mut bench, _elector) = Bench::start();
        bench.set(1).await;
        bench.set(3600).await;
        bench.set(3601).await;
        assert_eq!(bench.seen(), [(1, 0), (3600, 3598), (3601, 0)]);
        assert_eq!(bench.engine.jobs[0].record().missed, 3598);
    }

    #[tokio::test(start_paused = true)]
    async fn the_waker_ends_with_its_elector() {
        let (mut bench, elector) = Bench::start();
        elector.shutdown(Duration::ZERO).await.unwrap();
        bench.engine.bodies.closed().await;
        bench.set(1).await;
        assert_eq!(bench.seen(), []);
    }
}
