//! The model's steps.

use std::time::Duration;

use leader_core::testing::election::{Election, Event, Rules};
use leader_core::{Candidate, GroupName};
use stateright::{Model, Property};

use super::alike::{newcomer, numbered};
use super::state::{Content, Member, Packet, State, instant};
use super::{Bounds, Faults, Replication};
use crate::sim::store::{Data, Store};

/// The name of what must be possible.
pub(super) const HANDOVER: &str = "a hand-over is possible";

/// The model of a fleet within bounds.
#[derive(Debug, Clone)]
pub struct Fleet(pub Bounds);

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
    /// The replica gets to have what the primary has.
    Replicate,
    /// The primary is gone, and the replica takes its place.
    Promote,
    /// The replica takes the primary's place, and those who are connected to it do not know.
    CutOff,
    /// An instance connects to the one that was promoted.
    Move(usize),
}

impl Fleet {
    fn start(&self, candidate: Candidate, now: u64) -> Election {
        let Bounds { ttl, renewal_failure, reclaim, known_bad, .. } = self.0;
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
        let group = GroupName::new("g").expect("a valid name");
        Election::new(group, candidate, rules, instant(now))
    }

    /// A process dies, and starts again.
    fn crash(&self, state: &mut State, instance: usize) {
        state.give_up(&self.0, instance);
        state.packets.retain(|p| p.instance != instance || p.content != Content::Release);
        let member = &mut state.members[instance];
        let old = member.election.candidate().id.as_str();
        let candidate = newcomer(if self.0.same_id { old } else { "new" });
        member.election = self.start(candidate, state.now);
    }

    /// A step in words. Each state numbers its instances by itself.
    #[must_use]
    pub fn tell(state: &State, step: &Step) -> String {
        match step {
            Step::Execute(k) | Step::ExecuteTwice(k) | Step::Deliver(k) => {
                let Packet { instance, cut_off, content, .. } = &state.packets[*k];
                let what = match content {
                    Content::Request(command) => format!("{:?}", command.op),
                    Content::Answer { answer, replicated: true } => format!("{answer:?}"),
                    Content::Answer { answer, .. } => format!("{answer:?}, not replicated"),
                    Content::Release => "announced release".to_owned(),
                };
                let verb = step_name(step);
                let place = if *cut_off { " at the primary that was cut off" } else { "" };
                format!("{verb} of {instance}: {what}{place}")
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
        let names = if self.0.twins { ["a"; 3] } else { ["a", "b", "c"] };
        let start = |(number, name): (usize, &str)| {
            let candidate = Candidate { incarnation: numbered(number), ..newcomer(name) };
            Member { election: self.start(candidate, 0), cut_off: false }
        };
        let members = names.into_iter().take(self.0.instances).enumerate().map(start).collect();
        let mut state = State {
            now: 0,
            store,
            // It has only just begun to replicate.
            replica: (self.0.replication != Replication::None).then(Data::default),
            cut_off: None,
            snapshot: None,
            members,
            packets: Vec::new(),
            left: self.0.faults,
            led: None,
            handed_over: false,
            term_repeated_or_fell: false,
        };
        state.tidy_up();
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let Faults { failures, duplicates, crashes, stand_asides, flushes, empties, .. } = state.left;
        let Faults { rollbacks, deletions, promotions, cuts, .. } = state.left;
        if state.now < self.0.ticks {
            steps.push(Step::Tick);
        }
        for (instance, Member { election, cut_off }) in state.members.iter().enumerate() {
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
            if *cut_off {
                steps.push(Step::Move(instance));
            }
        }
        for (k, packet) in state.packets.iter().enumerate() {
            // They are in order: of equal ones, one is enough.
            if k > 0 && state.packets[k - 1] == *packet {
                continue;
            }
            match packet.content {
                Content::Request(_) => {
                    steps.push(Step::Execute(k));
                    if duplicates > 0 {
                        steps.push(Step::ExecuteTwice(k));
                    }
                }
                // What no replica has is not told: its sender waits until one has it, or fails.
                Content::Answer { replicated: false, .. } if packet.awaited => {}
                Content::Answer { .. } | Content::Release => steps.push(Step::Deliver(k)),
            }
        }
        let store_faults = [
            (flushes > 0, Step::Flush),
            (empties > 0, Step::Empty),
            (rollbacks > 0 && state.snapshot.is_none(), Step::Snapshot),
            (rollbacks > 0 && state.snapshot.is_some(), Step::Rollback),
            (deletions > 0, Step::Delete),
            (state.replica.as_ref().is_some_and(|replica| *replica != state.store.data), Step::Replicate),
            (promotions > 0 && state.replica.is_some(), Step::Promote),
            (cuts > 0 && state.replica.is_some(), Step::CutOff),
        ];
        steps.extend(store_faults.into_iter().filter(|(possible, _)| *possible).map(|(_, step)| step));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let (now, bounds) = (instant(state.now), &self.0);
        match step {
            Step::Tick => state.now += 1,
            Step::Send(instance) => {
                let member = &mut state.members[instance];
                let request = member.election.poll(now, &mut Vec::new())?;
                let (cut_off, content) = (member.cut_off, Content::Request(request.command));
                state.packets.push(Packet { instance, awaited: true, cut_off, content });
            }
            Step::Execute(k) => {
                let packet = state.packets.remove(k);
                state.execute(bounds, &packet);
            }
            Step::ExecuteTwice(k) => {
                state.left.duplicates -= 1;
                let packet = state.packets[k].clone();
                state.execute(bounds, &packet);
            }
            Step::Deliver(k) => {
                let packet = state.packets.remove(k);
                state.deliver(bounds, packet);
            }
            Step::Fail(instance) => {
                state.left.failures -= 1;
                state.fail(bounds, instance);
            }
            Step::StandAside(instance) => {
                state.left.stand_asides -= 1;
                state.handle(instance, Event::StandAside);
            }
            Step::Resume(instance) => state.handle(instance, Event::Resume),
            Step::Crash(instance) => {
                state.left.crashes -= 1;
                self.crash(&mut state, instance);
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
            Step::Replicate => state.replicate(),
            Step::Promote => {
                state.left.promotions -= 1;
                state.promote();
            }
            Step::CutOff => {
                state.left.cuts -= 1;
                state.cut_off();
            }
            Step::Move(instance) => state.members[instance].cut_off = false,
        }
        state.tidy_up();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no two lead at once", |_: &Self, state: &State| state.leaders() < 2),
            Property::always("terms rise", |_: &Self, state: &State| !state.term_repeated_or_fell),
            Property::sometimes(HANDOVER, |_: &Self, state: &State| state.handed_over),
        ]
    }
}
