//! The model's states and steps.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use leader_core::store::{Answer, Command};
use leader_core::testing::election::{Election, Event, Failure, Notice, RequestNo, Rules};
use leader_core::{BootInstant, Candidate, GroupName, Incarnation, InstanceId, Term};
use stateright::{Model, Property};

use super::{Bounds, Faults};
use crate::sim::store::{Data, Store};

/// The name of what must be possible.
pub(super) const HANDOVER: &str = "a hand-over is possible";

/// The model of a fleet within bounds.
#[derive(Debug, Clone)]
pub struct Fleet(pub Bounds);

/// Everything that there is at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    now: u64,
    store: Store,
    snapshot: Option<Data>,
    elections: [Election; 2],
    packets: Vec<Packet>,
    left: Faults,
    /// Processes that were started.
    starts: u32,
    /// The largest term that anybody led under, and who did.
    led: Option<(Term, usize)>,
    handed_over: bool,
    term_repeated_or_fell: bool,
}

/// Something under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Packet {
    instance: usize,
    /// Its sender still waits for the answer.
    awaited: bool,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Content {
    Request(Command),
    Answer(Answer),
    Release,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Time goes on.
    Tick,
    /// The driver of an instance sends what is due.
    Send(usize),
    /// The store executes this packet.
    Execute(usize),
    /// The store executes this packet, and will once more.
    ExecuteTwice(usize),
    /// This packet gets to its instance.
    Deliver(usize),
    /// An instance waits no longer.
    Fail(usize),
    /// An instance stands aside.
    StandAside(usize),
    /// An instance resumes.
    Resume(usize),
    /// A process dies and starts again.
    Crash(usize),
    /// FLUSHALL.
    Flush,
    /// The store restarts without data.
    Empty,
    /// A snapshot is taken.
    Snapshot,
    /// The store restarts with the snapshot.
    Rollback,
    /// The lease key is deleted.
    Delete,
}

fn instant(tick: u64) -> BootInstant {
    BootInstant::from_nanos((1000 + tick) * 1_000_000)
}

impl Fleet {
    fn start(&self, instance: usize, start: u32, now: u64) -> Election {
        let Bounds { ttl, renewal_failure, reclaim, known_bad, twins, same_id, .. } = self.0;
        let rules = Rules {
            ttl: Duration::from_millis(ttl),
            guard: Duration::ZERO,
            heartbeat: Duration::from_millis(1),
            // At once, so that a retry may come at any time.
            retry: Duration::ZERO,
            renewal_failure,
            reclaim,
            observe: false,
            known_bad,
        };
        let name = match (twins, same_id || start < 2) {
            (true, _) => "a".to_owned(),
            (_, true) => ["a", "b"][instance].to_owned(),
            _ => format!("{}{start}", ["a", "b"][instance]),
        };
        let id = InstanceId::new(name).expect("a valid id");
        let candidate = Candidate { id, incarnation: Incarnation::from_u128(u128::from(start)) };
        let group = GroupName::new("g").expect("a valid name");
        Election::new(group, candidate, rules, instant(now))
    }

    fn execute(&self, state: &mut State, packet: &Packet) {
        let Content::Request(command) = &packet.content else { return };
        let done = state.store.execute((1000 + state.now) * 1000, command);
        if done.announced {
            let other = 1 - packet.instance;
            state.packets.push(Packet { instance: other, awaited: false, content: Content::Release });
        }
        if packet.awaited {
            state.packets.push(Packet { content: Content::Answer(done.answer), ..packet.clone() });
        }
    }

    fn handle(&self, state: &mut State, instance: usize, event: Event) {
        let mut notices = Vec::new();
        state.elections[instance].handle(instant(state.now), event, &mut notices);
        for notice in notices {
            let Notice::Acquired(term) = notice else { continue };
            if let Some((before, who)) = state.led {
                state.term_repeated_or_fell |= term <= before;
                state.handed_over |= who != instance;
            }
            state.led = Some((term, instance));
        }
    }

    /// What an instance had sent is awaited no more; answers to it mean nothing.
    fn give_up(state: &mut State, instance: usize) {
        state.packets.retain_mut(|packet| {
            let own = packet.instance == instance && packet.awaited;
            packet.awaited &= !own;
            !(own && matches!(packet.content, Content::Answer(_)))
        });
    }

    /// A step in words.
    #[must_use]
    pub fn tell(state: &State, step: &Step) -> String {
        match step {
            Step::Execute(k) | Step::ExecuteTwice(k) | Step::Deliver(k) => {
                let Packet { instance, content, .. } = &state.packets[*k];
                let what = match content {
                    Content::Request(command) => format!("{:?}", command.op),
                    Content::Answer(answer) => format!("{answer:?}"),
                    Content::Release => "announced release".to_owned(),
                };
                let verb = step_name(step);
                format!("{verb} of {instance}: {what}")
            }
            other => step_name(other),
        }
    }
}

fn step_name(step: &Step) -> String {
    let text = format!("{step:?}");
    match step {
        Step::Execute(_) | Step::ExecuteTwice(_) | Step::Deliver(_) => {
            text.split('(').next().unwrap_or_default().to_owned()
        }
        _ => text,
    }
}

impl Model for Fleet {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut store = Store::new(Duration::ZERO, self.0.flaw);
        store.settle();
        let elections = [self.start(0, 0, 0), self.start(1, 1, 0)];
        vec![State {
            now: 0,
            store,
            snapshot: None,
            elections,
            packets: Vec::new(),
            left: self.0.faults,
            starts: 2,
            led: None,
            handed_over: false,
            term_repeated_or_fell: false,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let Faults { failures, duplicates, crashes, stand_asides, flushes, empties, rollbacks, deletions } = state.left;
        if state.now < self.0.ticks {
            steps.push(Step::Tick);
        }
        for instance in 0..2 {
            let election = &state.elections[instance];
            let mut tried = election.clone();
            if state.packets.len() < self.0.packets && tried.poll(instant(state.now), &mut Vec::new()).is_some() {
                steps.push(Step::Send(instance));
            }
            if failures > 0 && election.is_waiting() {
                steps.push(Step::Fail(instance));
            }
            if stand_asides > 0 && election.view(instant(state.now)).is_some() {
                steps.push(Step::StandAside(instance));
            }
            if self.0.faults.stand_asides > stand_asides && election.is_abstaining() {
                steps.push(Step::Resume(instance));
            }
            if crashes > 0 {
                steps.push(Step::Crash(instance));
            }
        }
        for (k, packet) in state.packets.iter().enumerate() {
            match packet.content {
                Content::Request(_) => {
                    steps.push(Step::Execute(k));
                    if duplicates > 0 {
                        steps.push(Step::ExecuteTwice(k));
                    }
                }
                Content::Answer(_) | Content::Release => steps.push(Step::Deliver(k)),
            }
        }
        let store_faults = [
            (flushes > 0, Step::Flush),
            (empties > 0, Step::Empty),
            (rollbacks > 0 && state.snapshot.is_none(), Step::Snapshot),
            (rollbacks > 0 && state.snapshot.is_some(), Step::Rollback),
            (deletions > 0, Step::Delete),
        ];
        steps.extend(store_faults.into_iter().filter(|(possible, _)| *possible).map(|(_, step)| step));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let now = instant(state.now);
        match step {
            Step::Tick => state.now += 1,
            Step::Send(instance) => {
                let request = state.elections[instance].poll(now, &mut Vec::new())?;
                let content = Content::Request(request.command);
                state.packets.push(Packet { instance, awaited: true, content });
            }
            Step::Execute(k) => {
                let packet = state.packets.remove(k);
                self.execute(&mut state, &packet);
            }
            Step::ExecuteTwice(k) => {
                state.left.duplicates -= 1;
                let packet = state.packets[k].clone();
                self.execute(&mut state, &packet);
            }
            Step::Deliver(k) => {
                let Packet { instance, content, .. } = state.packets.remove(k);
                match content {
                    Content::Answer(answer) => {
                        Self::give_up(&mut state, instance);
                        self.handle(&mut state, instance, Event::Answered(RequestNo(1), answer));
                    }
                    _ => self.handle(&mut state, instance, Event::Announced),
                }
            }
            Step::Fail(instance) => {
                state.left.failures -= 1;
                Self::give_up(&mut state, instance);
                self.handle(&mut state, instance, Event::Failed(RequestNo(1), Failure::Passing));
            }
            Step::StandAside(instance) => {
                state.left.stand_asides -= 1;
                self.handle(&mut state, instance, Event::StandAside);
            }
            Step::Resume(instance) => self.handle(&mut state, instance, Event::Resume),
            Step::Crash(instance) => {
                state.left.crashes -= 1;
                Self::give_up(&mut state, instance);
                state.packets.retain(|p| p.instance != instance || p.content != Content::Release);
                state.elections[instance] = self.start(instance, state.starts, state.now);
                state.starts += 1;
            }
            Step::Flush => {
                state.left.flushes -= 1;
                state.store.data = Data::default();
            }
            Step::Empty => {
                state.left.empties -= 1;
                state.store.data = Data::default();
                state.store.server += 1;
            }
            Step::Snapshot => state.snapshot = Some(state.store.data.clone()),
            Step::Rollback => {
                state.left.rollbacks -= 1;
                state.store.data = state.snapshot.take()?;
                state.store.server += 1;
            }
            Step::Delete => {
                state.left.deletions -= 1;
                state.store.delete_lease();
            }
        }
        state.store.forget_the_past((1000 + state.now) * 1000);
        let now = instant(state.now);
        for election in &mut state.elections {
            election.forget_the_past(now);
        }
        // The network keeps no order.
        state.packets.sort_by_cached_key(|packet| {
            let mut hasher = DefaultHasher::new();
            packet.hash(&mut hasher);
            hasher.finish()
        });
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no two lead at once", |_: &Self, state: &State| {
                let now = instant(state.now);
                state.elections.iter().filter(|election| election.view(now).is_some()).count() < 2
            }),
            Property::always("terms rise", |_: &Self, state: &State| !state.term_repeated_or_fell),
            Property::sometimes(HANDOVER, |_: &Self, state: &State| state.handed_over),
        ]
    }
}
