//! From a configuration to a running elector; and which one is the process's own.

use std::collections::BTreeSet;
use std::future::Future;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::cell::Cell;
use crate::config::Config;
use crate::driver::{self, report::Reporter};
use crate::election::Rules;
use crate::elector::{Elector, Handle};
use crate::error::StartError;
use crate::group::{GroupName, declared_groups};
use crate::identity::{Candidate, Incarnation};
use crate::jobs::Jobs;
use crate::ledger::Ledger;
use crate::lock::mail::Desk;
use crate::shared::{Phase, Progress, Shared};
use crate::status::Standing;
use crate::work::Work;

/// Starts the elector of this process: the one that annotated functions ask. It takes part in every group that
/// `#[leader_only]` declares anywhere in the program, in `default`, and in those of the configuration.
///
/// Returns when the first round is over, so that [`is_leader`](Elector::is_leader) already means something, or after
/// [`Config::start_timeout`]. Needs no runtime of any kind. It logs each group with the places that declare it.
///
/// # Errors
/// [`StartError`]: the configuration cannot be used, the store refuses, or this process has an elector already. Trouble of
/// one group is no error: it is logged and stands in [`Status::problems`](crate::Status::problems).
///
/// # Cancel safety
/// If the future is dropped, nothing is left running and no lease is held.
///
/// ```standalone_crate
/// use leader_core::{Config, bootstrap, leader_only};
///
/// #[leader_only]
/// async fn warm_caches() -> Option<&'static str> {
///     Some("warmed")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let leader = bootstrap(Config::new("memory:")).await?;
/// assert_eq!(warm_caches().await, Some("warmed"));
/// leader.shutdown(std::time::Duration::from_secs(5)).await?;
/// assert_eq!(warm_caches().await, None);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn bootstrap(config: Config) -> impl Future<Output = Result<Elector, StartError>> + Send {
    let place = Location::caller();
    async move {
        let reservation = Reservation::new(place)?;
        let elector = launch(config, true).await?;
        announce(&elector);
        reservation.keep(&elector);
        Ok(elector)
    }
}

/// The process's own elector, if it has one that runs.
///
/// ```
/// assert!(leader_core::current().is_none(), "nothing was bootstrapped");
/// ```
#[must_use]
pub fn current() -> Option<Elector> {
    let current = current_slot();
    current.as_ref().and_then(|c| c.elector.clone()).filter(|e| e.0.shared.phase() < Phase::Stopped)
}

/// The process's own elector has ended: nothing of it is kept.
pub(crate) fn forget(elector: &Elector) {
    let mut current = current_slot();
    let is_it = |c: &Current| c.elector.as_ref().is_some_and(|own| Arc::ptr_eq(&own.0, &elector.0));
    let ended = current.take_if(|c| is_it(c));
    // Dropped outside of the lock.
    drop(current);
    drop(ended);
}

struct Current {
    place: &'static Location<'static>,
    /// `None` while it starts.
    elector: Option<Elector>,
}

static CURRENT: Mutex<Option<Current>> = Mutex::new(None);

fn current_slot() -> MutexGuard<'static, Option<Current>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of the process's own elector, taken while it starts.
struct Reservation {
    kept: bool,
}

impl Reservation {
    fn new(place: &'static Location<'static>) -> Result<Self, StartError> {
        let mut current = current_slot();
        if let Some(first) = current.as_ref() {
            let ended = first.elector.as_ref().is_some_and(|e| e.0.shared.phase() >= Phase::Stopped);
            if !ended {
                return Err(StartError::AlreadyRunning { place: first.place });
            }
        }
        *current = Some(Current { place, elector: None });
        Ok(Self { kept: false })
    }

    fn keep(mut self, elector: &Elector) {
        self.kept = true;
        if let Some(current) = current_slot().as_mut() {
            current.elector = Some(elector.clone());
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.kept {
            *current_slot() = None;
        }
    }
}

pub(crate) async fn launch(config: Config, process_wide: bool) -> Result<Elector, StartError> {
    let elector = spawn(&config, process_wide)?;
    let shared = &elector.0.shared;
    let mut progress = shared.progress.subscribe();
    let end = progress.wait_for(|p| p.phase != Phase::Starting).await.map(|p| p.clone()).unwrap_or_default();
    let last = || end.last_error.clone();
    match end.phase {
        Phase::Running => Ok(elector),
        Phase::Unreachable => Err(StartError::Unreachable {
            store: shared.address.clone(),
            waited: shared.timing.start_timeout,
            last: last().map_or_else(|| "it gave no answer".to_owned(), |e| e.in_the_end()),
        }),
        Phase::Refused => Err(last().map_or(StartError::Ended, StartError::Store)),
        Phase::Starting | Phase::Ending | Phase::Stopped | Phase::Dead => Err(StartError::Ended),
    }
}

/// Checks everything, then starts the threads.
fn spawn(config: &Config, process_wide: bool) -> Result<Elector, StartError> {
    let (elector, setup) = prepare(config, process_wide)?;
    let thread = std::thread::Builder::new().name("leader-driver".to_owned());
    if let Err(error) = thread.spawn(move || driver::run(setup)) {
        for cell in elector.0.shared.cells.values() {
            cell.stop();
        }
        return Err(StartError::Thread(error));
    }
    Ok(elector)
}

/// An elector whose driver does not run yet.
pub(crate) fn prepare(config: &Config, process_wide: bool) -> Result<(Elector, driver::Setup), StartError> {
    #[cfg(feature = "testing")]
    if process_wide && matches!(config.clock, crate::clock::Clock::Manual(_)) {
        return Err(crate::error::ConfigError::ManualClock.into());
    }
    let timing = config.timing.resolve()?;
    let groups = config.all_groups()?;
    let candidate = Candidate { id: config.resolve_instance_id()?, incarnation: Incarnation::random() };
    let store = config.open_store()?;
    let rules = Rules {
        ttl: timing.ttl,
        guard: timing.guard,
        heartbeat: timing.heartbeat,
        retry: timing.retry,
        renewal_failure: config.renewal_failure,
        reclaim: config.reclaim,
        observe: false,
        #[cfg(feature = "testing")]
        known_bad: config.known_bad,
    };
    let (reporter, log_written) = Reporter::start(candidate.id.clone()).map_err(StartError::Thread)?;
    let idle = Arc::new(Notify::new());
    let clock = config.clock.clone();
    let cell = |name: &GroupName| Cell::new(name.clone(), clock.clone(), process_wide, Arc::clone(&idle));
    let shared = Arc::new(Shared {
        candidate,
        address: store.address(),
        store,
        timing,
        require_store: config.require_store,
        cells: groups.iter().map(|(name, _)| (name.clone(), cell(name))).collect(),
        observed: groups.iter().filter(|(_, observe)| *observe).map(|(name, _)| name.clone()).collect(),
        ungated: Arc::new(Work::new(None, clock.clone(), Arc::clone(&idle))),
        owed: Arc::new(Work::new(None, clock.clone(), Arc::clone(&idle))),
        clock,
        locks: Desk::new(),
        ledger: Ledger::new(),
        runtime: OnceLock::new(),
        progress: watch::Sender::new(Progress::default()),
        dropped_reports: reporter.dropped(),
        findings: Mutex::default(),
        strangers: Mutex::new(BTreeSet::new()),
        jobs: Jobs::default(),
        by_hand: Mutex::default(),
    });
    let (control, receiver) = mpsc::unbounded_channel();
    let handle = Handle { shared: Arc::clone(&shared), control, log_written: Mutex::new(Some(log_written)) };
    let observed: Vec<bool> = groups.into_iter().map(|(_, observe)| observe).collect();
    let setup = driver::Setup { shared, rules, observed, control: receiver, idle, reporter };
    Ok((Elector(Arc::new(handle)), setup))
}

/// What people look for in a log when a job does not run.
fn announce(elector: &Elector) {
    let status = elector.status();
    let declared = declared_groups();
    tracing::info!(
        target: "leader", instance = %status.instance,
        "elector {} takes part in {} group(s) on {}", status.instance, status.groups.len(), status.store
    );
    for group in &status.groups {
        let name = group.group.as_str();
        let places = declared.get(name).map_or_else(
            || "by configuration".to_owned(),
            |sites| sites.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        );
        let known = match (&group.leader, group.remaining) {
            (Some(leader), Some(left)) => format!("leader {leader}, {:.1} s left", left.as_secs_f64()),
            _ => "no leader known".to_owned(),
        };
        let standing = match group.standing {
            Standing::Leader => "leader".to_owned(),
            Standing::Observer => format!("observed only, never leads here (Config::observe, LEADER_OBSERVE), {known}"),
            _ => format!("follower, {known}"),
        };
        tracing::info!(target: "leader", instance = %status.instance, group = %name, "group {name} ({places}): {standing}");
    }
}

/// Waits for the log, but not for long, and without a runtime of the caller's.
pub(crate) async fn wait_briefly(written: oneshot::Receiver<()>) {
    const PATIENCE: Duration = Duration::from_millis(200);
    let (done, end) = oneshot::channel::<()>();
    let waiting = std::thread::Builder::new().name("leader-farewell".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        if let Ok(runtime) = runtime {
            // Either way the wait is over.
            let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, written).await });
        }
        drop(done);
    });
    if waiting.is_ok() {
        let _ = end.await;
    }
}
