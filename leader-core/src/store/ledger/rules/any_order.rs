//! Commands of several processes in any order, over changes of leaders and a store that loses its memory: what is promised
//! of ticks holds all the same.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::record::Record;
use super::*;
use crate::group::GroupName;
use crate::identity::{Incarnation, InstanceId};
use crate::store::{JobName, RunEnd, RunOutcome};

const PROCESSES: usize = 3;
const SLOT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
enum Step {
    /// So many milliseconds pass.
    Pass(u64),
    /// This process becomes the leader.
    Elect(usize),
    Register(usize),
    Load(usize),
    /// Claims a tick so many seconds from now.
    Claim(usize, i64),
    /// Asks again what it asked last, whether or not it was answered.
    Again(usize),
    /// What it was told to take.
    Take(usize),
    Keep(usize),
    End(usize),
    GiveBack(usize, bool),
    Pause(usize, i64),
    Snapshot,
    /// The store is another one from now on, and holds what it held at the snapshot.
    RollBack,
    /// It is another one, and holds nothing.
    Empty,
    /// It is another one, and holds what it held.
    Restart,
}

/// Stands for whoever leads.
const LEADER: usize = PROCESSES;

fn who() -> impl Strategy<Value = usize> {
    prop_oneof![4 => Just(LEADER), 1 => 0..PROCESSES]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0_u64..3_000).prop_map(Step::Pass),
        2 => (0..PROCESSES).prop_map(Step::Elect),
        3 => who().prop_map(Step::Register),
        6 => who().prop_map(Step::Load),
        18 => (who(), -3_i64..2).prop_map(|(who, from_now)| Step::Claim(who, from_now)),
        2 => who().prop_map(Step::Again),
        5 => who().prop_map(Step::Take),
        1 => who().prop_map(Step::Keep),
        8 => who().prop_map(Step::End),
        5 => (who(), any::<bool>()).prop_map(|(who, keep)| Step::GiveBack(who, keep)),
        1 => (who(), -3_i64..3).prop_map(|(who, from_now)| Step::Pause(who, from_now)),
        1 => Just(Step::Snapshot),
        1 => Just(Step::RollBack),
        1 => Just(Step::Empty),
        1 => Just(Step::Restart),
    ]
}

/// What a process knows of the job under the term that it leads by.
#[derive(Debug, Clone, Copy)]
struct Knowledge {
    term: Term,
    last: i64,
}

#[derive(Debug, Default)]
struct Process {
    knows: Option<Knowledge>,
    /// The largest tick that it has ever known to be claimed.
    seen: Option<i64>,
    asked: Option<TickClaim>,
    told_to_take: Option<i64>,
    /// Claims that were answered with run, and whose bodies have not begun.
    claimed: BTreeMap<u128, i64>,
}

struct World {
    forbid: bool,
    at_least_once: bool,
    processes: [Process; PROCESSES],
    record: Option<Record>,
    snapshot: Option<Record>,
    identity: u32,
    lost: Option<i64>,
    now_us: u64,
    leader: Option<(usize, Term)>,
    /// Ticks that were claimed and not given back, by the nonce of the claim.
    ran: BTreeMap<i64, u128>,
    given_back: BTreeSet<i64>,
    nonce: u128,
}

fn candidate(who: usize) -> Candidate {
    Candidate { id: InstanceId::new(format!("p{who}")).unwrap(), incarnation: Incarnation::from_u128(who as u128) }
}

impl World {
    fn new(forbid: bool, at_least_once: bool) -> Self {
        Self {
            forbid,
            at_least_once,
            processes: Default::default(),
            record: None,
            snapshot: None,
            identity: 1,
            lost: Some(0),
            now_us: 1_000_000_000_000,
            leader: None,
            ran: BTreeMap::new(),
            given_back: BTreeSet::new(),
            nonce: 0,
        }
    }

    fn now(&self) -> i64 {
        (self.now_us / 1_000_000) as i64
    }

    fn ask(&mut self, who: usize, op: TickOp) -> TickReply {
        let identity = self.identity.to_string();
        let leader = self.leader.map(|(who, term)| (candidate(who), term));
        let end = self.record.as_ref().and_then(|record| record.open.as_ref()).map_or(0, |run| run.slot_end_us);
        let seen = Seen {
            record: Ok(self.record.clone()),
            left: Duration::from_micros(end.saturating_sub(self.now_us)),
            lease: leader.as_ref().map(|(who, term)| (who, *term)),
            now_us: self.now_us,
            identity: &identity,
            lost: self.lost,
            other_last: Ok(None),
        };
        let (group, job) = (GroupName::new("g").unwrap(), JobName::new("j").unwrap());
        let Decision { reply, change } = decide(seen, &TickCommand { group, job, candidate: candidate(who), op });
        if let (Some(before), Some(after)) = (&self.record, &change.record) {
            assert!(after.last >= before.last, "the last tick falls");
            assert!(after.others.len() <= MOST && after.returned.len() <= MOST);
        }
        self.record = change.record.or(self.record.take());
        self.lost = change.lost.or(self.lost);
        reply
    }

    fn claim(&mut self, who: usize, claim: TickClaim) {
        let reply = self.ask(who, TickOp::Claim(Box::new(claim.clone())));
        let process = &mut self.processes[who];
        process.told_to_take = None;
        process.asked = Some(claim.clone());
        let last = match reply {
            TickReply::Run { tick, .. } => {
                assert!(micros_of(tick) <= self.now_us, "tick {tick} was run early, at {}", self.now_us);
                let before = self.ran.insert(tick, claim.nonce);
                let same = before.is_none_or(|nonce| nonce == claim.nonce);
                assert!(same || self.at_least_once, "tick {tick} was run twice");
                process.claimed.insert(claim.nonce, tick);
                tick
            }
            TickReply::Already { last, floor } => last.max(floor),
            TickReply::Moved { last } => last,
            TickReply::Take { tick, .. } => {
                process.told_to_take = Some(tick);
                return;
            }
            _ => return,
        };
        if let Some(knows) = &mut process.knows {
            knows.last = knows.last.max(last);
        }
        process.seen = process.seen.max(Some(last));
    }

    fn take(&mut self, step: &Step) {
        let leader = self.leader.map_or(0, |(who, _)| who);
        let one = |who: usize| if who == LEADER { leader } else { who };
        match *step {
            Step::Pass(millis) => self.now_us += millis * 1000,
            Step::Elect(who) => {
                let term = Term::new(self.leader.map_or(1, |(_, term)| term.get() + 1));
                self.leader = Some((who, term));
            }
            Step::Register(who) => {
                let who = one(who);
                let known = self.processes[who].seen;
                self.ask(who, TickOp::Register { schedule: String::new(), known });
            }
            Step::Load(who) => self.load(one(who)),
            Step::Claim(who, from_now) => self.claim_at(one(who), self.now() + from_now),
            Step::Again(who) => {
                let who = one(who);
                // Only as long as its body has not begun: that is why it asks again.
                let asked = self.processes[who].asked.clone();
                if let Some(asked) = asked.filter(|asked| self.processes[who].claimed.contains_key(&asked.nonce)) {
                    self.claim(who, asked);
                }
            }
            Step::Take(who) => {
                let who = one(who);
                if let Some(tick) = self.processes[who].told_to_take {
                    self.claim_at(who, tick);
                }
            }
            Step::Keep(who) => {
                let who = one(who);
                if let Some((&nonce, _)) = self.processes[who].claimed.first_key_value() {
                    self.ask(who, TickOp::KeepSlot { nonce, slot: SLOT });
                }
            }
            Step::End(who) => {
                let who = one(who);
                if let Some((nonce, _)) = self.processes[who].claimed.pop_first() {
                    let outcome = RunOutcome::Succeeded;
                    let end = RunEnd { outcome, message: String::new(), began_us: 0, took: Duration::ZERO };
                    self.ask(who, TickOp::End { nonce, end });
                }
            }
            Step::GiveBack(who, keep) => {
                let who = one(who);
                if let Some((nonce, tick)) = self.processes[who].claimed.pop_first() {
                    let reply = self.ask(who, TickOp::GiveBack { nonce, begun: false, keep });
                    if reply == TickReply::Returned {
                        self.ran.remove(&tick);
                        self.given_back.insert(tick);
                    }
                }
            }
            Step::Pause(who, from_now) => {
                self.ask(one(who), TickOp::Pause { until: self.now() + from_now, note: String::new() });
            }
            Step::Snapshot => self.snapshot = self.record.clone(),
            Step::RollBack => self.replace(self.snapshot.clone()),
            Step::Empty => self.replace(None),
            Step::Restart => self.replace(self.record.clone()),
        }
    }

    fn replace(&mut self, record: Option<Record>) {
        (self.record, self.lost) = (record, None);
        self.identity += 1;
    }

    fn load(&mut self, who: usize) {
        let TickReply::Loaded(told) = self.ask(who, TickOp::Load) else { return };
        let Some((_, term)) = self.leader.filter(|(leader, _)| *leader == who) else { return };
        let process = &mut self.processes[who];
        let last = told.last.max(told.floor);
        let known = process.knows.filter(|knows| knows.term == term).map_or(0, |knows| knows.last);
        process.knows = Some(Knowledge { term, last: last.max(known) });
        process.seen = process.seen.max(Some(last));
    }

    fn claim_at(&mut self, who: usize, tick: i64) {
        let Some((_, term)) = self.leader else { return };
        self.nonce += 1;
        let knows = self.processes[who].knows.filter(|knows| knows.term == term);
        let claim = TickClaim {
            term,
            tick,
            expect: knows.or(self.processes[who].knows).map_or(tick - 1, |knows| knows.last),
            floor: 0,
            nonce: self.nonce,
            not_after_us: u64::MAX,
            slot: SLOT,
            forbid: self.forbid,
            at_least_once: self.at_least_once,
            max_attempts: 3,
            retry_within: Duration::from_secs(30),
            schedule: String::new(),
            missed: None,
            vouch: knows.is_some(),
            renamed_from: None,
        };
        self.claim(who, claim);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn no_tick_is_run_twice_or_early_and_the_last_one_never_falls(
        steps in prop::collection::vec(step(), 1..120),
        forbid in any::<bool>(),
        at_least_once in any::<bool>(),
    ) {
        let mut world = World::new(forbid, at_least_once);
        world.take(&Step::Register(0));
        for step in &steps {
            world.take(step);
        }
    }
}

/// Or the steps would show nothing.
#[test]
fn the_steps_lead_to_runs_and_returns_and_losses() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 100..120);
    let (mut ran, mut given_back, mut stores) = (0, 0, 0);
    for _ in 0..200 {
        let mut world = World::new(true, false);
        world.take(&Step::Register(0));
        steps.new_tree(&mut runner).unwrap().current().iter().for_each(|step| world.take(step));
        ran += world.ran.len();
        given_back += world.given_back.iter().filter(|tick| world.ran.contains_key(tick)).count();
        stores += world.identity as usize;
    }
    assert!(ran > 300 && given_back > 20 && stores > 400, "{ran} runs, {given_back} again, {stores} stores");
}
