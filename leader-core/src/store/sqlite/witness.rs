//! What this process has seen of the others, beyond what they wrote: who has ended, and what has stood unchanged.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use super::files::FileId;
use super::host::Host;
use super::life::{self, Sign};
use super::row::{Row, Suspicion};
use super::worker::Job;
use crate::clock::BootInstant;
use crate::group::GroupName;
use crate::identity::Incarnation;
use crate::lease::Term;

/// The eyes of one worker.
#[derive(Debug)]
pub(super) struct Witness {
    waiter: u64,
    locks: PathBuf,
    worker: Sender<Job>,
    /// Rows of other clocks, as they were first seen.
    rows: HashMap<GroupName, (Version, BootInstant)>,
    /// Groups whose rows were changed under another kernel than this one, while this process looked.
    elsewhere: BTreeSet<GroupName>,
    /// The note, as it was first seen.
    note: Option<(BootInstant, Host, BootInstant)>,
    /// Whose end is waited for.
    awaited: HashSet<Incarnation>,
    /// Whose end was seen, while rows still name them.
    dead: HashSet<Incarnation>,
}

/// What a row shows of its last change.
type Version = (Option<(Incarnation, Term)>, u64);

impl Witness {
    /// Watches the life locks in `locks`, and tells `worker` of each end.
    pub(super) fn new(locks: PathBuf, worker: Sender<Job>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            waiter: NEXT.fetch_add(1, Ordering::Relaxed),
            locks,
            worker,
            rows: HashMap::new(),
            elsewhere: BTreeSet::new(),
            note: None,
            awaited: HashSet::new(),
            dead: HashSet::new(),
        }
    }

    /// Whether the holder in the row is known to have ended. If it lives, its end is waited for from now on.
    pub(super) fn is_dead(&mut self, row: &Row, asker: Incarnation, now: BootInstant) -> bool {
        let here = Host::this();
        let Some(last) = row.record.last.as_ref().filter(|last| !last.released) else {
            return false;
        };
        let holder = last.holder.incarnation;
        let over = row.host.clock == here.clock && row.until <= now;
        holder != asker && !over && self.has_ended(holder, &row.host.boot, row.life)
    }

    /// Whether `holder`, whose life lock is `life`, is known to have ended. If it lives, its end is waited for from now on.
    pub(super) fn has_ended(&mut self, holder: Incarnation, boot: &str, life: FileId) -> bool {
        // Beyond one running kernel, a lock that can be had proves nothing.
        if boot != Host::this().boot || self.awaited.contains(&holder) {
            return false;
        }
        if self.dead.contains(&holder) {
            return true;
        }
        match life::probe(&self.locks, holder, life) {
            Sign::Dead => {
                self.dead.insert(holder);
                true
            }
            Sign::Alive(file) => {
                let worker = self.worker.clone();
                let tell = Box::new(move || worker.send(Job::Ended(holder)).unwrap_or_default());
                // Without a thread for it, the lease is waited for until it runs out.
                if life::when_dead(file, life, self.waiter, tell).is_ok() {
                    self.awaited.insert(holder);
                }
                false
            }
            Sign::Unknown => false,
        }
    }

    /// The holder that was waited for has ended.
    pub(super) fn ended(&mut self, holder: Incarnation) {
        self.awaited.remove(&holder);
        self.dead.insert(holder);
    }

    /// Those whose end was seen and not forgotten.
    pub(super) fn dead(&self) -> Vec<Incarnation> {
        self.dead.iter().copied().collect()
    }

    /// No row names it any more.
    pub(super) fn bury(&mut self, ended: Incarnation) {
        life::bury(&self.locks, ended);
        self.dead.remove(&ended);
    }

    /// Since when the row has stood as it is, as far as this process has seen.
    pub(super) fn row_seen(&mut self, group: &GroupName, row: &Row, now: BootInstant) -> BootInstant {
        if row.host.clock == Host::this().clock || row.record.last.is_none() {
            self.rows.remove(group);
            self.elsewhere.remove(group);
            return now;
        }
        let last = row.record.last.as_ref().map(|last| (last.holder.incarnation, last.term));
        let version = (last, row.version);
        match self.rows.get(group) {
            Some((seen, since)) if *seen == version => *since,
            seen => {
                // What was left by a host that was started again does not change any more.
                let is_news =
                    seen.is_some() && row.host.boot != Host::this().boot && self.elsewhere.insert(group.clone());
                if is_news {
                    self.worker.send(Job::Strange).unwrap_or_default();
                }
                self.rows.insert(group.clone(), (version, now));
                now
            }
        }
    }

    /// Groups whose rows were changed under another kernel than this one, and have not been taken back since.
    pub(super) fn elsewhere(&self) -> &BTreeSet<GroupName> {
        &self.elsewhere
    }

    /// Since when the note has stood, as far as this process has seen.
    pub(super) fn note_seen(&mut self, note: Option<&Suspicion>, now: BootInstant) -> BootInstant {
        let Some(note) = note else {
            self.note = None;
            return now;
        };
        match &self.note {
            Some((since, host, seen)) if *since == note.since && *host == note.host => *seen,
            _ => {
                self.note = Some((note.since, note.host.clone(), now));
                now
            }
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        life::forget(self.waiter);
    }
}
