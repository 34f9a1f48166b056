//! Everything at once, by chance.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use leader_tests::process::{Command, Fleet};
use rustix::process::Signal;

use crate::{PROGRAM, SHORT, later};

const FAULTS_FOR: Duration = Duration::from_secs(20);
const GROUPS: [&str; 3] = ["default", "reports", "cleanup"];
const NODES: usize = 5;

struct Chaos {
    fleet: Fleet,
    chance: fastrand::Rng,
    stopped: BTreeSet<String>,
    started: usize,
}

impl Chaos {
    fn start(&mut self) {
        self.started += 1;
        // So short that most who are stopped stand still for longer.
        let mut plan = self.fleet.plan(&format!("n{}", self.started), SHORT / 5);
        plan.options.groups = GROUPS[1..].iter().map(ToString::to_string).collect();
        plan.options.hold_until_deadline = self.chance.bool();
        // The next fault comes whether it has started or not.
        self.fleet.spawn(&plan);
    }

    fn fault(&mut self) {
        let labels = self.fleet.labels();
        let label = labels[self.chance.usize(..labels.len())].clone();
        match self.chance.u8(..10) {
            0..=1 => {
                self.stopped.remove(&label);
                self.fleet.kill(&label);
                self.start();
            }
            // Also inside a transaction.
            2..=4 => {
                self.fleet.signal(&label, Signal::STOP);
                self.stopped.insert(label);
            }
            5..=7 => self.go_on(),
            _ => {
                let group = GROUPS[self.chance.usize(..GROUPS.len())].to_owned();
                self.fleet.tell(&label, &Command::StepDown { group });
            }
        }
        // One that stands still in a transaction stops all others: not for ever.
        if self.stopped.len() > 2 {
            self.go_on();
        }
    }

    fn go_on(&mut self) {
        if let Some(label) = self.stopped.pop_first() {
            self.fleet.cont(&label);
        }
    }
}

#[test]
#[allow(clippy::print_stderr)]
fn no_chance_of_faults_gives_two_leaders_and_all_ends_well() {
    let seed = std::env::var("LEADER_TEST_SEED").ok().map_or_else(|| fastrand::u64(..), |seed| seed.parse().unwrap());
    eprintln!("LEADER_TEST_SEED={seed}");
    let chance = fastrand::Rng::with_seed(seed);
    let mut chaos = Chaos { fleet: Fleet::new(PROGRAM), chance, stopped: BTreeSet::new(), started: 0 };
    for _ in 0..NODES {
        chaos.start();
    }
    for group in GROUPS {
        chaos.fleet.leader(group, 0);
    }
    let begin = Instant::now();
    while begin.elapsed() < FAULTS_FOR {
        chaos.fault();
        std::thread::sleep(Duration::from_millis(chaos.chance.u64(20..400)));
    }
    for label in std::mem::take(&mut chaos.stopped) {
        chaos.fleet.cont(&label);
    }
    let mut fleet = chaos.fleet;
    let calm = later(Duration::ZERO);
    for group in GROUPS {
        fleet.until(&format!("somebody leads {group} now that all is calm"), |fleet| {
            fleet.read_logs().newest_view(group).filter(|view| view.ended_ns > calm.as_nanos()).map(drop)
        });
    }
    let led = fleet.read_logs().views().len();
    assert!(led > 2 * GROUPS.len(), "nothing happened: {led} views");
    fleet.assert_safe();
}
