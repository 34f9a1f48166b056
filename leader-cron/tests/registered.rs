//! Functions with `#[cron]`: found by themselves, lent their data, gated once. Every scheduler in this program starts them
//! all.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{PATIENCE, in_time, status, until};
use leader_core::testing::FixedElector;
use leader_core::{Lease, Term, leader_only};
use leader_cron::{RunOutcome, Running, Scheduler, Tick, cron};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Where the jobs tell what they do.
struct Log(UnboundedSender<Line>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    job: &'static str,
    term: Option<Term>,
}

impl Log {
    fn write(&self, job: &'static str) {
        // The test may have seen enough.
        let _ = self.0.send(Line { job, term: leader_core::lease().as_ref().map(Lease::term) });
    }
}

trait Mailer: Send + Sync {
    fn send(&self, text: &'static str);
}

struct Mail(UnboundedSender<Line>);

impl Mailer for Mail {
    fn send(&self, text: &'static str) {
        let _ = self.0.send(Line { job: text, term: None });
    }
}

#[cron("* * * * * *")]
#[leader_only(group = "nightly")]
async fn gated(log: &Log, tick: Tick) {
    assert_eq!(leader_core::lease().map(|lease| lease.term()), tick.lease().map(Lease::term));
    log.write("gated");
}

#[leader_only(group = "nightly")]
#[cron("* * * * * *", name = "gated-and-blocking")]
fn gated_in_the_other_order(log: &Log) {
    log.write("gated-and-blocking");
}

#[cron("* * * * * *")]
fn everywhere(mailer: &dyn Mailer, tick: &Tick) -> Result<(), String> {
    mailer.send("everywhere");
    if tick.lease().is_none() { Ok(()) } else { Err("a lease without a group".to_owned()) }
}

#[cron("* * * * * *")]
#[leader_only(group = "endless", on_loss = "cancel")]
async fn cancelled(log: &Log) {
    log.write("cancelled");
    std::future::pending().await
}

const NEW_YEAR: &str = "@yearly";

#[cron(NEW_YEAR, tz = "Europe/Berlin")]
fn rare() {}

fn start(elector: &FixedElector) -> (Running, UnboundedReceiver<Line>) {
    let (sender, lines) = unbounded_channel();
    let mailer: Arc<dyn Mailer> = Arc::new(Mail(sender.clone()));
    (Scheduler::new(elector).data(Log(sender)).data_arc(mailer).start().unwrap(), lines)
}

async fn line_of(job: &str, lines: &mut UnboundedReceiver<Line>) -> Line {
    in_time(async {
        loop {
            let line = lines.recv().await.expect("the jobs have the other end");
            if line.job == job {
                return line;
            }
        }
    })
    .await
}

#[tokio::test]
async fn every_cron_function_is_started_with_its_name_schedule_zone_and_group() {
    let elector = FixedElector::following(["none"]);
    let (running, _lines) = start(&elector);
    let jobs = running.jobs();
    let told: Vec<_> = jobs
        .iter()
        .map(|job| (&*job.name, &*job.schedule, &*job.zone, job.group.as_ref().map(leader_core::GroupName::as_str)))
        .collect();
    let every_second = "* * * * * *";
    let expected = [
        ("cancelled", every_second, "UTC", Some("endless")),
        ("everywhere", every_second, "UTC", None),
        ("gated", every_second, "UTC", Some("nightly")),
        ("gated-and-blocking", every_second, "UTC", Some("nightly")),
        ("rare", "@yearly", "Europe/Berlin", None),
    ];
    assert_eq!(told, expected);
    assert!(jobs.iter().all(|job| job.next_tick.is_some()));
}

#[tokio::test]
async fn a_function_with_leader_only_runs_under_the_lease_of_its_group_and_one_without_everywhere() {
    let elector = FixedElector::following(["nightly"]);
    let (running, mut lines) = start(&elector);
    for _ in 0..3 {
        line_of("everywhere", &mut lines).await;
    }
    assert!(status(&running, "gated").skipped >= 2);
    assert_eq!((status(&running, "gated").runs, status(&running, "gated-and-blocking").runs), (0, 0));
    elector.lead("nightly");
    let term = elector.lease("nightly").map(|lease| lease.term());
    for job in ["gated", "gated-and-blocking"] {
        assert_eq!(line_of(job, &mut lines).await.term, term);
        let run = until(&running, job, |status| status.last_run.is_some()).await.last_run.unwrap();
        assert_eq!((run.outcome, run.term), (RunOutcome::Ok, term));
    }
    assert_eq!(until(&running, "everywhere", |status| status.last_run.is_some()).await.failures, 0);
}

#[tokio::test]
async fn a_run_that_is_to_be_cancelled_on_loss_is_dropped_and_so_recorded() {
    let elector = FixedElector::leading(["endless"]);
    let (running, mut lines) = start(&elector);
    line_of("cancelled", &mut lines).await;
    elector.follow("endless");
    let status = until(&running, "cancelled", |status| status.cancelled == 1).await;
    assert_eq!(status.last_run.unwrap().outcome, RunOutcome::Cancelled);
}

#[tokio::test]
async fn a_drain_drops_a_run_that_may_be_cancelled_instead_of_giving_up() {
    let elector = FixedElector::leading(["endless"]);
    let (running, mut lines) = start(&elector);
    line_of("cancelled", &mut lines).await;
    in_time(elector.drain(Duration::ZERO)).await.unwrap();
    until(&running, "cancelled", |status| status.cancelled == 1).await;
    in_time(elector.shutdown(PATIENCE)).await.unwrap();
}
