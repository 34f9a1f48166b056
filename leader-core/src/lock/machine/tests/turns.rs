//! Many machines, a store and a network in virtual time: never two hold the lock, and everybody gets a turn.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::store::{Announcement, LeaseStore, LockBatch, MemoryStore};
use crate::testing::{Listener, ManualClock};

const OWNERS: usize = 8;
/// Nobody begins anything after it.
const LAST: u64 = 30_000;

/// What the network does, and how the machines' threads run.
#[derive(Debug, Clone, Copy)]
struct Weather {
    /// One of so many messages is lost, a request or its answer or an announcement; 0: none.
    loses: u64,
    /// Milliseconds a message is under way at most.
    delay: u64,
    /// How long a machine stands still at most, now and then.
    pause: u64,
    /// One of so many holders ends without giving the lock back, and another one works on and cannot be reached.
    dies: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Wake,
    Arrives(u64),
    Answered(u64),
    TimedOut(u64),
    Announced,
    Done,
    Again,
}

struct Owner {
    machine: Machine,
    /// The request in flight, by its number, and its answer.
    request: Option<(u64, Request, Option<LockAnswer>)>,
    /// When it first stood in the store's order; `None` before.
    arrived: Option<u64>,
    since: u64,
    passed: u32,
    stands_still_until: u64,
    /// No message of it arrives.
    cut_off_until: u64,
}

struct World {
    weather: Weather,
    random: fastrand::Rng,
    clock: ManualClock,
    now: u64,
    store: MemoryStore,
    listener: Listener,
    agenda: BinaryHeap<Reverse<(u64, u64, usize, What)>>,
    count: u64,
    nonces: u128,
    owners: Vec<Owner>,
    turns: usize,
    longest: u64,
    most_passed: u32,
    last: Term,
}

fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

impl World {
    fn new(seed: u64, weather: Weather) -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(clock.clone());
        let (session, listener) = Listener::new(owner(0).candidate, []);
        at_once(store.connect(session)).unwrap().unwrap();
        let mut world = Self {
            weather,
            random: fastrand::Rng::with_seed(seed),
            clock,
            now: 0,
            store,
            listener,
            agenda: BinaryHeap::new(),
            count: 0,
            nonces: 0,
            owners: Vec::new(),
            turns: 0,
            longest: 0,
            most_passed: 0,
            last: Term::default(),
        };
        for which in 0..OWNERS {
            let owner = world.owner();
            world.owners.push(owner);
            world.after(which, 0, What::Wake);
        }
        world
    }

    fn owner(&mut self) -> Owner {
        self.nonces += 1;
        let rules = Rules { wait_until: BootInstant::from_nanos(u64::MAX), ..rules(Duration::ZERO) };
        let machine = Machine::new(key(), owner(self.nonces), rules, self.clock.now());
        Owner {
            machine,
            request: None,
            arrived: None,
            since: self.now,
            passed: 0,
            stands_still_until: 0,
            cut_off_until: 0,
        }
    }

    fn after(&mut self, which: usize, ms: u64, what: What) {
        self.count += 1;
        self.agenda.push(Reverse((self.now + ms, self.count, which, what)));
    }

    fn is_lost(&mut self, which: usize) -> bool {
        self.now < self.owners[which].cut_off_until
            || self.weather.loses > 0 && self.random.u64(..self.weather.loses) == 0
    }

    fn delay(&mut self) -> u64 {
        self.random.u64(..=self.weather.delay)
    }

    /// To the end, when nobody has anything to do any more.
    fn run(&mut self) {
        while let Some(Reverse((at, _, which, what))) = self.agenda.pop() {
            self.clock.advance(MS * u32::try_from(at - self.now).unwrap());
            self.now = at;
            assert!(self.now < 4 * LAST, "some never end: {:?}", self.owners[which].machine);
            let still = self.owners[which].stands_still_until;
            // The network does not stand still.
            if self.now < still && !matches!(what, What::Arrives(_)) {
                self.after(which, still - self.now, what);
            } else {
                self.happens(which, what);
            }
            let now = self.clock.now();
            let holders = self.owners.iter().filter(|owner| owner.machine.view(now).is_some()).count();
            assert!(holders <= 1, "{holders} believe to hold it at {}", self.now);
        }
        assert!(self.owners.iter().all(|owner| !owner.machine.is_waiting()), "somebody waits for ever");
    }

    fn happens(&mut self, which: usize, what: What) {
        match what {
            What::Wake => {}
            What::Arrives(no) => self.execute(which, no),
            What::Answered(no) | What::TimedOut(no) => {
                let late = matches!(what, What::TimedOut(_));
                let request = self.owners[which].request.take_if(|(known, ..)| *known == no);
                match request {
                    Some((_, request, _)) if late => {
                        self.handle(which, Event::Failed(request.no, Failure::Passing));
                    }
                    Some((_, request, Some(answer))) => self.handle(which, Event::Answered(request.no, answer)),
                    _ => {}
                }
            }
            What::Announced => self.handle(which, Event::Announced),
            What::Done => self.handle(which, Event::Leave),
            What::Again if self.now < LAST && self.owners[which].machine.is_gone() => {
                self.owners[which] = self.owner();
            }
            What::Again => {}
        }
        self.go_on(which);
    }

    fn execute(&mut self, which: usize, no: u64) {
        let Some((_, request, _)) = self.owners[which].request.as_ref().filter(|(known, ..)| *known == no) else {
            return;
        };
        let command = request.command.clone();
        let acquires = matches!(command.op, LockOp::Acquire { .. });
        let call = self.store.execute_locks(LockBatch { commands: vec![command], timeout: TTL });
        let answer = at_once(call).unwrap().unwrap().remove(0).unwrap();
        if acquires {
            self.count += 1;
            let arrived = *self.owners[which].arrived.get_or_insert(self.count);
            if let LockAnswer::Won { token } = answer
                && token > self.last
            {
                self.last = token;
                for owner in &mut self.owners {
                    if owner.machine.is_waiting() && owner.arrived.is_some_and(|earlier| earlier < arrived) {
                        owner.passed += 1;
                        self.most_passed = self.most_passed.max(owner.passed);
                    }
                }
            }
        }
        if let Some((_, _, known)) = &mut self.owners[which].request {
            *known = Some(answer);
        }
        if !self.is_lost(which) {
            let delay = self.delay();
            self.after(which, delay, What::Answered(no));
        }
        while let Some(Some(announcement)) = at_once(self.listener.heard()) {
            let Announcement::LockFree { nonce } = announcement else { continue };
            let told = self.owners.iter().position(|owner| owner.machine.owner().nonce == nonce);
            if let Some(told) = told.filter(|told| !self.is_lost(*told)) {
                let delay = self.delay();
                self.after(told, delay, What::Announced);
            }
        }
    }

    fn handle(&mut self, which: usize, event: Event) {
        let mut notices = Vec::new();
        self.owners[which].machine.handle(self.clock.now(), event, &mut notices);
        self.note(which, &notices);
    }

    fn note(&mut self, which: usize, notices: &[Notice]) {
        if notices.iter().any(|notice| matches!(notice, Notice::Won(_))) {
            self.turns += 1;
            self.longest = self.longest.max(self.now - self.owners[which].since);
            let hold = self.random.u64(..200);
            let fate = if self.weather.dies > 0 { self.random.u64(..self.weather.dies) } else { u64::MAX };
            if fate == 0 {
                // Its process ends: nothing more is heard of it.
                self.owners[which] = self.owner();
                self.after(which, hold, What::Wake);
            } else if fate == 1 {
                self.owners[which].cut_off_until = self.now + 15_000;
                self.after(which, 20_000, What::Done);
            } else {
                self.after(which, hold, What::Done);
            }
        }
        assert!(!notices.iter().any(|n| matches!(n, Notice::Busy(_) | Notice::Failed | Notice::Late)), "{notices:?}");
    }

    /// What is due is asked, and the next time is noted.
    fn go_on(&mut self, which: usize) {
        if self.weather.pause > 0 && self.random.u64(..50) == 0 {
            self.owners[which].stands_still_until = self.now + self.random.u64(..self.weather.pause);
        }
        let mut notices = Vec::new();
        let request = self.owners[which].machine.poll(self.clock.now(), Term::default(), &mut notices);
        self.note(which, &notices);
        if let Some(request) = request {
            self.count += 1;
            let no = self.count;
            self.owners[which].request = Some((no, request, None));
            if !self.is_lost(which) {
                let delay = self.delay();
                self.after(which, delay, What::Arrives(no));
            }
            self.after(which, 1_000, What::TimedOut(no));
        }
        let machine = &self.owners[which].machine;
        if machine.is_gone() {
            if self.now < LAST {
                let pause = self.random.u64(..300);
                self.after(which, pause, What::Again);
            }
        } else if let Some(span) = machine.next() {
            let wait = span.latest.saturating_since(self.clock.now()).as_millis().min(10_000);
            self.after(which, u64::try_from(wait).unwrap() + 1, What::Wake);
        }
    }
}

fn each_seed(weather: Weather, check: impl Fn(&World)) {
    for seed in 0..60 {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed, weather);
            world.run();
            world
        });
        let world = run.unwrap_or_else(|_| panic!("seed {seed} of {weather:?}"));
        check(&world);
    }
}

#[test]
fn on_a_good_network_nobody_is_passed() {
    each_seed(Weather { loses: 0, delay: 40, pause: 0, dies: 0 }, |world| {
        assert_eq!(world.most_passed, 0);
        assert!(world.turns > 100 && world.longest < 5_000, "{} turns, {} ms", world.turns, world.longest);
    });
}

#[test]
fn who_stands_still_for_less_than_its_place_lasts_is_not_passed() {
    each_seed(Weather { loses: 0, delay: 40, pause: 900, dies: 0 }, |world| {
        assert_eq!(world.most_passed, 0);
        assert!(world.turns > 50, "{} turns", world.turns);
    });
}

#[test]
fn on_a_bad_network_everybody_gets_a_turn() {
    each_seed(Weather { loses: 12, delay: 300, pause: 1_500, dies: 0 }, |world| {
        assert!(world.turns > 10 && world.longest < 60_000, "{} turns, {} ms", world.turns, world.longest);
    });
}

#[test]
fn the_locks_of_the_dead_are_taken_over_and_not_before_those_of_the_living_have_ended() {
    each_seed(Weather { loses: 20, delay: 80, pause: 500, dies: 10 }, |world| {
        assert!(world.turns >= 8, "{} turns", world.turns)
    });
}
