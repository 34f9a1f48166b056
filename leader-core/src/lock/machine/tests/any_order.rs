//! Three machines and a store; requests are lost, executed late, and answered late or never.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;
use crate::store::{LeaseStore, LockBatch, MemoryStore};
use crate::testing::ManualClock;

const MACHINES: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    /// Time passes, and whoever is due asks.
    Pass(u16),
    /// The store executes the request in flight; its answer is on its way.
    Execute(usize),
    /// The answer arrives.
    Answer(usize),
    /// The asker gives up. What it sent may still be executed.
    TimeOut(usize),
    /// The store executes a request that nobody waits for any more.
    ExecuteLate(usize),
    Announce(usize),
    Leave(usize),
    Complete(usize),
    /// The machine's place is taken by a new one.
    Again(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..MACHINES;
    prop_oneof![
        6 => prop_oneof![1..50_u16, 500..3_500_u16].prop_map(Step::Pass),
        8 => which.clone().prop_map(Step::Execute),
        8 => which.clone().prop_map(Step::Answer),
        2 => which.clone().prop_map(Step::TimeOut),
        2 => (0..8_usize).prop_map(Step::ExecuteLate),
        1 => which.clone().prop_map(Step::Announce),
        2 => which.clone().prop_map(Step::Leave),
        1 => which.clone().prop_map(Step::Complete),
        2 => which.prop_map(Step::Again),
    ]
}

struct Slot {
    machine: Machine,
    in_flight: Option<(Request, Option<LockAnswer>)>,
}

struct World {
    clock: ManualClock,
    store: MemoryStore,
    slots: Vec<Slot>,
    nonces: u128,
    /// Sent, and given up by their senders.
    late: Vec<LockCommand>,
    /// Whose acquire or renewal was executed after it had been given up, and not released since: what stands by it may stand until
    /// it ends.
    ghosts: BTreeSet<u128>,
    tokens: Vec<(u128, Term)>,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(clock.clone());
        let mut world = Self {
            clock,
            store,
            slots: Vec::new(),
            nonces: 0,
            late: Vec::new(),
            ghosts: BTreeSet::new(),
            tokens: Vec::new(),
        };
        for _ in 0..MACHINES {
            let slot = world.slot();
            world.slots.push(slot);
        }
        world
    }

    fn slot(&mut self) -> Slot {
        self.nonces += 1;
        // Some of them wait, some do not.
        let wait = if self.nonces.is_multiple_of(3) { Duration::ZERO } else { 20_000 * MS };
        let now = self.clock.now();
        let rules = Rules { wait_until: now.saturating_add(wait), ..rules(wait) };
        Slot { machine: Machine::new(key(), owner(self.nonces), rules, now), in_flight: None }
    }

    fn execute(&self, command: LockCommand) -> LockAnswer {
        let mut call = self.store.execute_locks(LockBatch { commands: vec![command], timeout: TTL });
        match Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(answers)) => answers.into_iter().next().unwrap().unwrap(),
            _ => panic!("a memory answers at once"),
        }
    }

    fn handle(&mut self, which: usize, event: Event) {
        let mut notices = Vec::new();
        self.slots[which].machine.handle(self.clock.now(), event, &mut notices);
        self.note(which, &notices);
    }

    fn note(&mut self, which: usize, notices: &[Notice]) {
        let nonce = self.slots[which].machine.owner().nonce;
        for notice in notices {
            if let Notice::Won(token) = notice {
                let last = self.tokens.last().map_or(Term::default(), |(_, token)| *token);
                assert!(*token > last, "{token} after {last}");
                self.tokens.push((nonce, *token));
            }
        }
    }

    /// Whoever is due asks.
    fn poll(&mut self) {
        let now = self.clock.now();
        for which in 0..MACHINES {
            let slot = &mut self.slots[which];
            let due = slot.machine.next().is_some_and(|span| span.latest <= now);
            let mut notices = Vec::new();
            if due && let Some(request) = slot.machine.poll(now, Term::default(), &mut notices) {
                assert!(slot.in_flight.is_none(), "one request at a time");
                slot.in_flight = Some((request, None));
            }
            self.note(which, &notices);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Pass(ms) => self.clock.advance(MS * u32::from(ms)),
            Step::Execute(which) => {
                if let Some((request, None)) = &self.slots[which].in_flight {
                    let command = request.command.clone();
                    if command.op == (LockOp::Release { token: None }) {
                        self.ghosts.remove(&command.owner.nonce);
                    }
                    let answer = self.execute(command);
                    self.slots[which].in_flight.as_mut().unwrap().1 = Some(answer);
                }
            }
            Step::Answer(which) => {
                if let Some((request, Some(answer))) =
                    self.slots[which].in_flight.take_if(|(_, answer)| answer.is_some())
                {
                    self.handle(which, Event::Answered(request.no, answer));
                }
            }
            Step::TimeOut(which) => {
                if let Some((request, answer)) = self.slots[which].in_flight.take() {
                    if answer.is_none() {
                        self.late.push(request.command);
                    }
                    self.handle(which, Event::Failed(request.no, Failure::Passing));
                }
            }
            Step::ExecuteLate(which) if which < self.late.len() => {
                let command = self.late.remove(which);
                let (nonce, acquires) = (command.owner.nonce, matches!(command.op, LockOp::Acquire { .. }));
                if self.execute(command) == LockAnswer::Renewed || acquires {
                    self.ghosts.insert(nonce);
                }
            }
            Step::ExecuteLate(_) => {}
            Step::Announce(which) => self.handle(which, Event::Announced),
            Step::Leave(which) => self.handle(which, Event::Leave),
            Step::Complete(which) => {
                if self.slots[which].machine.view(self.clock.now()).is_some() {
                    self.handle(which, Event::Complete(Some(MS)));
                }
            }
            Step::Again(which) => {
                if self.slots[which].machine.is_gone() {
                    self.slots[which] = self.slot();
                }
            }
        }
        self.poll();
        let now = self.clock.now();
        let holders = self.slots.iter().filter(|slot| slot.machine.view(now).is_some()).count();
        assert!(holders <= 1, "{holders} believe to hold it");
    }

    /// Everything is executed and answered from here on, and nobody needs anything.
    fn wind_up(&mut self) {
        for which in 0..MACHINES {
            self.handle(which, Event::Leave);
        }
        for _ in 0..1_000 {
            for which in 0..MACHINES {
                self.step(Step::Execute(which));
                self.step(Step::Answer(which));
            }
            if self.slots.iter().all(|slot| slot.machine.is_gone()) {
                return;
            }
            self.step(Step::Pass(100));
        }
        panic!("some never end: {:?}", self.slots.iter().map(|slot| &slot.machine).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_two_hold_it_and_what_was_given_up_is_free(steps in prop::collection::vec(step(), 1..150)) {
        let mut world = World::new();
        world.poll();
        for step in steps {
            world.step(step);
        }
        world.wind_up();
        if !world.ghosts.is_empty() {
            world.clock.advance(TTL.max(PLACE));
        }
        let op = acquire(None);
        let answer = world.execute(LockCommand { key: key(), owner: owner(u128::MAX), ttl: TTL, op });
        assert!(matches!(answer, LockAnswer::Won { .. }), "{answer:?}");
    }
}
