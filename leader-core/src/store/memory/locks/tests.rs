//! Commands of several owners in any order, against what a lock promises.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::identity::{Candidate, InstanceId};
use crate::store::LockOp;

const OWNERS: u128 = 4;
const MS: Duration = Duration::from_millis(1);
const TTL: Duration = Duration::from_millis(100);
const LIFE: Duration = Duration::from_millis(60);

#[derive(Debug, Clone)]
enum Step {
    Acquire { owner: u128, waits: bool },
    Renew(u128),
    Release { owner: u128, named: bool },
    Complete(u128),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..=OWNERS, any::<bool>()).prop_map(|(owner, waits)| Step::Acquire { owner, waits }),
        2 => (1..=OWNERS).prop_map(Step::Renew),
        2 => (1..=OWNERS, any::<bool>()).prop_map(|(owner, named)| Step::Release { owner, named }),
        1 => (1..=OWNERS).prop_map(Step::Complete),
        2 => (1..80_u64).prop_map(Step::Pass),
    ]
}

fn owner(nonce: u128) -> LockOwner {
    let id = InstanceId::new(format!("i{nonce}")).unwrap();
    LockOwner { candidate: Candidate { id, incarnation: Incarnation::from_u128(nonce) }, nonce }
}

/// What the owners may believe, and who came when.
#[derive(Default)]
struct World {
    locks: Locks,
    now: BootInstant,
    /// Until when, and under which token.
    holders: HashMap<u128, (BootInstant, Term)>,
    /// By arrival, with the end of the place.
    waiting: Vec<(u128, BootInstant)>,
    told: Vec<u128>,
    last_token: Term,
}

impl World {
    fn ask(&mut self, nonce: u128, op: LockOp) -> LockAnswer {
        let command = LockCommand { key: LockKey::new("k").unwrap(), owner: owner(nonce), ttl: TTL, op };
        let told = &mut self.told;
        self.locks.execute(&command, self.now, Term::new(7), |owner| told.push(owner.nonce))
    }

    fn let_time_pass(&mut self) {
        let now = self.now;
        self.holders.retain(|_, (until, _)| now < *until);
        self.waiting.retain(|(_, until)| now < *until);
    }

    fn step(&mut self, step: Step) {
        self.let_time_pass();
        self.told.clear();
        let free_before = self.holders.is_empty();
        match step {
            Step::Pass(ms) => self.now = self.now.saturating_add(MS * u32::try_from(ms).unwrap()),
            Step::Acquire { owner, waits } => {
                let queue = waits.then_some(LIFE);
                let answer = self.ask(owner, LockOp::Acquire { floor: Term::default(), queue, once: false });
                let first = self.waiting.first().is_none_or(|(first, _)| *first == owner);
                match answer {
                    LockAnswer::Won { token } => {
                        match self.holders.get(&owner) {
                            Some((_, same)) => assert_eq!(token, *same),
                            None => {
                                assert!(self.holders.is_empty(), "two hold it");
                                assert!(first, "one that waits was passed");
                                assert!(token > self.last_token);
                            }
                        }
                        self.last_token = token;
                        self.holders.insert(owner, (self.now.saturating_add(TTL), token));
                        self.waiting.retain(|(waits, _)| *waits != owner);
                    }
                    LockAnswer::Busy(_) => {
                        assert!(!self.holders.contains_key(&owner));
                        assert!(!self.holders.is_empty() || !first, "free, and nobody before it");
                        let until = self.now.saturating_add(LIFE);
                        match (waits, self.waiting.iter_mut().find(|(known, _)| *known == owner)) {
                            (true, Some(place)) => place.1 = until,
                            (true, None) => self.waiting.push((owner, until)),
                            (false, _) => self.waiting.retain(|(waits, _)| *waits != owner),
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
            Step::Renew(owner) => {
                let held = self.holders.get(&owner).copied();
                let answer = self.ask(owner, LockOp::Renew { token: held.map_or(self.last_token, |(_, t)| t) });
                assert_eq!(answer == LockAnswer::Renewed, held.is_some());
                if let Some((_, token)) = held {
                    self.holders.insert(owner, (self.now.saturating_add(TTL), token));
                }
            }
            Step::Release { owner, named } => {
                let held = self.holders.remove(&owner);
                let token = named.then(|| held.map_or(self.last_token, |(_, token)| token));
                let answer = self.ask(owner, LockOp::Release { token });
                assert_eq!(answer == LockAnswer::Released, held.is_some());
                if !named {
                    self.waiting.retain(|(waits, _)| *waits != owner);
                }
            }
            Step::Complete(owner) => {
                let held = self.holders.remove(&owner);
                let token = held.map_or(self.last_token, |(_, token)| token);
                let answer = self.ask(owner, LockOp::Complete { token, keep: Some(MS) });
                assert!(held.is_none() || answer == LockAnswer::Completed);
            }
        }
        // Whoever is now first in the queue of a lock that has just become free is told so, and only that one.
        if !free_before && self.holders.is_empty() {
            let first = self.waiting.first().map(|(first, _)| *first);
            assert!(self.told.first().copied() == first, "{:?} was told, and {first:?} is first", self.told);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_holds_a_lock_the_first_is_served_and_told_and_nothing_stays(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World { now: BootInstant::from_nanos(1_000_000_000), ..World::default() };
        for step in steps {
            if let Step::Pass(_) = step {
                // What runs out is nobody's release.
                world.step(step);
                world.let_time_pass();
            } else {
                world.step(step);
            }
        }
        // Everything has run out; the next command about the key finds nothing, and leaves nothing.
        world.now = world.now.saturating_add(TTL);
        assert_eq!(world.ask(9, LockOp::Release { token: None }), LockAnswer::NotHeld);
        assert_eq!(world.locks.len(), 0);
    }
}

#[test]
fn keys_that_nobody_asks_for_again_do_not_stay() {
    let mut locks = Locks::default();
    let mut now = BootInstant::from_nanos(1);
    for n in 0..10_000 {
        let key = LockKey::new(format!("k{n}")).unwrap();
        let op = LockOp::Acquire { floor: Term::default(), queue: None, once: false };
        let command = LockCommand { key, owner: owner(n), ttl: TTL, op };
        locks.execute(&command, now, Term::new(7), |_| {});
        now = now.saturating_add(MS);
    }
    assert!(locks.len() <= 2 * 100 + FEW, "{} of 100 that stand", locks.len());
}

#[test]
fn an_elector_that_has_ended_waits_no_more_and_the_next_is_told() {
    let (mut locks, now) = (Locks::default(), BootInstant::from_nanos(1));
    let mut told = Vec::new();
    let mut ask = |nonce, op| {
        let command = LockCommand { key: LockKey::new("k").unwrap(), owner: owner(nonce), ttl: TTL, op };
        locks.execute(&command, now, Term::new(7), |_| {})
    };
    let acquire = LockOp::Acquire { floor: Term::default(), queue: Some(LIFE), once: false };
    for nonce in 1..=3 {
        ask(nonce, acquire.clone());
    }
    locks.forget(Incarnation::from_u128(2), now, |owner| told.push(owner.nonce));
    assert_eq!(told, [], "the lock is held");
    let free =
        LockCommand { key: LockKey::new("k").unwrap(), owner: owner(1), ttl: TTL, op: LockOp::Release { token: None } };
    locks.execute(&free, now, Term::new(7), |owner| told.push(owner.nonce));
    assert_eq!(told, [3]);
    // One that holds it keeps it: its work may go on.
    let take = LockCommand { op: acquire, owner: owner(3), ..free };
    assert!(matches!(locks.execute(&take, now, Term::new(7), |_| {}), LockAnswer::Won { .. }));
    locks.forget(Incarnation::from_u128(3), now, |_| {});
    assert_eq!(locks.len(), 1);
}
