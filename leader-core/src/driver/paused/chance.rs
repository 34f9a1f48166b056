//! Three electors, each on a network of its own, and everything that can happen to them, by chance and with a seed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::runtime::Handle;

use super::*;
use crate::driver::describe_panic;
use crate::election::KnownBad;
use crate::{RenewalFailure, Term};
use wire::{Connecting, Wire};

const ELECTORS: usize = 3;
const GROUPS: [&str; 3] = ["default", "mail", "reports"];
/// Faults that follow each other in one course.
const ROUNDS: usize = 10;
/// A group has a leader again so long after the last fault ended.
const PATIENCE: Duration = Duration::from_secs(12);
const SEEDS: u64 = 20;
/// How often everybody's view is looked at.
const GLANCE: Duration = Duration::from_millis(7);

struct Fleet {
    stage: Stage,
    members: Vec<Member>,
    /// Of each group the newest term that was led under, and by whom: every elector that ever was has a number.
    led: BTreeMap<&'static str, (Term, usize)>,
    numbers: usize,
    known_bad: Option<KnownBad>,
}

struct Member {
    wire: Wire,
    elector: Elector,
    driver: JoinHandle<()>,
    number: usize,
}

impl Fleet {
    fn new(stage: Stage, known_bad: Option<KnownBad>) -> Self {
        let mut fleet = Self { stage, members: Vec::new(), led: BTreeMap::new(), numbers: 0, known_bad };
        for _ in 0..ELECTORS {
            let member = fleet.member(Wire::new(fleet.stage.memory.clone()));
            fleet.members.push(member);
        }
        fleet
    }

    fn member(&mut self, wire: Wire) -> Member {
        let policies = [RenewalFailure::DemoteAtOnce, RenewalFailure::HoldUntilDeadline];
        let policy = fastrand::choice(policies).unwrap();
        let known_bad = self.known_bad;
        let configured = |config: Config| {
            let config = config.groups(GROUPS).renewal_failure(policy);
            if let Some(variant) = known_bad { config.known_bad(variant) } else { config }
        };
        let (elector, driver) = self.stage.begin(wire.clone(), configured);
        self.numbers += 1;
        Member { wire, elector, driver, number: self.numbers }
    }

    /// The process of a member dies at this instant, and another takes its place.
    fn crash(&mut self, which: usize) {
        let wire = self.members[which].wire.clone();
        let successor = self.member(wire);
        let dead = std::mem::replace(&mut self.members[which], successor);
        dead.driver.abort();
    }

    /// Looks at all views. Returns whether every group has a leader.
    fn glance(&mut self) -> bool {
        let mut all_led = true;
        for group in GROUPS {
            let leases = self.members.iter().filter_map(|m| Some((m.elector.lease(group)?, m.number)));
            let leases: Vec<_> = leases.collect();
            assert!(leases.len() <= 1, "{} lead {group} at {:?}: {leases:?}", leases.len(), self.stage.now());
            let Some((lease, who)) = leases.first() else {
                all_led = false;
                continue;
            };
            let (term, leader) = self.led.entry(group).or_insert((lease.term(), *who));
            assert!(
                lease.term() > *term || (lease.term(), *who) == (*term, *leader),
                "{group}: {lease:?} after {term}"
            );
            (*term, *leader) = (lease.term(), *who);
        }
        for member in &self.members {
            let led = GROUPS.iter().filter(|group| member.elector.is_leader(group)).count();
            let leases = GROUPS.iter().filter(|group| member.elector.lease(group).is_some()).count();
            assert_eq!(led, leases, "the gate and the lease say the same");
        }
        all_led
    }

    async fn watch_for(&mut self, time: Duration) {
        let end = self.stage.now().saturating_add(time);
        while self.stage.now() < end {
            self.glance();
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// The time until every group has a leader.
    async fn until_led(&mut self) -> Duration {
        let begun = self.stage.now();
        loop {
            let gone = self.stage.now().saturating_since(begun);
            if self.glance() || gone > PATIENCE {
                return gone;
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    fn weather(&self, members: &[usize], change: impl Fn(&mut wire::Weather)) {
        members.iter().for_each(|which| self.members[*which].wire.weather(&change));
    }

    /// One fault, from its begin to its end. Returns its name.
    async fn suffer(&mut self) -> &'static str {
        let which = fastrand::usize(..ELECTORS);
        let (one, all): (&[usize], &[usize]) = (&[which], &[0, 1, 2]);
        let whom = if fastrand::bool() { one } else { all };
        let length = TTL.mul_f64(fastrand::f64() * 3.0);
        let share = fastrand::choice([0.3, 0.7, 1.0]).unwrap();
        let name = match fastrand::u8(..13) {
            0 => self.storm(whom, length, "calls hang", |w| w.lost = share).await,
            1 => self.storm(whom, length, "calls fail", |w| w.failed = share).await,
            2 => self.storm(whom, length, "answers are lost", |w| w.unanswered = share).await,
            3 => self.storm(whom, length, "parts of calls fail", |w| w.garbled = share).await,
            4 => {
                self.storm(whom, length, "calls are late, and come twice", |w| {
                    w.twice = share;
                    w.slow = OPERATION_TIMEOUT * 4 / 5;
                })
                .await
            }
            5 => self.storm(whom, length, "answers are missing", |w| w.short = share).await,
            6 => {
                self.storm(whom, length, "everything at once", |w| {
                    (w.lost, w.failed, w.unanswered, w.twice, w.garbled) = (0.1, 0.1, 0.1, 0.3, 0.1);
                    w.slow = OPERATION_TIMEOUT * 2 / 3;
                })
                .await
            }
            7 => {
                self.crash(which);
                "a crash"
            }
            8 => {
                let connecting = fastrand::choice([Connecting::Fails, Connecting::Hangs]).unwrap();
                self.weather(one, |w| w.connecting = connecting);
                self.crash(which);
                self.watch_for(length).await;
                "a crash, and the store is out of reach of the next process"
            }
            9 => {
                self.weather(one, |w| w.mute = true);
                self.crash(which);
                self.step_down(fastrand::usize(..ELECTORS)).await;
                "a release that one does not hear of"
            }
            10 => {
                self.step_down(which).await;
                "a step-down"
            }
            11 => {
                let elector = self.members[which].elector.clone();
                let drained = tokio::spawn(async move { elector.drain(SECOND).await });
                self.watch_for(length).await;
                drained.await.unwrap().unwrap();
                self.members[which].elector.resume();
                "a drain"
            }
            _ => {
                self.weather(one, |w| w.lost = share);
                let elector = self.members[which].elector.clone();
                let ended = tokio::spawn(async move { elector.shutdown(SECOND).await });
                self.watch_for(length).await;
                let _ = ended.await.unwrap();
                self.crash(which);
                "a shutdown while calls hang"
            }
        };
        self.weather(all, |w| *w = wire::Weather::default());
        name
    }

    async fn storm(
        &mut self,
        whom: &[usize],
        length: Duration,
        name: &'static str,
        change: impl Fn(&mut wire::Weather),
    ) -> &'static str {
        self.weather(whom, change);
        self.watch_for(length).await;
        name
    }

    async fn step_down(&mut self, which: usize) {
        let elector = self.members[which].elector.clone();
        for group in GROUPS {
            elector.step_down(group).await.unwrap();
            self.glance();
        }
    }

    /// The tasks of the runtime while no call is under way.
    async fn tasks_at_rest(&self) -> usize {
        let alive = || Handle::current().metrics().num_alive_tasks();
        let mut fewest = alive();
        for _ in 0..500 {
            tokio::time::sleep(MS * 9).await;
            fewest = fewest.min(alive());
        }
        fewest
    }
}

/// The longest time without a leader after each kind of fault.
type Longest = Rc<RefCell<BTreeMap<&'static str, Duration>>>;

fn course(seed: u64, known_bad: Option<KnownBad>, longest: &Longest) {
    stage(seed, async |stage| {
        let mut fleet = Fleet::new(stage, known_bad);
        assert!(fleet.until_led().await <= PATIENCE, "a fleet begins with a leader");
        let at_rest = fleet.tasks_at_rest().await;
        assert_eq!(at_rest, ELECTORS, "a driver each");
        for round in 0..ROUNDS {
            let name = fleet.suffer().await;
            let gap = fleet.until_led().await;
            assert!(gap <= PATIENCE, "round {round}: no leader {gap:?} after the end of: {name}");
            fleet.watch_for(SECOND.mul_f64(fastrand::f64() * 15.0)).await;
            assert_eq!(fleet.tasks_at_rest().await, at_rest, "round {round}: tasks after: {name}");
            let mut longest = longest.borrow_mut();
            let known = longest.entry(name).or_default();
            *known = gap.max(*known);
        }
        for member in &fleet.members {
            member.elector.shutdown(SECOND).await.unwrap();
        }
        for member in fleet.members {
            member.driver.await.unwrap();
        }
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    });
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures are part of the result")]
fn after_each_of_ten_faults_every_group_has_a_leader_within_a_ttl_and_two_retries_and_never_two() {
    let longest = Rc::default();
    (0..SEEDS).for_each(|seed| course(seed, None, &longest));
    for (name, gap) in longest.borrow().iter() {
        println!("{gap:>10.1?} without a leader, at most, after: {name}");
    }
}

#[test]
fn a_view_without_a_deadline_is_found() {
    let found = (0..SEEDS).any(|seed| {
        let course = || course(seed, Some(KnownBad::NoDeadline), &Rc::default());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(course));
        outcome.is_err_and(|panic| describe_panic(panic.as_ref()).starts_with("2 lead"))
    });
    assert!(found);
}
