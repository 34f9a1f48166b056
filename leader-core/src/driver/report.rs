//! The thread that logs for the driver: a subscriber that blocks, on a full pipe for example, must not cost a lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::level_filters::LevelFilter;

use super::locks::{self, report::LockReport};
use crate::doctor::{Finding, Severity};
use crate::election::LossReason;
use crate::error::StoreError;
use crate::group::GroupName;
use crate::identity::InstanceId;
use crate::lease::Term;

/// What the driver has to say.
#[derive(Debug)]
pub(crate) enum Report {
    Acquired { group: GroupName, term: Term },
    Lost { group: GroupName, term: Term, reason: LossReason },
    Following { group: GroupName, leader: InstanceId, remaining: Duration },
    Quarantined { group: GroupName, remaining: Duration, reason: &'static str },
    Duplicate { group: GroupName },
    CallFailed { groups: usize, first: Option<GroupName>, error: StoreError },
    Recovered { group: GroupName },
    Found(Finding),
    Released { group: GroupName, term: Term, confirmed: bool },
    StillRunning { what: String },
    Lock(LockReport),
    Stopped,
    DriverDied { panic: String },
}

/// How many reports wait for the log before further ones are only counted.
const CAPACITY: usize = 1024;

/// The driver's end: never blocks.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    sender: SyncSender<Report>,
    /// How many have not been logged yet.
    queued: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
}

impl Reporter {
    /// Starts the thread; the receiver resolves when it has logged everything and ended.
    pub(crate) fn start(instance: InstanceId) -> std::io::Result<(Self, oneshot::Receiver<()>)> {
        let (sender, reports) = sync_channel(CAPACITY);
        let (ended, end) = oneshot::channel();
        let dropped = Arc::new(AtomicU64::new(0));
        let queued = Arc::new(AtomicUsize::new(0));
        let counted = (Arc::clone(&queued), Arc::clone(&dropped));
        std::thread::Builder::new().name("leader-reporter".to_owned()).spawn(move || {
            log_all(&reports, &instance, &counted.0, &counted.1);
            // Nobody may be waiting any more.
            let _ = ended.send(());
        })?;
        Ok((Self { sender, queued, dropped }, end))
    }

    pub(crate) fn send(&self, report: Report) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        if self.sender.try_send(report).is_err() {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Of what there can be very much, as of locks that come and go, nothing is sent that nobody listens to, and the rest leaves
    /// room for what matters.
    pub(super) fn send_lock(&self, report: LockReport) {
        match report.detail() {
            // A subscriber is not asked here: it may block.
            Some(level) if LevelFilter::current() < level => {}
            Some(_) if self.queued.load(Ordering::Relaxed) >= CAPACITY / 2 => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            _ => self.send(Report::Lock(report)),
        }
    }

    /// Reports that found no place.
    pub(crate) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }
}

fn log_all(reports: &Receiver<Report>, instance: &InstanceId, queued: &AtomicUsize, dropped: &AtomicU64) {
    let mut told = 0;
    for report in reports {
        queued.fetch_sub(1, Ordering::Relaxed);
        log(&report, instance);
        let now = dropped.load(Ordering::Relaxed);
        if now > told {
            tracing::warn!(target: "leader", %instance, "{} log lines were dropped because the log was blocked", now - told);
            told = now;
        }
    }
}

fn log(report: &Report, instance: &InstanceId) {
    match report {
        Report::Acquired { group, term } => {
            tracing::info!(target: "leader", %instance, %group, %term, "leader of {group}");
        }
        Report::Lost { group, term, reason: LossReason::SteppedDown } => {
            tracing::info!(target: "leader", %instance, %group, %term, "no longer leader of {group}: stepped down");
        }
        Report::Lost { group, term, reason } => {
            let why = match reason {
                LossReason::Expired => "no renewal was confirmed before the deadline",
                LossReason::RenewalFailed => "a renewal failed",
                _ => "the lease had ended, or was taken",
            };
            tracing::warn!(target: "leader", %instance, %group, %term, "no longer leader of {group}: {why}");
        }
        Report::Following { group, leader, remaining } => {
            let left = remaining.as_secs_f64();
            tracing::info!(target: "leader", %instance, %group, %leader, "follower of {group}, leader {leader}, {left:.1} s left");
        }
        Report::Quarantined { group, remaining, reason } => {
            let left = remaining.as_secs_f64();
            tracing::warn!(target: "leader", %instance, %group, "nobody may lead {group} for {left:.1} s: {reason}");
        }
        Report::Duplicate { group } => tracing::error!(
            target: "leader", %instance, %group,
            "another process with the instance id {instance} leads {group}: this one stays out until it is restarted; give each process its own id"
        ),
        Report::CallFailed { groups, first, error } => {
            let about = match first {
                Some(first) if *groups > 1 => format!("group {first} and {} more", groups - 1),
                Some(first) => format!("group {first}"),
                None => "all groups".to_owned(),
            };
            if error.is_permanent() {
                tracing::error!(target: "leader", %instance, "{about}: {error}");
            } else {
                tracing::warn!(target: "leader", %instance, "{about}: {error}");
            }
        }
        Report::Recovered { group } => {
            tracing::info!(target: "leader", %instance, %group, "the store answers again for {group}");
        }
        Report::Found(finding) if finding.severity == Severity::Error => {
            tracing::error!(target: "leader", %instance, "{finding}");
        }
        Report::Found(finding) => tracing::warn!(target: "leader", %instance, "{finding}"),
        Report::Released { group, term, confirmed: true } => {
            tracing::debug!(target: "leader", %instance, %group, %term, "released {group}");
        }
        Report::Released { group, term, confirmed: false } => tracing::warn!(
            target: "leader", %instance, %group, %term,
            "the release of {group} was not confirmed; its lease ends by itself within the ttl"
        ),
        Report::StillRunning { what } => {
            tracing::warn!(target: "leader", %instance, "the grace is over, and this is still running or held: {what}");
        }
        Report::Lock(report) => locks::report::log(report, instance),
        Report::Stopped => tracing::info!(target: "leader", %instance, "the elector has ended"),
        Report::DriverDied { panic } => tracing::error!(
            target: "leader", %instance,
            "the driver of the elector has died ({panic}); this instance leads nothing until it is restarted"
        ),
    }
}
