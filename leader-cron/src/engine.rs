//! The waker: one task that sleeps until something is due, at most a second, and reads the wall clock again.
//!
//! It runs no work itself. A job that each instance runs is due by the timetable, and spawned; one that belongs to a group is
//! due by its [course](crate::courses), and spawned once its tick was claimed.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use leader_core::{BootInstant, Elector, GroupName, NotReady};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::bodies::Bodies;
use crate::course::Notice;
use crate::courses::{Courses, FromRun};
use crate::data::Data;
use crate::job::{Body, Membership};
use crate::policy::Policy;
use crate::run::Run;
use crate::schedule::Schedule;
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
    /// What runs tell their courses.
    pub(crate) from_runs: mpsc::UnboundedSender<FromRun>,
}

/// A job that was started.
pub(crate) struct LiveJob {
    pub(crate) name: Arc<str>,
    pub(crate) schedule: Schedule,
    pub(crate) policy: Policy,
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
        drop(record);
        let (job, group) = (&*self.name, self.group_name());
        tracing::debug!(target: "leader", job, tick, group, "job {job} was skipped: this instance does not lead its group");
    }
}

impl LiveJob {
    /// What the log is told of a job's course.
    pub(crate) fn report(&self, notice: &Notice) {
        let (job, group) = (&*self.name, self.group_name());
        match notice {
            // Told by those who do it.
            Notice::Run(_) | Notice::Cut(_) => {}
            Notice::Missed(gap) => {
                self.record().missed += gap.count;
                let (count, from) = (gap.count, self.schedule.local_time(gap.from));
                tracing::warn!(
                    target: "leader", job, group, missed = count,
                    "{count} ticks of job {job}, from {from} on, are not run: {}", gap.reason
                );
            }
            Notice::Superseded(tick) => {
                let tick = *tick;
                tracing::warn!(
                    target: "leader", job, group, tick,
                    "a tick of job {job} was claimed and not begun before the lease ended; a newer one has taken its place"
                );
            }
            Notice::GaveUp { tick, attempts } => {
                let (tick, attempts) = (*tick, *attempts);
                tracing::error!(
                    target: "leader", job, group, tick, attempts,
                    "a tick of job {job} is not run again: {attempts} runs of it have died, or the last one too long ago"
                );
            }
            Notice::Corrupt(field) => {
                tracing::error!(
                    target: "leader", job, group, field,
                    "the record of job {job} cannot be read (`{field}`), so the job does not run: remove the record, and the \
                     job begins anew; others are not touched"
                );
            }
            Notice::Ended => {
                tracing::warn!(target: "leader", job, group, "job {job} has no tick any more: its schedule ends");
            }
        }
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
        Run::own(Arc::clone(self), due.job, Tick::of(tick).with_missed(missed)).spawn();
    }

    pub(crate) fn tell(&self, told: FromRun) {
        // Nobody listens any more once the runtime ends.
        let _ = self.from_runs.send(told);
    }
}

/// Wakes the jobs until the elector ends or the bodies are closed, and goes on until the ledger knows of all ends. `wall`
/// reads the wall clock.
pub(crate) async fn wake(
    engine: Arc<Engine>,
    mut timetable: Timetable,
    from_runs: mpsc::UnboundedReceiver<FromRun>,
    wall: impl Fn() -> SystemTime,
) {
    let mut courses = Courses::new(Arc::clone(&engine), from_runs);
    let mut news = leadership(&engine);
    let mut closing = pin!(engine.elector.__closing());
    let mut before = wall();
    loop {
        let now = wall();
        warn_if_set_back(before, now);
        before = now;
        while let Some(due) = timetable.take_due(unix_seconds(now)) {
            engine.dispatch(due);
        }
        courses.advance(false);
        let until_next = timetable.next().map(|next| instant(next).duration_since(now).unwrap_or_default());
        let sleep = sleep(until_next, courses.next_wake());
        tokio::select! {
            biased;
            () = engine.bodies.closed() => break,
            () = &mut closing => {
                engine.bodies.close();
                tracing::info!(target: "leader", "the elector ends, and with it its jobs: no run begins any more");
                break;
            }
            happened = courses.happened() => courses.take_in(happened),
            Some(()) = news.recv() => courses.touch_all(),
            () = tokio::time::sleep(sleep) => {}
        }
    }
    loop {
        courses.advance(true);
        if courses.is_quiet() || matches!(engine.elector.ready(), Err(NotReady::Stopped)) {
            return;
        }
        let sleep = sleep(None, courses.next_wake());
        tokio::select! {
            biased;
            happened = courses.happened() => courses.take_in(happened),
            () = tokio::time::sleep(sleep) => {}
        }
    }
}

fn sleep(until_next: Option<Duration>, wake: Option<BootInstant>) -> Duration {
    let until_wake = wake.map(|at| at.saturating_since(BootInstant::now()));
    [until_next, until_wake].into_iter().flatten().min().unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
}

/// Rings when this instance may have begun, or ceased, to lead a group that jobs belong to.
fn leadership(engine: &Engine) -> mpsc::Receiver<()> {
    // One ring says it all.
    let (ring, rings) = mpsc::channel(1);
    let groups: BTreeSet<&str> = engine.jobs.iter().filter_map(LiveJob::group_name).collect();
    for group in groups {
        let Ok(mut changes) = engine.elector.subscribe(group) else { continue };
        let ring = ring.clone();
        drop(tokio::spawn(async move {
            loop {
                tokio::select! {
                    change = changes.next() => {
                        if change.is_none() || matches!(ring.try_send(()), Err(TrySendError::Closed(()))) {
                            return;
                        }
                    }
                    () = ring.closed() => return,
                }
            }
        }));
    }
    rings
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
            let (from_runs, told) = mpsc::unbounded_channel();
            let engine = Arc::new(Engine {
                elector: elector.clone(),
                scoped: true,
                data: Arc::default(),
                jobs: vec![live(job, &schedule)],
                bodies: Arc::default(),
                from_runs,
            });
            let wall = Arc::new(AtomicI64::new(START));
            let now = Arc::clone(&wall);
            let timetable = Timetable::new(vec![schedule], START);
            drop(tokio::spawn(wake(Arc::clone(&engine), timetable, told, move || instant(now.load(Ordering::SeqCst)))));
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
