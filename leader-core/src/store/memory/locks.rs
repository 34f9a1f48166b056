//! The locks of a store in memory.

#[cfg(feature = "testing")]
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::clock::BootInstant;
use crate::identity::Incarnation;
use crate::lease::Term;
use crate::store::lock::rules::{COUNTED, Change, Decision, Held, Seen, Tell, decide};
use crate::store::{LockAnswer, LockCommand, LockKey, LockOwner};

#[cfg(feature = "testing")]
pub use self::table::LockTable;

/// All locks, and all who wait for one.
#[derive(Debug, Clone, Default)]
pub(super) struct Locks {
    keys: HashMap<LockKey, Lock>,
    /// The largest token that was given out.
    highest: Term,
    /// How many keys there were after those that nobody needs were last removed.
    kept: usize,
}

/// So many keys are kept without a look at whether anybody needs them.
const FEW: usize = 64;

#[derive(Debug, Clone, Default)]
struct Lock {
    held: Option<Seat>,
    queue: Queue,
    done: Option<Note>,
}

#[derive(Debug, Clone)]
struct Seat {
    owner: LockOwner,
    token: Term,
    until: BootInstant,
}

/// That the work of a key is done.
#[derive(Debug, Clone)]
struct Note {
    by: (u128, Term),
    /// `None`: for ever.
    until: Option<BootInstant>,
}

/// Those who wait, in the order in which they came.
#[derive(Debug, Clone, Default)]
struct Queue {
    places: BTreeMap<u64, Place>,
    by_nonce: HashMap<u128, u64>,
    /// By the end: a queue may be long, and is looked at often.
    by_end: BTreeSet<(BootInstant, u64)>,
    last: u64,
}

#[derive(Debug, Clone)]
struct Place {
    owner: LockOwner,
    until: BootInstant,
}

impl Locks {
    /// Executes one command; `tell` is called for each owner that is to ask again.
    pub(super) fn execute(
        &mut self,
        command: &LockCommand,
        now: BootInstant,
        wall: Term,
        mut tell: impl FnMut(&LockOwner),
    ) -> LockAnswer {
        let lock = self.keys.entry(command.key.clone()).or_default();
        lock.let_time_pass(now);
        let decision = decide(&lock.seen(command, now, self.highest, wall), command);
        if let Change::Take(token) = decision.change {
            self.highest = self.highest.max(token);
        }
        lock.change(command, &decision, now);
        lock.queue.told(decision.tell).for_each(&mut tell);
        if lock.is_empty() {
            self.keys.remove(&command.key);
        }
        self.remove_what_has_ended(now);
        decision.answer
    }

    /// An elector has ended: nobody waits any more. What it holds stands until it runs out.
    pub(super) fn forget(&mut self, elector: Incarnation, now: BootInstant, mut tell: impl FnMut(&LockOwner)) {
        self.keys.retain(|_, lock| {
            lock.let_time_pass(now);
            let first = lock.queue.first();
            lock.queue.remove_all_of(elector);
            if lock.held.is_none() && lock.queue.first() != first {
                lock.queue.told(Tell::First).for_each(&mut tell);
            }
            !lock.is_empty()
        });
    }

    /// Keys that nobody asks for again; looked for each time that there are twice as many keys as are needed.
    fn remove_what_has_ended(&mut self, now: BootInstant) {
        if self.keys.len() > 2 * self.kept.max(FEW) {
            self.keys.retain(|_, lock| {
                lock.let_time_pass(now);
                !lock.is_empty()
            });
            self.kept = self.keys.len();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }
}

impl Lock {
    fn let_time_pass(&mut self, now: BootInstant) {
        self.held.take_if(|seat| seat.until <= now);
        self.done.take_if(|note| note.until.is_some_and(|until| until <= now));
        self.queue.let_time_pass(now);
    }

    fn is_empty(&self) -> bool {
        self.held.is_none() && self.done.is_none() && self.queue.places.is_empty()
    }

    fn seen(&self, command: &LockCommand, now: BootInstant, highest: Term, wall: Term) -> Seen {
        let held = self.held.as_ref().map(|seat| Held {
            nonce: seat.owner.nonce,
            instance: seat.owner.candidate.id.clone(),
            token: seat.token,
            left: seat.until.saturating_since(now),
        });
        let place = self.queue.by_nonce.get(&command.owner.nonce);
        let ahead =
            place.map_or(self.queue.places.len(), |place| self.queue.places.range(..place).take(COUNTED).count());
        let first = self.queue.places.values().next();
        Seen {
            held,
            queued: place.is_some(),
            ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
            first_left: first.map_or(Duration::ZERO, |first| first.until.saturating_since(now)),
            closed: Duration::ZERO,
            done: self.done.as_ref().map(|note| note.by),
            highest,
            wall,
        }
    }

    fn change(&mut self, command: &LockCommand, decision: &Decision, now: BootInstant) {
        let owner = &command.owner;
        let until = now.saturating_add(command.ttl);
        match decision.change {
            Change::Nothing => {}
            Change::Take(token) => {
                self.held = Some(Seat { owner: owner.clone(), token, until });
                self.queue.leave(owner.nonce);
            }
            Change::Extend => {
                if let Some(seat) = &mut self.held {
                    seat.until = until;
                }
            }
            Change::Queue(life) => self.queue.keep(owner, now.saturating_add(life)),
            Change::Leave => self.queue.leave(owner.nonce),
            Change::Free => {
                self.held = None;
                self.queue.leave(owner.nonce);
            }
            Change::Complete(keep) => {
                let by = self.held.take().map_or((owner.nonce, Term::default()), |seat| (owner.nonce, seat.token));
                self.done = Some(Note { by, until: keep.map(|keep| now.saturating_add(keep)) });
                self.queue.leave(owner.nonce);
            }
            Change::Forget => self.done = None,
        }
    }
}

impl Queue {
    fn keep(&mut self, owner: &LockOwner, until: BootInstant) {
        let number = self.by_nonce.get(&owner.nonce).copied().unwrap_or_else(|| {
            self.last += 1;
            self.last
        });
        self.by_nonce.insert(owner.nonce, number);
        if let Some(before) = self.places.insert(number, Place { owner: owner.clone(), until }) {
            self.by_end.remove(&(before.until, number));
        }
        self.by_end.insert((until, number));
    }

    fn leave(&mut self, nonce: u128) {
        if let Some(number) = self.by_nonce.get(&nonce).copied() {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(place) = self.places.remove(&number) {
            self.by_nonce.remove(&place.owner.nonce);
            self.by_end.remove(&(place.until, number));
        }
    }

    fn let_time_pass(&mut self, now: BootInstant) {
        while let Some((_, number)) = self.by_end.first().copied().filter(|(until, _)| *until <= now) {
            self.remove(number);
        }
    }

    fn first(&self) -> Option<u128> {
        self.places.values().next().map(|place| place.owner.nonce)
    }

    fn remove_all_of(&mut self, elector: Incarnation) {
        let its = self.places.iter().filter(|(_, place)| place.owner.candidate.incarnation == elector);
        let its: Vec<u64> = its.map(|(number, _)| *number).collect();
        its.into_iter().for_each(|number| self.remove(number));
    }

    fn told(&self, tell: Tell) -> impl Iterator<Item = &LockOwner> {
        let most = match tell {
            Tell::Nobody => 0,
            Tell::First => 1,
            Tell::Everybody => usize::MAX,
        };
        self.places.values().take(most).map(|place| &place.owner)
    }
}
