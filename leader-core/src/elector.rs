//! The handle that users hold.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::cell::Cell;
use crate::config::Config;
use crate::doctor::Finding;
use crate::driver::Control;
use crate::error::{DoctorError, DrainError, InspectError, NotLive, NotReady, StartError, UnknownGroup};
use crate::event::{Event, Subscription};
use crate::gate::OnLoss;
use crate::group::GroupName;
use crate::identity::InstanceId;
use crate::lease::{Lease, Look};
use crate::scope::{EnterGuard, Scoped};
use crate::shared::{Phase, Shared};
use crate::status::{GroupStatus, Problem, Standing, Status};
use crate::work::What;

/// So many unknown groups are warned about.
const MOST_STRANGERS: usize = 1000;

/// Takes part in the elections of its groups, in a thread of its own. Cheap to clone; all clones are the same elector.
///
/// Made by [`bootstrap`](crate::bootstrap()), or by [`Elector::start`] without becoming the process's own. When the last
/// clone is dropped, it gives its leases back and ends; a clone of the process's own is kept until its
/// [`shutdown`](Self::shutdown).
#[derive(Clone)]
pub struct Elector(pub(crate) Arc<Handle>);

pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) control: mpsc::UnboundedSender<Control>,
    pub(crate) log_written: Mutex<Option<oneshot::Receiver<()>>>,
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.shared.fmt(f)
    }
}

impl Elector {
    /// Starts an elector without making it the process's own: annotated functions ask it only inside its
    /// [`scope`](Self::scope). So several can live in one process, in tests above all.
    ///
    /// Returns when the first round is over, or after [`Config::start_timeout`]. Needs no runtime of any kind.
    ///
    /// # Errors
    /// [`StartError`]: the configuration cannot be used, or the store refuses. Trouble of one group is no error: it is
    /// logged and stands in [`Status::problems`].
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing is left running and no lease is held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), leader_core::StartError> {
    /// use leader_core::{Config, Elector};
    ///
    /// let elector = Elector::start(Config::new("memory:")).await?;
    /// assert!(elector.is_leader("default"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(config: Config) -> Result<Self, StartError> {
        crate::bootstrap::launch(config, false).await
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    /// Whether this instance leads `group`. Does no I/O; call it as often as you like. For a group that this elector has
    /// no part in, the answer is no, and it warns once.
    #[must_use]
    pub fn is_leader(&self, group: &str) -> bool {
        self.known(group).is_some_and(|cell| cell.view.look() == Look::Leader)
    }

    /// The lease of `group`, if this instance leads it.
    #[must_use]
    pub fn lease(&self, group: &str) -> Option<Lease> {
        self.known(group)?.lease()
    }

    /// A cell, or a warning, once for each name: never fail open, and never silently.
    pub(crate) fn known(&self, group: &str) -> Option<&Arc<Cell>> {
        match self.shared().cell(group) {
            Ok(cell) => Some(cell),
            Err(unknown) => {
                let mut strangers = self.shared().strangers.lock().unwrap_or_else(PoisonError::into_inner);
                // Names may come from outside: the first ones are enough to warn about.
                let news = strangers.len() < MOST_STRANGERS && strangers.insert(group.to_owned());
                // A log that is blocked, or asks an elector itself, must not hold up others.
                drop(strangers);
                if news {
                    tracing::warn!(target: "leader", group, "{unknown}");
                }
                None
            }
        }
    }

    /// Runs `work` if this instance leads `group`; `None` if it does not, or if a drain is on. The work is given the
    /// lease, and runs to its end also if the lease is lost meanwhile: watch [`Lease::lost`] if that matters.
    ///
    /// # Cancel safety
    /// As cancel-safe as the work.
    ///
    /// ```
    /// # async fn compact() -> u64 { 42 }
    /// # async fn f(leader: leader_core::Elector) {
    /// let freed: Option<u64> = leader.run_if_leader("default", |_lease| compact()).await;
    /// # }
    /// ```
    #[track_caller]
    pub fn run_if_leader<'a, T, F>(
        &'a self,
        group: &'a str,
        work: impl FnOnce(Lease) -> F + Send + 'a,
    ) -> impl Future<Output = Option<T>> + Send + 'a
    where
        F: Future<Output = T> + Send + 'a,
        T: 'a,
    {
        let what = call("run_if_leader", Location::caller());
        async move {
            let entry = self.known(group)?.enter(what, OnLoss::Finish)?;
            let lease = entry.lease().clone();
            Some(entry.run(work(lease)).await)
        }
    }

    /// Runs `work` each time that this instance leads `group`, and drops it at its next await when the lease is lost or the
    /// grace of a drain is over. It runs once for each lease, and again if a drain had dropped it or kept it out and
    /// was resumed from while the lease was still held. Returns when the elector ends, or at once if it has no such group.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work.
    #[track_caller]
    pub fn while_leader<'a, F>(
        &'a self,
        group: &'a str,
        mut work: impl FnMut(Lease) -> F + Send + 'a,
    ) -> impl Future<Output = ()> + Send + 'a
    where
        F: Future<Output = ()> + Send + 'a,
    {
        let what = call("while_leader", Location::caller());
        async move {
            let Some(cell) = self.known(group) else { return };
            let mut events = cell.subscribe();
            while let Some(event) = events.next().await {
                if event == Event::Stopped {
                    return;
                }
                let mut done = None;
                loop {
                    // Before the gate is asked, so that no change after its answer is missed.
                    let changed = cell.work.changed();
                    let Some(lease) = cell.lease() else { break };
                    // Once for each lease, but again if a drain kept it out, or dropped it, and was taken back.
                    if done != Some(lease.term())
                        && let Some(entry) = cell.enter(what.clone(), OnLoss::Cancel)
                    {
                        let (lease, term) = (entry.lease().clone(), entry.lease().term());
                        done = entry.run_cancellable(work(lease)).await.map(|()| term);
                        continue;
                    }
                    tokio::select! {
                        () = lease.lost() => {}
                        () = changed => {}
                    }
                }
            }
        }
    }

    /// Asks the store who leads `group`: the answer is true for the whole fleet, on any instance.
    ///
    /// # Errors
    /// [`InspectError`]: no such group here, no answer from the store, or the elector has ended.
    ///
    /// # Cancel safety
    /// Changes nothing, so it can be dropped at any time.
    pub async fn leader_id(&self, group: &str) -> Result<Option<InstanceId>, InspectError> {
        let group = self.index(group)?;
        self.ask(|reply| Control::Inspect { group, reply }).await.unwrap_or(Err(InspectError::Stopped))
    }

    /// Examines the store: what is unsafe or broken about it, about the records of this elector's groups, and about using
    /// it in this place. Errors come first. What could not be checked, a store that is away for example, is a finding, too.
    ///
    /// The same is done by itself: after the first contact with the store, when the store is back, when another instance leads,
    /// when the jobs of this one have changed, now and then while there is something to find, and else about once an hour;
    /// [`bootstrap`](crate::bootstrap()) does not wait for it. Each finding is logged when it is new, and stands in
    /// [`Status::problems`] until another examination no longer finds it. Leases are renewed meanwhile. It takes at most ten
    /// times the [operation time-out](Config::operation_timeout), or 5 s if that is more.
    ///
    /// # Errors
    /// [`DoctorError::Stopped`]: the elector has ended.
    ///
    /// # Cancel safety
    /// The examination goes on if the future is dropped, and what it finds is logged all the same.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use leader_core::{Config, Elector, Severity};
    ///
    /// let elector = Elector::start(Config::new("memory:")).await?;
    /// for finding in elector.doctor().await? {
    ///     let mark = if finding.severity == Severity::Error { "error" } else { "warning" };
    ///     println!("{mark} {}: {} ({}). What to do: {}", finding.code, finding.what, finding.why, finding.advice);
    /// }
    /// // A test of a deployment may insist on what it depends on.
    /// assert!(elector.doctor().await?.iter().all(|finding| finding.code != "evicting"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn doctor(&self) -> Result<Vec<Finding>, DoctorError> {
        self.ask(|reply| Control::Doctor { reply }).await.ok_or(DoctorError::Stopped)
    }

    /// Gives the lease of `group` back and does not compete for one ttl, so that another instance leads. `Ok(false)`: this
    /// instance was not leading. Running work has the [grace](Config::grace) to end first.
    ///
    /// # Errors
    /// [`DrainError::StillRunning`]: work outlived the grace; this instance leads on. [`DrainError::Unconfirmed`]: it leads
    /// no more, but the store did not confirm, so the lease has to run out. [`DrainError::Resumed`], [`DrainError::Stopped`]:
    /// a resume or the shutdown came first. [`DrainError::UnknownGroup`].
    ///
    /// # Cancel safety
    /// The step-down goes on if the future is dropped.
    pub async fn step_down(&self, group: &str) -> Result<bool, DrainError> {
        let (group, grace) = (self.index(group)?, self.shared().timing.grace);
        self.ask(|reply| Control::StepDown { group, grace, reply }).await.unwrap_or(Err(DrainError::Stopped))
    }

    /// Gives all leases back and stays out of all groups until [`resume`](Self::resume): before the maintenance of this
    /// node. No new work starts; running work has `grace` to end.
    ///
    /// # Errors
    /// [`DrainError::StillRunning`]: work outlived the grace. Its groups are still renewed, start no new work, and are given
    /// back as soon as it ends. [`DrainError::Unconfirmed`]: it leads no more, but the store did not confirm, so leases have
    /// to run out. [`DrainError::Resumed`], [`DrainError::Stopped`]: a resume or the shutdown came first.
    ///
    /// # Cancel safety
    /// The drain goes on if the future is dropped.
    pub async fn drain(&self, grace: Duration) -> Result<(), DrainError> {
        let outcome = self.ask(|reply| Control::Drain { grace, reply }).await;
        outcome.unwrap_or(Err(DrainError::Stopped)).map(drop)
    }

    /// Ends a [`drain`](Self::drain), complete or not, and every abstention after a [`step_down`](Self::step_down): this
    /// instance competes again, in all groups.
    pub fn resume(&self) {
        // An elector that has ended does not compete again.
        let _ = self.0.control.send(Control::Resume);
    }

    /// Ends the elector: no new work starts, running work has `grace` to end while its lease is still renewed, the leases
    /// are given back, and the thread ends. Whoever holds a [lock](Self::lock) is waited for like running work. A second call
    /// waits for the first.
    ///
    /// # Errors
    /// [`DrainError::StillRunning`]: the elector has ended, but work outlived the grace. Its lease was not given back, so
    /// nobody begins the same work for as long as the ttl: exit the process. If it names ticks that the ledger was not told of,
    /// because the store did not answer, leases were given back, and those ticks count as claimed. [`DrainError::Unconfirmed`]:
    /// the leases end by themselves.
    ///
    /// # Cancel safety
    /// The shutdown goes on if the future is dropped.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), DrainError> {
        // One that ends already cannot be asked, and need not be.
        let _ = self.0.control.send(Control::Shutdown { grace });
        let mut progress = self.shared().progress.subscribe();
        // The sender lives as long as this handle. Every caller is told how it ended.
        let outcome = progress.wait_for(|p| p.phase >= Phase::Stopped).await.ok().and_then(|p| p.outcome.clone());
        crate::bootstrap::forget(self);
        // The last lines of the log; a log that is blocked must not hold up the exit.
        let written = self.0.log_written.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(written) = written {
            crate::bootstrap::wait_briefly(written).await;
        }
        outcome.unwrap_or(Ok(true)).map(drop)
    }

    /// The groups that this elector takes part in, or observes, in order.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupName> {
        self.shared().cells.keys().cloned().collect()
    }

    /// Who this instance is.
    #[must_use]
    pub fn instance_id(&self) -> &InstanceId {
        &self.shared().candidate.id
    }

    /// The events of `group`: the present state first, then each change in order.
    ///
    /// # Errors
    /// [`UnknownGroup`] if this elector has no such group.
    pub fn subscribe(&self, group: &str) -> Result<Subscription, UnknownGroup> {
        Ok(self.shared().cell(group)?.subscribe())
    }

    /// What this elector knows and does. No I/O.
    #[must_use]
    pub fn status(&self) -> Status {
        let shared = self.shared();
        let standing = |finding: &Finding| Problem { group: finding.group.clone(), text: finding.text() };
        let mut problems: Vec<Problem> = shared.findings().iter().map(standing).collect();
        let mut groups = Vec::with_capacity(shared.cells.len());
        for (name, cell) in &shared.cells {
            let (group, problem) = group_status(shared, name, cell);
            problems.extend(problem.map(|text| Problem { group: Some(name.clone()), text: text.to_string() }));
            groups.push(group);
        }
        if shared.phase() == Phase::Dead {
            problems.push(Problem { group: None, text: NotLive::DriverDead.to_string() });
        }
        let gated = shared.cells.values().flat_map(|cell| cell.work.running());
        Status {
            instance: shared.candidate.id.clone(),
            store: shared.address.clone(),
            guarantees: shared.store.guarantees(),
            groups,
            problems,
            running: gated.chain(shared.ungated.running()).collect(),
            locks: shared.locks.status(shared.clock.now()),
            dropped_log_lines: shared.dropped_reports.load(Ordering::Relaxed),
        }
    }

    /// Whether this instance should go on living: for a liveness probe.
    ///
    /// # Errors
    /// [`NotLive`] if the driver has died or stands still. A store that is away is no reason to restart.
    pub fn live(&self) -> Result<(), NotLive> {
        let shared = self.shared();
        if shared.phase() == Phase::Dead {
            return Err(NotLive::DriverDead);
        }
        let now = shared.clock.now();
        for (group, cell) in &shared.cells {
            let overdue = cell.overdue(now);
            if overdue > shared.timing.ttl {
                return Err(NotLive::DriverStuck { group: group.clone(), overdue });
            }
        }
        Ok(())
    }

    /// Whether the first round is over: for a readiness probe. It never depends on leading: a rolling update that waits for
    /// leadership deadlocks.
    ///
    /// # Errors
    /// [`NotReady`] while the first round is on, and after the end.
    pub fn ready(&self) -> Result<(), NotReady> {
        let progress = self.shared().progress.borrow();
        match progress.phase {
            Phase::Starting => Err(NotReady::Starting { done: progress.settled, all: self.shared().cells.len() }),
            Phase::Running => Ok(()),
            _ => Err(NotReady::Stopped),
        }
    }

    /// A future inside which annotated functions ask this elector, on whichever threads it is polled. Not passed on by
    /// `tokio::spawn`: wrap the spawned future too.
    ///
    /// # Panics
    /// A gated function inside panics if this elector has no such group.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        Scoped::new(Arc::clone(&self.0.shared), future)
    }

    /// As long as the guard lives, annotated functions on this thread ask this elector. Do not hold it over an await.
    ///
    /// # Panics
    /// A gated function then panics if this elector has no such group.
    pub fn enter(&self) -> EnterGuard {
        EnterGuard::new(&self.0.shared)
    }

    fn index(&self, group: &str) -> Result<usize, UnknownGroup> {
        self.shared().cell(group)?;
        Ok(self.shared().cells.keys().take_while(|known| known.as_str() != group).count())
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Control) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.0.control.send(question(reply)).ok()?;
        answer.await.ok()
    }
}

fn call(name: &str, place: &Location<'_>) -> What {
    What::Named(format!("{name} at {place}").into())
}

fn group_status(shared: &Shared, name: &GroupName, cell: &Cell) -> (GroupStatus, Option<Arc<str>>) {
    let now = shared.clock.now();
    let snapshot = cell.snapshot();
    let standing = match &snapshot.lease {
        Some(_) => Standing::Leader,
        None if snapshot.duplicate => Standing::Duplicate,
        None if snapshot.abstaining => Standing::Abstaining,
        None if shared.observed.contains(name) => Standing::Observer,
        None => Standing::Follower,
    };
    let (leader, term, remaining) = match (&snapshot.lease, &snapshot.leader) {
        (Some(lease), _) => (Some(shared.candidate.id.clone()), Some(lease.term()), Some(lease.remaining())),
        (None, Some(seen)) => (Some(seen.id.clone()), seen.term, Some(seen.until.saturating_since(now))),
        (None, None) => (None, None, None),
    };
    (GroupStatus { group: name.clone(), standing, leader, term, remaining }, snapshot.problem)
}
