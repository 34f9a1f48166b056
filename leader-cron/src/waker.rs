//! The waker: one task that sleeps until something is due, at most a second, and reads the wall clock again.
//!
//! It runs no work itself. A job that each instance runs is due by the timetable, and spawned; one that belongs to a group is
//! due by its [course](crate::courses), and spawned once its tick was claimed.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use leader_core::BootInstant;
use tokio::sync::mpsc::{self, UnboundedReceiver, error::TrySendError};

use crate::courses::Courses;
use crate::engine::Engine;
use crate::live_job::LiveJob;
use crate::orders::Order;
use crate::tick::{instant, unix_seconds};
use crate::timetable::Timetable;

/// A step of the wall clock is noticed after this at the latest.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// What is due when.
struct Waker {
    timetable: Timetable,
    courses: Courses,
}

/// Wakes the jobs until the elector ends or the bodies are closed, and goes on until the ledger knows of all ends: from the
/// ticks after `start` on. `wall` reads the wall clock.
pub(crate) async fn wake(
    engine: Arc<Engine>,
    mut orders: UnboundedReceiver<Order>,
    start: SystemTime,
    wall: impl Fn() -> SystemTime,
) {
    let courses = Courses::new(Arc::clone(&engine));
    let mut waker = Waker { timetable: Timetable::default(), courses };
    let mut before = start;
    for job in engine.jobs() {
        waker.schedule(&job, before);
    }
    let mut news = leadership(&engine);
    let mut closing = pin!(engine.elector.__closing());
    loop {
        let now = wall();
        warn_if_set_back(before, now);
        before = now;
        while let Some(due) = waker.timetable.take_due(unix_seconds(now)) {
            engine.dispatch(due);
        }
        waker.courses.advance(false);
        let until_next = waker.timetable.next().map(|next| instant(next).duration_since(now).unwrap_or_default());
        let sleep = sleep(until_next, waker.courses.next_wake());
        tokio::select! {
            biased;
            () = engine.bodies.closed() => break,
            () = &mut closing => {
                engine.bodies.close();
                tracing::info!(target: "leader", "the elector ends, and with it its jobs: no run begins any more");
                break;
            }
            () = waker.courses.answer() => {}
            Some(order) = orders.recv() => waker.obey(order, wall()),
            Some(()) = news.recv() => waker.courses.touch_all(),
            () = tokio::time::sleep(sleep) => {}
        }
        while let Ok(order) = orders.try_recv() {
            waker.obey(order, wall());
        }
    }
    let mut ended = pin!(engine.elector.__ended());
    let mut over = false;
    waker.courses.touch_all();
    loop {
        waker.courses.advance(true);
        // Runs that outlive the elector are cut when their slot is over.
        if waker.courses.is_quiet() || over && waker.courses.is_idle() {
            return;
        }
        let sleep = sleep(None, waker.courses.next_wake());
        tokio::select! {
            biased;
            () = waker.courses.answer() => {}
            () = &mut ended, if !over => over = true,
            Some(order) = orders.recv() => waker.obey(order, wall()),
            () = tokio::time::sleep(sleep) => {}
        }
    }
}

impl Waker {
    fn schedule(&mut self, job: &Arc<LiveJob>, now: SystemTime) {
        job.record().next = self.timetable.add(job.id, job.schedule.clone(), unix_seconds(now));
    }

    fn obey(&mut self, order: Order, now: SystemTime) {
        match order {
            Order::Refused { job, nonce, held } => self.courses.refused(job, nonce, held),
            Order::Ended { job, nonce, end, cut, tell } => self.courses.ended(job, nonce, end, cut, tell),
            Order::Add(job) => {
                self.schedule(&job, now);
                self.courses.add(job);
            }
            Order::Remove { job } => {
                self.timetable.remove(job);
                self.courses.remove(job);
            }
            #[cfg(feature = "tokio-cron-scheduler")]
            Order::Ring { job } => {
                if !self.courses.ring(job) {
                    self.timetable.ring(job, unix_seconds(now));
                }
            }
            Order::Trigger { job, asked } => self.courses.trigger(job, asked),
            Order::Look => self.courses.look(),
        }
    }
}

fn sleep(until_next: Option<Duration>, wake: Option<BootInstant>) -> Duration {
    let until_wake = wake.map(|at| at.saturating_since(BootInstant::now()));
    [until_next, until_wake].into_iter().flatten().min().unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
}

/// Rings when this instance may have begun, or ceased, to lead a group.
fn leadership(engine: &Engine) -> mpsc::Receiver<()> {
    // One ring says it all.
    let (ring, rings) = mpsc::channel(1);
    for group in engine.elector.groups() {
        let Ok(mut changes) = engine.elector.subscribe(group.as_str()) else { continue };
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
    use crate::data::Data;
    use crate::job::Job;
    use crate::schedule::Schedule;
    use crate::scheduler::live;
    use crate::tick::Tick;

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
            let schedule = Schedule::parse("* * * * * *", None).unwrap();
            let (engine, orders) =
                Engine::new(elector.clone(), Data::default(), vec![Arc::new(live(0, job, schedule))]);
            let wall = Arc::new(AtomicI64::new(START));
            let now = Arc::clone(&wall);
            drop(tokio::spawn(wake(Arc::clone(&engine), orders, instant(START), move || {
                instant(now.load(Ordering::SeqCst))
            })));
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
        assert_eq!(bench.engine.jobs()[0].record().missed, 3598);
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
