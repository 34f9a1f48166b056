//! Real processes on a real Redis server, and what must hold whatever happens to the processes, to the server and to the
//! network between them: no two lead a group at once, terms only rise, and after each fault somebody leads again, without
//! anything having been restarted for it.
//!
//! Each process samples `is_leader()` and logs when it sees itself lead, by the boot clock that all share; the test lays
//! the logs over each other. How long it takes until somebody leads again is printed, and asserted only as far as no busy
//! machine could break it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in the helpers of tests too")]

mod death;
mod outage;

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use leader_tests::process::{Fleet, Reign, Spawn};
use leader_tests::redis::{RedisServer, assert_deadline_within_lease};

const PROGRAM: &str = env!("CARGO_BIN_EXE_node");

/// In which a takeover that needs no ttl must be over, on any machine: a third of it.
const LONG: Duration = Duration::from_secs(30);
const LONG_BEFORE: Duration = Duration::from_secs(10);

/// In which an instance is not demoted falsely.
const SHORT: Duration = Duration::from_secs(3);

/// Where a false demotion does no harm.
const BRIEF: Duration = Duration::from_millis(1500);

/// A server and the nodes on it.
struct Scene {
    // First: nodes go before what they need.
    fleet: Fleet,
    redis: RedisServer,
}

impl Scene {
    /// A server with these options, and nobody on it yet.
    fn empty(options: &[(&str, &str)]) -> Option<Self> {
        let redis = RedisServer::start(options)?;
        Some(Self { fleet: Fleet::on_store(PROGRAM, &redis.url()), redis })
    }

    /// A server, and nodes on it that were started one after the other: the first leads. They take the server for new.
    fn new(ttl: Duration, labels: &[&str]) -> Option<(Self, Reign)> {
        let mut scene = Self::empty(&[])?;
        for label in labels {
            let plan = scene.plan(label, ttl);
            scene.fleet.start(&plan);
        }
        let reign = scene.first();
        Some((scene, reign))
    }

    /// How a node is started that takes the server for new.
    fn plan(&self, label: &str, ttl: Duration) -> Spawn {
        let mut plan = self.fleet.plan(label, ttl);
        plan.options.trust_fresh_store = true;
        plan
    }

    /// The first leader. What it believes, the server holds.
    fn first(&mut self) -> Reign {
        let reign = self.fleet.leader("default", 0);
        assert_deadline_within_lease(&mut self.fleet, &self.redis, &reign.label, "default");
        reign
    }

    /// Waits until somebody leads at `from` or later, and prints how long that took.
    #[allow(clippy::print_stderr)]
    fn led_again(&mut self, what: &str, from: BootInstant) -> View {
        let view = self.fleet.until(&format!("somebody leads after {what}"), |fleet| {
            fleet.read_logs().newest_view("default").filter(|view| view.ended_ns >= from.as_nanos()).cloned()
        });
        let took = took(from, &view);
        eprintln!("{what}: {} leads {:.3} s after it, under term {}", view.instance, took.as_secs_f64(), view.term);
        view
    }

    /// Nobody has led at once with another, no term has come twice.
    fn assert_safe(&mut self) {
        self.fleet.assert_safe();
    }
}

/// From an instant to the begin of a view; nothing if it had begun before.
fn took(from: BootInstant, view: &View) -> Duration {
    BootInstant::from_nanos(view.began_ns).saturating_since(from)
}

fn later(by: Duration) -> BootInstant {
    BootInstant::now().saturating_add(by)
}
