//! A server, the nodes on it, and what is asked of them in every test.

use std::time::Duration;

use leader_core::BootInstant;
use leader_examples::history::View;
use leader_tests::process::{Fleet, Reign, Spawn};
use leader_tests::redis::{Proxy, RedisServer, assert_deadline_within_lease};
use serde_json::Value;

use crate::{PROGRAM, took};

/// A server and the nodes on it.
pub(crate) struct Scene {
    // First: nodes go before what they need.
    pub(crate) fleet: Fleet,
    pub(crate) redis: RedisServer,
}

impl Scene {
    /// A server with these options, and nobody on it yet.
    pub(crate) fn empty(options: &[(&str, &str)]) -> Option<Self> {
        Some(Self::on(RedisServer::start(options)?))
    }

    /// Nobody yet on this server.
    pub(crate) fn on(redis: RedisServer) -> Self {
        Self { fleet: Fleet::on_store(PROGRAM, &redis.url()), redis }
    }

    /// A server, and nodes on it that were started one after the other: the first leads. They take the server for new.
    pub(crate) fn new(ttl: Duration, labels: &[&str]) -> Option<(Self, Reign)> {
        let mut scene = Self::empty(&[])?;
        scene.start(ttl, labels);
        let reign = scene.first();
        Some((scene, reign))
    }

    /// The same, but each node has a proxy of its own before the server.
    pub(crate) fn with_proxies<const N: usize>(ttl: Duration, labels: [&str; N]) -> Option<(Self, [Proxy; N], Reign)> {
        let mut scene = Self::empty(&[])?;
        let proxies = labels.map(|label| {
            let proxy = Proxy::before(&scene.redis);
            let mut plan = scene.plan(label, ttl);
            plan.options.store = proxy.url();
            scene.fleet.start(&plan);
            proxy
        });
        let reign = scene.first();
        assert_eq!(reign.label, labels[0]);
        Some((scene, proxies, reign))
    }

    /// How a node is started that takes the server for new.
    pub(crate) fn plan(&self, label: &str, ttl: Duration) -> Spawn {
        let mut plan = self.fleet.plan(label, ttl);
        plan.options.trust_fresh_store = true;
        plan
    }

    pub(crate) fn start(&mut self, ttl: Duration, labels: &[&str]) {
        for label in labels {
            let plan = self.plan(label, ttl);
            self.fleet.start(&plan);
        }
    }

    /// The first leader. What it believes, the server holds.
    pub(crate) fn first(&mut self) -> Reign {
        let reign = self.fleet.leader("default", 0);
        assert_deadline_within_lease(&mut self.fleet, &self.redis, &reign.label, "default");
        reign
    }

    /// Waits until somebody leads at `from` or later, and prints how long that took.
    pub(crate) fn led_again(&mut self, what: &str, from: BootInstant) -> View {
        let view = self.leads_at(what, from);
        print(what, from, &view);
        view
    }

    /// Waits until somebody leads when all that may have been believed at `from` has ended, a `ttl` later, and prints for how
    /// long nobody led.
    #[allow(clippy::print_stderr)]
    pub(crate) fn leads_on(&mut self, what: &str, from: BootInstant, ttl: Duration) -> View {
        let view = self.leads_at(what, from.saturating_add(ttl));
        let leaderless = self.fleet.read_logs().leaderless_ns("default", from.as_nanos(), view.ended_ns);
        let leaderless = Duration::from_nanos(leaderless).as_secs_f64();
        eprintln!("{what}: without a leader for {leaderless:.3} s, then {} under term {}", view.instance, view.term);
        view
    }

    fn leads_at(&mut self, what: &str, instant: BootInstant) -> View {
        self.fleet.until(&format!("somebody leads after {what}"), |fleet| {
            fleet.read_logs().newest_view("default").filter(|view| view.ended_ns >= instant.as_nanos()).cloned()
        })
    }

    /// Waits until somebody has taken over from `reign`, and prints how long that took.
    pub(crate) fn taken_over(&mut self, what: &str, from: BootInstant, reign: &Reign) -> Reign {
        let view = self.fleet.next_view("default", from, reign.term);
        print(what, from, &view);
        Reign { label: view.instance, term: view.term }
    }

    /// Waits until none of these nodes has a problem with its group. What they have found out about the server when they
    /// began is another matter.
    pub(crate) fn until_well(&mut self, labels: &[&str]) {
        let is_well = |status: &Value| {
            let problems = status["problems"].as_array().unwrap();
            problems.iter().all(|problem| problem["group"].is_null())
        };
        let all_are = |fleet: &mut Fleet| labels.iter().all(|label| is_well(&fleet.status(label)));
        self.fleet.until(&format!("{labels:?} are well"), |fleet| all_are(fleet).then_some(()));
    }

    /// Lets time pass.
    pub(crate) fn wait_until(&mut self, instant: BootInstant) {
        self.fleet.until(&format!("it is {instant:?}"), |_| (BootInstant::now() >= instant).then_some(()));
    }

    /// Between the two instants nobody has led.
    pub(crate) fn assert_nobody_led(&mut self, from: BootInstant, to: BootInstant) {
        let (from, to) = (from.as_nanos(), to.as_nanos());
        let views = self.fleet.read_logs().views();
        let led: Vec<_> = views.iter().filter(|view| view.began_ns < to && view.ended_ns > from).collect();
        assert!(from >= to || led.is_empty(), "somebody led between {from} and {to}: {led:?}");
    }
}

#[allow(clippy::print_stderr)]
fn print(what: &str, from: BootInstant, view: &View) {
    let took = took(from, view).as_secs_f64();
    eprintln!("{what}: {} leads {took:.3} s later, under term {}", view.instance, view.term);
}
