//! Methods that are jobs, in every shape that a block can have. Every scheduler in this program starts them all.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{in_time, status, until};
use leader_core::leader_only;
use leader_core::testing::FixedElector;
use leader_cron::{CronError, Running, Scheduler, Tick, cron, cron_jobs, every};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

struct Log(UnboundedSender<&'static str>);

impl Log {
    fn write(&self, job: &'static str) {
        // The test may have seen enough.
        let _ = self.0.send(job);
    }
}

struct Reports {
    log: UnboundedSender<&'static str>,
    built: AtomicU32,
}

#[cron_jobs]
impl Reports {
    #![allow(clippy::unused_self, reason = "an attribute of the block")]

    const PERIOD: Duration = Duration::from_secs(1);
    const DAILY: &'static str = "@daily";

    fn new(log: UnboundedSender<&'static str>) -> Self {
        Self { log, built: AtomicU32::new(0) }
    }

    #[cron("* * * * * *")]
    #[leader_only(group = "nightly")]
    async fn gated(&self, tick: Tick) {
        assert_eq!(leader_core::lease().map(|lease| lease.term()), tick.lease().map(leader_core::Lease::term));
        self.built.fetch_add(1, Ordering::Relaxed);
        let _ = self.log.send("gated");
    }

    #[leader_only(group = "nightly")]
    #[every(Self::PERIOD, name = "gated-and-blocking")]
    #[cron(Self::DAILY)]
    #[expect(clippy::needless_arbitrary_self_type, reason = "it is another way to write it")]
    fn blocking(self: &Self, by_ref: &Tick, Log(log): &Log) -> Result<(), String> {
        log.send("gated-and-blocking").map_err(|_| format!("nobody reads of {}", by_ref.unix_seconds()))
    }

    #[every("1s")]
    async fn without_self(reports: &Self, log: &Log) {
        assert!(!reports.log.is_closed());
        log.write("without_self");
    }

    /// A name that the registration has none of.
    #[every("1s")]
    fn run(&self) {}

    #[every("1s")]
    #[cfg(any())]
    fn left_out(&self) {}
}

/// Another block of the same type.
#[cron_jobs]
impl Reports {
    #[every("1s")]
    fn in_another_block(&self) {}
}

#[cfg(any())]
#[cron_jobs]
impl Reports {
    #[every("1s")]
    fn left_out_with_its_block(&self) {}
}

#[cron_jobs]
#[cfg(any())]
impl Reports {
    #[every("1s")]
    fn left_out_with_its_block_too(&self) {}
}

trait Tidy {
    type Error: std::fmt::Display;

    async fn tidy(&self, log: &Log) -> Result<(), Self::Error>;
}

#[cron_jobs]
impl Tidy for Reports {
    type Error = std::fmt::Error;

    #[every("1s")]
    async fn tidy(&self, log: &Log) -> Result<(), Self::Error> {
        assert_eq!(std::ptr::from_ref(log), std::ptr::from_ref(log));
        log.write("tidy");
        Ok(())
    }
}

trait Mailer: Send + Sync {
    fn send(&self);
}

#[cron_jobs]
impl dyn Mailer {
    #[every("1s")]
    fn mail(&self) {
        self.send();
    }
}

struct Mail(UnboundedSender<&'static str>);

impl Mailer for Mail {
    fn send(&self) {
        let _ = self.0.send("mail");
    }
}

/// Names that an expansion must not mistake for its own.
mod shadows {
    use leader_cron::{cron_jobs, every};

    pub(super) struct Job;
    #[expect(dead_code, reason = "only its name counts")]
    struct Option;

    #[cron_jobs]
    impl Job {
        #[every("1h")]
        fn job(&self) {}
    }

    /// A block inside of a function.
    pub(super) fn inside() {
        struct Within;
        #[cron_jobs]
        impl Within {
            #[every("1h")]
            fn within() {}
        }
    }
}

fn scheduler(elector: &leader_core::Elector) -> (Scheduler, UnboundedReceiver<&'static str>) {
    let (sender, lines) = unbounded_channel();
    let mailer: Arc<dyn Mailer> = Arc::new(Mail(sender.clone()));
    let scheduler = Scheduler::new(elector)
        .data(Log(sender.clone()))
        .data(Reports::new(sender))
        .data(shadows::Job)
        .data_arc(mailer);
    (scheduler, lines)
}

fn start(elector: &leader_core::Elector) -> (Running, UnboundedReceiver<&'static str>) {
    let (scheduler, lines) = scheduler(elector);
    (scheduler.start().unwrap(), lines)
}

async fn line(job: &str, lines: &mut UnboundedReceiver<&'static str>) {
    in_time(async { while lines.recv().await.expect("the jobs have the other end") != job {} }).await;
}

#[tokio::test]
async fn every_method_with_a_schedule_is_a_job_of_the_group_that_it_names() {
    shadows::inside();
    let elector = FixedElector::following(["none"]);
    let (running, _lines) = start(&elector);
    let jobs = running.jobs();
    let told: Vec<_> = jobs
        .iter()
        .map(|job| (&*job.name, &*job.schedule, job.group.as_ref().map(leader_core::GroupName::as_str)))
        .collect();
    let expected = [
        ("gated", "* * * * * *", Some("nightly")),
        ("gated-and-blocking", "every 1s and @daily", Some("nightly")),
        ("in_another_block", "every 1s", None),
        ("job", "every 1h", None),
        ("mail", "every 1s", None),
        ("run", "every 1s", None),
        ("tidy", "every 1s", None),
        ("within", "every 1h", None),
        ("without_self", "every 1s", None),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_method_runs_with_the_value_that_the_scheduler_was_given() {
    let elector = FixedElector::following(["nightly"]);
    let (running, mut lines) = start(&elector);
    for job in ["without_self", "tidy", "mail"] {
        line(job, &mut lines).await;
    }
    assert_eq!((status(&running, "gated").runs, status(&running, "gated-and-blocking").runs), (0, 0));
    elector.lead("nightly");
    for job in ["gated", "gated-and-blocking"] {
        line(job, &mut lines).await;
        let run = until(&running, job, |status| status.last_run.is_some()).await.last_run.unwrap();
        assert_eq!(run.term, elector.lease("nightly").map(|lease| lease.term()));
    }
    assert!(running.jobs().iter().all(|job| job.failures + job.panics == 0), "{:?}", running.jobs());
}

#[tokio::test]
async fn data_that_a_method_is_called_on_and_nobody_gave_is_named_with_job_and_place() {
    let elector = FixedElector::following(["nightly"]);
    let refused = Scheduler::new(&elector).data(shadows::Job).start().unwrap_err();
    let CronError::Invalid { problems } = refused else { panic!("{refused}") };
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    for expected in [
        "job `gated` (methods::gated (leader-cron/tests/methods.rs:",
        "job `mail` (methods::mail (leader-cron/tests/methods.rs:",
    ] {
        assert!(texts.iter().any(|text| text.contains(expected)), "{expected} is not in {texts:#?}");
    }
    assert!(texts.iter().any(|text| text.contains("takes a `&methods::Reports`") && text.contains("`.data(..)`")));
    assert!(texts.iter().any(|text| text.contains("dyn methods::Mailer") && text.contains(".data_arc::<dyn")));
}

#[tokio::test]
async fn a_method_that_is_a_job_can_be_called_as_any_other() {
    let (sender, mut lines) = unbounded_channel();
    let reports = Reports::new(sender);
    reports.gated(Tick::at(std::time::SystemTime::UNIX_EPOCH)).await;
    // It is gated as before.
    assert!(lines.try_recv().is_err());
    assert_eq!(reports.built.load(Ordering::Relaxed), 0);
}
