//! A `JobScheduler` of tokio-cron-scheduler wakes our jobs, and decides nothing: which ticks there are, and which of them run,
//! stays with the schedule and the ledger.
//!
//! Its own jobs only ring. Their schedules are coarser than ours, so that what it reads otherwise than we do, or does not know
//! (days, years, five fields, changes of the clocks), costs needless rings and no late ones.

use std::str::FromStr;
use std::sync::Arc;

use chrono_tz::Tz;
use tokio_cron_scheduler::job::JobId;
use tokio_cron_scheduler::{Job as Waker, JobScheduler, JobSchedulerError};

use crate::error::CronError;
use crate::job::Job;
use crate::live_job::LiveJob;
use crate::orders::Order;
use crate::running::Running;

const EACH_SECOND: &str = "* * * * * *";

/// With the feature `tokio-cron-scheduler`: a `JobScheduler` that is there already wakes the jobs.
#[cfg_attr(docsrs, doc(cfg(feature = "tokio-cron-scheduler")))]
impl Running {
    /// Adds a job, as [`add`](Self::add) does, and returns what wakes it: give that to a `JobScheduler` of tokio-cron-scheduler.
    ///
    /// ```standalone_crate
    /// use std::time::Duration;
    ///
    /// use leader_core::{Config, bootstrap};
    /// use leader_cron::{Job, Scheduler, Tick};
    /// use tokio_cron_scheduler::JobScheduler;
    ///
    /// #[tokio::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let leader = bootstrap(Config::new("memory:").groups(["reports"])).await?;
    ///     let jobs = Scheduler::new(&leader).start()?;
    ///     let mut scheduler = JobScheduler::new().await?;
    ///
    ///     let report = Job::new("report", "0 0 * * * *", |tick: Tick| async move {
    ///         println!("the report of {}", tick.unix_seconds());
    ///     });
    ///     scheduler.add(jobs.tokio_cron(report.group("reports"))?).await?;
    ///     scheduler.start().await?;
    ///
    ///     // At the end: no wake any more, then no run, then no lease.
    ///     scheduler.shutdown().await?;
    ///     leader.shutdown(Duration::from_secs(10)).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// The `JobScheduler` only wakes. The body never runs on it, or under its lock, and gets the intended [`Tick`](crate::Tick).
    /// A wake that comes twice, early or for nothing runs nothing, and one that is lost is made up for: a tick waits for its
    /// wake for two seconds (less where ticks are less than three seconds apart), and then runs by itself. After one that waited
    /// in vain no tick of the job waits, until it is woken again. So if the `JobScheduler` is never started, is shut down, or hangs,
    /// the jobs go on; what stops them is [`stop`](Self::stop), or [`Elector::shutdown`](leader_core::Elector::shutdown), and both
    /// wait for the runs that are on, which the `JobScheduler` itself does not.
    ///
    /// It wakes the job at the seconds and minutes (in UTC also at the hours) of the schedule, on every day: that is more often
    /// than there are ticks, and does not depend on what it makes of days and of changes of the clocks. A job that was
    /// [removed](Self::remove) is not woken; take its waker out by the id that `JobScheduler::add` returned.
    ///
    /// # Errors
    /// Those of [`add`](Self::add).
    pub fn tokio_cron(&self, job: Job) -> Result<Waker, CronError> {
        self.insert(job).map(|job| self.waker(&job))
    }

    /// Lets a `JobScheduler` of tokio-cron-scheduler wake all jobs that there are now, those with `#[cron]` among them, as
    /// [`tokio_cron`](Self::tokio_cron) does it for one. Returns the ids of its wakers, in the order of [`jobs`](Self::jobs).
    ///
    /// ```standalone_crate
    /// # use leader_core::{Config, bootstrap, leader_only};
    /// # use leader_cron::{Scheduler, cron};
    /// # use tokio_cron_scheduler::JobScheduler;
    /// #[cron("@hourly")]
    /// #[leader_only]
    /// async fn report() {}
    ///
    /// #[tokio::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let leader = bootstrap(Config::new("memory:")).await?;
    ///     let jobs = Scheduler::new(&leader).start()?;
    ///     let scheduler = JobScheduler::new().await?;
    ///     assert_eq!(jobs.wake_by(&scheduler).await?.len(), 1);
    ///     scheduler.start().await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of `JobScheduler::add`. What was added stays, and does no harm if it is added again.
    ///
    /// # Cancel safety
    /// As with an error.
    pub async fn wake_by(&self, scheduler: &JobScheduler) -> Result<Vec<JobId>, JobSchedulerError> {
        let mut ids = Vec::new();
        for job in self.engine.jobs() {
            ids.push(scheduler.add(self.waker(&job)).await?);
        }
        Ok(ids)
    }

    fn waker(&self, job: &LiveJob) -> Waker {
        let zone = Tz::from_str(job.schedule.zone()).unwrap_or(Tz::UTC);
        let waker = |rings: &str| {
            // A `JobScheduler` that is never dropped keeps no elector.
            let (engine, job) = (Arc::downgrade(&self.engine), job.id);
            Waker::new_tz(rings, zone, move |_id, _scheduler| {
                if let Some(engine) = engine.upgrade() {
                    engine.order(Order::Ring { job });
                }
            })
        };
        let rings = rings(job.schedule.expression(), zone);
        waker(&rings).or_else(|_| waker(EACH_SECOND)).expect("six stars are a schedule")
    }
}

/// A schedule for `JobScheduler` that has a ring at each tick of the expression, and others: it takes the offset of a zone once,
/// so only what no change of the clocks touches is taken over, and of that nothing that it may read otherwise. One that is no
/// cron expression rings each second. What is left without a ring is a tick that a change of the clocks moves, and those of a zone
/// that moves by half an hour, until the program starts again.
fn rings(expression: &str, zone: Tz) -> String {
    let fields: Vec<_> = expression.split_whitespace().collect();
    let (second, minute, hour) = match fields[..] {
        [nickname] if nickname.eq_ignore_ascii_case("@hourly") => ("0", "0", "*"),
        // All others are at midnight.
        [nickname] if nickname.starts_with('@') => ("0", "0", "0"),
        [minute, hour, _, _, _] => ("0", minute, hour),
        [second, minute, hour, _, _, _] | [second, minute, hour, _, _, _, _] => (second, minute, hour),
        _ => return EACH_SECOND.to_owned(),
    };
    let hour = if zone == Tz::UTC { hour } else { "*" };
    format!("{second} {minute} {hour} * * *")
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, FixedOffset, Offset};

    use super::*;
    use crate::schedule::Schedule;

    /// Among them what `JobScheduler` refuses, or reads otherwise.
    const EXPRESSIONS: [&str; 18] = [
        "* * * * * *",
        "*/5 * * * * *",
        "1,7-9 */20 * * * *",
        "0 0 * * * *",
        "30 2 * * *",
        "*/15 9-17 * * MON-FRI",
        "0 12 13 * FRI",
        "0 30 2 * * SUN",
        "5 0 0 L * *",
        "0 0 0 15W * *",
        "0 0 6 * * MON#2",
        "0 15 10 * JAN-MAR TUE 2025-2030",
        "@hourly",
        "@daily",
        "@midnight",
        "@weekly",
        "@monthly",
        "@yearly",
    ];

    fn offset(zone: Tz, second: i64) -> FixedOffset {
        DateTime::from_timestamp(second, 0).unwrap().with_timezone(&zone).offset().fix()
    }

    /// Whether `JobScheduler` rings at this second: it goes on in the offset that the zone had when the waker was made.
    fn rings_at(waker: &mut Waker, second: i64) -> bool {
        let data = waker.job_data().unwrap();
        let offset = FixedOffset::east_opt(data.time_offset_seconds).unwrap();
        let time = DateTime::from_timestamp(second, 0).unwrap().with_timezone(&offset);
        data.schedule().unwrap().is_time_matching(&time).unwrap()
    }

    #[test]
    fn each_tick_has_its_ring_on_both_sides_of_a_change_of_the_clocks() {
        // Winter and summer of both halves of the globe, and offsets of half and quarter hours.
        for zone in ["UTC", "Europe/Berlin", "America/New_York", "Australia/Adelaide", "Asia/Kolkata", "Asia/Kathmandu"]
        {
            let zone = Tz::from_str(zone).unwrap();
            for expression in EXPRESSIONS {
                let schedule = Schedule::parse(expression, Some(zone.name())).unwrap();
                let mut waker = Waker::new_tz(rings(expression, zone), zone, |_, _| {}).unwrap();
                for start in (1_800_000_000..1_800_000_000 + 366 * 86_400).step_by(30 * 86_400) {
                    let ticks = std::iter::successors(schedule.next_after(start), |tick| schedule.next_after(*tick));
                    // What a change of the clocks leaves out comes at the change, which no schedule says.
                    let at_a_change = |tick| offset(zone, tick) != offset(zone, tick - 1);
                    for tick in ticks.take(30).filter(|tick| !at_a_change(*tick)) {
                        assert!(rings_at(&mut waker, tick), "{expression} in {zone}: no ring at {tick}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_ring_comes_no_oftener_than_seconds_minutes_and_in_utc_hours_say() {
        assert_eq!(rings("30 2 * * *", Tz::UTC), "0 30 2 * * *");
        assert_eq!(rings("5 30 2 L * MON#1", Tz::Europe__Berlin), "5 30 * * * *");
        assert_eq!(rings("@monthly", Tz::UTC), "0 0 0 * * *");
        assert_eq!(rings("every 90 s", Tz::UTC), EACH_SECOND);
    }
}
