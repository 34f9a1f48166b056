//! Intervals, and several schedules of one job: by attributes and by hand. Every scheduler in this program starts the functions
//! below.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::time::Duration;

use common::{PATIENCE, elector, in_time, next, status};
use leader_core::leader_only;
use leader_core::store::MemoryStore;
use leader_core::testing::FixedElector;
use leader_cron::{CronError, Job, JobProblem, Missed, Scheduler, Tick, cron, every};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

struct Log(UnboundedSender<(&'static str, Tick)>);

impl Log {
    fn write(&self, job: &'static str, tick: Tick) {
        // The test may have seen enough.
        let _ = self.0.send((job, tick));
    }
}

const TWO_SECONDS: Duration = Duration::from_secs(2);

#[every("1s")]
#[leader_only(group = "beats")]
async fn beat(log: &Log, tick: Tick) {
    log.write("beat", tick);
}

/// Each second is a tick of the first, and of the others now and then.
#[cron("* * * * * *", tz = "Asia/Tokyo")]
#[leader_only(group = "beats")]
#[every(TWO_SECONDS, missed = "all")]
#[leader_cron::cron("*/3 * * * * *", tz = "Europe/Berlin", name = "union")]
async fn by_several(log: &Log, tick: Tick) {
    log.write("union", tick);
}

/// The compiler decides what is under `cfg_attr` before the first one is read.
#[every("1h", name = "undecided")]
#[cfg_attr(all(), cron("@daily"))]
#[cfg_attr(any(), cron("@hourly"))]
#[cfg_attr(all(), cron("@weekly"))]
fn undecided() {}

/// The scheduler's own function has another name.
#[every("1d12h", timeout = "1h")]
fn run() {}

#[every("1s")]
#[cron("@daily")]
#[cfg(any())]
fn left_out() {}

fn log() -> (Log, UnboundedReceiver<(&'static str, Tick)>) {
    let (sender, lines) = unbounded_channel();
    (Log(sender), lines)
}

fn start(elector: &leader_core::Elector) -> (leader_cron::Running, UnboundedReceiver<(&'static str, Tick)>) {
    let (log, lines) = log();
    (Scheduler::new(elector).data(log).start().unwrap(), lines)
}

async fn tick_of(job: &str, lines: &mut UnboundedReceiver<(&'static str, Tick)>) -> i64 {
    loop {
        let (of, tick) = next(lines).await;
        if of == job {
            return tick.unix_seconds();
        }
    }
}

#[tokio::test]
async fn a_function_with_several_schedules_is_one_job_that_tells_them_all() {
    let elector = FixedElector::following(["none"]);
    let (running, _lines) = start(&elector);
    let told: Vec<_> = running.jobs().into_iter().map(|job| (job.name, job.schedule, job.zone)).collect();
    let expected = [
        ("beat", "every 1s", "UTC"),
        ("run", "every 1d12h", "UTC"),
        ("undecided", "every 1h and @daily and @weekly", "UTC"),
        ("union", "* * * * * * in Asia/Tokyo and every 2s and */3 * * * * * in Europe/Berlin", "UTC"),
    ];
    assert_eq!(told, expected.map(|(name, schedule, zone)| (name.to_owned(), schedule.to_owned(), zone.to_owned())));
}

#[tokio::test]
async fn a_tick_that_several_schedules_name_runs_once_on_whichever_instance_leads() {
    let store = MemoryStore::new();
    let (first, second) = (elector(&store, &["beats"]).await, elector(&store, &["beats"]).await);
    let (jobs, mut lines) = start(&first);
    let (_others, mut other_lines) = start(&second);
    let mut ticks = Vec::new();
    for _ in 0..4 {
        ticks.push(tick_of("union", &mut lines).await);
    }
    in_time(first.shutdown(PATIENCE)).await.unwrap();
    ticks.extend(
        std::iter::from_fn(|| lines.try_recv().ok())
            .filter(|(job, _)| *job == "union")
            .map(|(_, tick)| tick.unix_seconds()),
    );
    for _ in 0..4 {
        ticks.push(tick_of("union", &mut other_lines).await);
    }
    assert!(ticks.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ticks:?}");
    assert_eq!(status(&jobs, "union").failures, 0);
}

#[tokio::test]
async fn the_ticks_of_an_interval_are_its_multiples_and_go_on_after_a_restart() {
    let store = MemoryStore::new();
    let (sender, mut ticks) = unbounded_channel();
    let job = || {
        let sender = sender.clone();
        Job::every("even", TWO_SECONDS, move |tick: Tick| {
            let sender = sender.clone();
            async move {
                // The test may have seen enough.
                let _ = sender.send(tick.unix_seconds());
            }
        })
        .group("beats")
        .missed(Missed::All)
    };
    let mut seen = Vec::new();
    for _ in 0..2 {
        let elector = elector(&store, &["beats"]).await;
        let _jobs = Scheduler::new(&elector).data(log().0).job(job()).start().unwrap();
        seen.extend([next(&mut ticks).await, next(&mut ticks).await]);
        in_time(elector.shutdown(PATIENCE)).await.unwrap();
        seen.extend(std::iter::from_fn(|| ticks.try_recv().ok()));
    }
    assert!(seen.iter().all(|tick| tick % 2 == 0), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[1] == pair[0] + 2), "{seen:?}");
}

#[tokio::test]
async fn jobs_by_hand_have_intervals_and_several_schedules_too() {
    let elector = FixedElector::following(["none"]);
    let (sender, mut ticks) = unbounded_channel();
    let running = Scheduler::new(&elector)
        .data(log().0)
        .job(Job::every_blocking("blocking", Duration::from_secs(1), move |tick| {
            // The test may have seen enough.
            let _ = sender.send(tick);
        }))
        .job(
            Job::new("by-hand", "0 0 9 * * *", |_| async {})
                .tz("Europe/Berlin")
                .also("0 0 9 * * *")
                .also_every(Duration::from_secs(90))
                .tz("America/New_York"),
        )
        .start()
        .unwrap();
    let told = status(&running, "by-hand").schedule;
    assert_eq!(told, "0 0 9 * * * in Europe/Berlin and 0 0 9 * * * in America/New_York and every 1m30s");
    let (first, second) = (next(&mut ticks).await, next(&mut ticks).await);
    assert!(second.unix_seconds() > first.unix_seconds());
}

#[tokio::test]
async fn what_is_wrong_with_any_schedule_of_a_job_is_told_before_it_starts() {
    let elector = FixedElector::following(["none", "group"]);
    let every = |name: &str, period| Job::every(name, period, |_| async {});
    let refused = Scheduler::new(&elector)
        .data(log().0)
        .job(every("no-second", Duration::from_millis(1500)).also("0 0 0 30 2 *").also("* *"))
        .job(Job::new("ended", "0 0 0 1 1 * 2020", |_| async {}).also("0 0 0 1 1 * 2021"))
        .job(every("stray-zone", Duration::from_secs(60)).tz("Europe/Berlin").also("@daily"))
        // Every 40 minutes and each hour: 20 minutes apart at times.
        .job(
            every("jitter", Duration::from_secs(2400)).also("@hourly").group("group").jitter(Duration::from_secs(1500)),
        )
        .start()
        .unwrap_err();
    let CronError::Invalid { problems } = refused else { panic!("{refused}") };
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let expected = [
        ("ended", "`0 0 0 1 1 * 2020` never comes"),
        ("ended", "`0 0 0 1 1 * 2021` never comes"),
        ("no-second", "an interval of 1.5s is not possible: write whole seconds, from 1 s to 366 days"),
        ("no-second", "`* *` is no cron expression"),
        ("stray-zone", "the time zone `Europe/Berlin` is of no cron expression"),
        ("jitter", "two of its ticks are 1200s apart, and a jitter of 1500s would mix them up"),
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:#?}");
    for (text, (job, reason)) in texts.iter().zip(expected) {
        assert!(text.contains(&format!("job `{job}`")) && text.contains(reason), "{text}");
    }
    assert!(matches!(problems[5], JobProblem::Policy { .. }));
}
