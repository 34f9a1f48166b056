//! A store in this process's memory.

mod locks;
pub(crate) mod ticks;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "testing")]
pub use self::locks::LockTable;
use self::locks::Locks;
use self::ticks::Ledger;
use super::rules::{Acquisition, Change, Moment, Record, decide, wall_clock};
use super::{
    Announcer, Answer, Answers, Batch, Command, Guarantees, LeaseStore, LockAnswer, LockAnswers, LockBatch,
    LockCommand, LockOwner, Session, StoreFuture, TickAnswer, TickAnswers, TickBatch, TickCommand,
};
use crate::clock::{BootInstant, Clock};
use crate::group::GroupName;
use crate::identity::Incarnation;
use crate::lease::Term;

/// Leases, locks and the ledger of ticks in the memory of this process: for tests, and for programs that run once.
///
/// Clones share them, as instances share a server. It never forgets, so nobody is ever quarantined.
///
/// ```
/// use leader_core::store::{LeaseStore, MemoryStore};
///
/// let store = MemoryStore::new();
/// let for_another_instance = store.clone();
/// assert_eq!(store.address(), "memory:");
/// assert!(!store.guarantees().between_processes);
/// # drop(for_another_instance);
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    name: Arc<str>,
    clock: Clock,
    shared: Arc<Mutex<Shared>>,
}

type Sessions = HashMap<Incarnation, (Announcer, HashSet<GroupName>)>;

#[derive(Default)]
struct Shared {
    sessions: Sessions,
    leases: HashMap<GroupName, Lease>,
    locks: Locks,
    ledger: Ledger,
}

/// A group's record, and when the lease in it ends.
#[derive(Default)]
struct Lease {
    record: Record,
    until: BootInstant,
    /// Until when an older incarnation of the holder may believe in the lease that was taken over from it.
    older_until: BootInstant,
}

impl MemoryStore {
    /// An empty store, which only its clones share.
    #[must_use]
    pub fn new() -> Self {
        Self { name: "".into(), clock: Clock::Boot, shared: Arc::default() }
    }

    /// An empty store whose leases and locks run out by this clock, and whose ticks are due by it: the boot counts as the
    /// 1,000,000,000th second since 1970.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_clock(clock: crate::testing::ManualClock) -> Self {
        Self { clock: Clock::Manual(clock), ..Self::new() }
    }

    /// An empty store whose leases and locks run out by this clock.
    #[cfg(test)]
    pub(crate) fn on(clock: Clock) -> Self {
        Self { clock, ..Self::new() }
    }

    /// The store of this name, one for the whole process; it is there until the process ends. The URL `memory:name` means it.
    #[must_use]
    pub fn named(name: &str) -> Self {
        static NAMED: LazyLock<Mutex<HashMap<String, MemoryStore>>> = LazyLock::new(Mutex::default);
        let mut stores = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.entry(name.to_owned());
        store.or_insert_with(|| Self { name: name.into(), ..Self::new() }).clone()
    }

    /// By which ticks are due, in microseconds since 1970.
    fn wall_us(&self) -> u64 {
        #[cfg(feature = "testing")]
        if let Clock::Manual(clock) = &self.clock {
            return 1_000_000_000_000_000 + clock.now().as_nanos() / 1000;
        }
        wall_clock().get()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // No code of others runs under the lock, and each command is complete before the next: a poisoned one is whole.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({})", self.address())
    }
}

impl LeaseStore for MemoryStore {
    fn address(&self) -> String {
        format!("memory:{}", self.name)
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees {
            between_processes: false,
            between_hosts: false,
            survives_restart: false,
            loses_acknowledged_writes: false,
        }
    }

    fn connect(&self, session: Session) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let groups = session.groups.into_keys().collect();
            self.shared().sessions.insert(session.candidate.incarnation, (session.announcer, groups));
            Ok(())
        })
    }

    fn execute(&self, batch: Batch) -> StoreFuture<'_, Answers> {
        Box::pin(async move {
            let mut shared = self.shared();
            let (now, wall) = (self.clock.now(), wall_clock());
            Ok(batch.commands.iter().map(|command| Ok(shared.execute(command, now, wall))).collect())
        })
    }

    fn execute_locks(&self, batch: LockBatch) -> StoreFuture<'_, LockAnswers> {
        Box::pin(async move {
            let mut shared = self.shared();
            let (now, wall) = (self.clock.now(), wall_clock());
            Ok(batch.commands.iter().map(|command| Ok(shared.execute_lock(command, now, wall))).collect())
        })
    }

    fn execute_ticks(&self, batch: TickBatch) -> StoreFuture<'_, TickAnswers> {
        Box::pin(async move {
            let mut shared = self.shared();
            let (now, now_us) = (self.clock.now(), self.wall_us());
            Ok(batch.commands.iter().map(|command| Ok(shared.execute_tick(command, now, now_us))).collect())
        })
    }

    fn disconnect(&self, incarnation: Incarnation) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let shared = &mut *self.shared();
            shared.sessions.remove(&incarnation);
            shared.locks.forget(incarnation, self.clock.now(), |owner| tell_free(&shared.sessions, owner));
            Ok(())
        })
    }
}

impl Shared {
    fn execute(&mut self, command: &Command, now: BootInstant, wall: Term) -> Answer {
        let lease = self.leases.entry(command.group.clone()).or_default();
        let older = lease.older_until.saturating_since(now);
        let at = Moment { left: lease.until.saturating_since(now), older, quarantine: None, wall };
        let decision = decide(&lease.record, command, at);
        lease.record.highest = decision.highest;
        match decision.change {
            Change::Nothing => {}
            Change::Take(term, older) => {
                let holder = command.candidate.clone();
                lease.record.last = Some(Acquisition { holder, term, released: false });
                lease.older_until = now.saturating_add(older);
                lease.until = now.saturating_add(command.ttl.max(older));
            }
            Change::Extend => lease.until = now.saturating_add(command.ttl.max(older)),
            Change::Shorten => lease.until = lease.older_until,
            Change::Release => {
                lease.until = BootInstant::default();
                self.announce(command);
            }
        }
        decision.answer
    }

    fn execute_lock(&mut self, command: &LockCommand, now: BootInstant, wall: Term) -> LockAnswer {
        self.locks.execute(command, now, wall, |owner| tell_free(&self.sessions, owner))
    }

    fn execute_tick(&mut self, command: &TickCommand, now: BootInstant, now_us: u64) -> TickAnswer {
        let lease = self.leases.get(&command.group).filter(|lease| now < lease.until);
        let last = lease.and_then(|lease| lease.record.last.as_ref()).filter(|last| !last.released);
        self.ledger.execute(command, last.map(|last| (&last.holder, last.term)), now, now_us)
    }

    fn announce(&self, release: &Command) {
        for (incarnation, (announcer, groups)) in &self.sessions {
            if *incarnation != release.candidate.incarnation && groups.contains(&release.group) {
                announcer.released(release.group.clone());
            }
        }
    }
}

fn tell_free(sessions: &Sessions, owner: &LockOwner) {
    if let Some((announcer, _)) = sessions.get(&owner.candidate.incarnation) {
        announcer.lock_free(owner.nonce);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_store_in_the_whole_process() {
        let (a, same, other) =
            (MemoryStore::named("jobs"), MemoryStore::named("jobs"), MemoryStore::named("other jobs"));
        assert!(Arc::ptr_eq(&a.shared, &same.shared));
        assert!(!Arc::ptr_eq(&a.shared, &other.shared));
        assert_eq!(a.address(), "memory:jobs");
        assert!(!Arc::ptr_eq(&MemoryStore::new().shared, &MemoryStore::new().shared));
    }
}
