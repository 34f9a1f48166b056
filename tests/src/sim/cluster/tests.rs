use super::*;

/// It counts, and a write is what it has counted to.
#[derive(Debug, Default)]
struct Counter {
    count: u64,
    identity: u32,
}

impl Server for Counter {
    type Memory = u64;
    type Write = u64;

    fn memory(&self) -> u64 {
        self.count
    }

    fn load(&mut self, memory: u64) {
        self.count = memory;
    }

    fn lose_all(&mut self) {
        self.count = 0;
    }

    fn apply(&mut self, write: u64) {
        assert_eq!(write, self.count + 1, "a stream without a gap");
        self.count = write;
    }

    fn identify(&mut self, identity: u32) {
        self.identity = identity;
    }
}

const SECOND: u64 = 1_000_000_000;

/// A cluster, and what is to happen in it.
struct World {
    cluster: Cluster<Counter, &'static str>,
    rng: Rng,
    now: u64,
}

impl World {
    fn new(replicas: usize, wait: usize) -> Self {
        let servers = (0..=replicas).map(|_| (Counter::default(), Clock::new(0, 0).wall())).collect();
        Self { cluster: Cluster::new(servers, 2, wait, Duration::from_secs(1), false), rng: Rng::new(1), now: 0 }
    }

    fn count(&mut self, node: usize) {
        self.cluster.nodes[node].server.count += 1;
        self.cluster.written(self.now, node, &mut self.rng, |server| server.count);
    }

    /// All that is planned up to an instant happens.
    fn pass(&mut self, until: u64) {
        loop {
            let due = self.cluster.planned.iter().enumerate().filter(|(_, (at, _))| *at <= until);
            let Some(place) = due.min_by_key(|(_, (at, _))| *at).map(|(place, _)| place) else { break };
            let (at, turn) = self.cluster.planned.remove(place);
            self.now = self.now.max(at);
            self.cluster.turn(self.now, &mut self.rng, turn);
        }
        self.now = until;
    }

    fn counts(&self) -> Vec<u64> {
        self.cluster.nodes.iter().map(|node| node.server.count).collect()
    }
}

#[test]
fn a_replica_has_what_has_arrived_and_in_the_end_all() {
    let mut world = World::new(2, 0);
    for _ in 0..100 {
        world.count(0);
    }
    assert_eq!(world.counts(), [100, 0, 0]);
    world.pass(60_000);
    assert!(world.counts()[1] < 100, "{:?}", world.counts());
    world.pass(SECOND);
    assert_eq!(world.counts(), [100, 100, 100]);
}

#[test]
fn an_answer_waits_for_as_many_replicas_as_are_asked_for() {
    for (wait, lagging, enough) in [(1, true, true), (2, true, false), (2, false, true)] {
        let mut world = World::new(2, wait);
        if lagging {
            world.cluster.nodes[2].lags_until = 10 * SECOND;
        }
        world.count(0);
        world.cluster.hold(0, 0, "won", SECOND);
        assert!(world.cluster.confirmed.is_empty());
        world.pass(2 * SECOND);
        let confirmed: Vec<_> = world.cluster.confirmed.iter().map(|(_, answer, enough)| (*answer, *enough)).collect();
        assert_eq!(confirmed, [("won", enough)], "{wait} of 2");
    }
}

#[test]
fn who_is_promoted_lacks_what_had_not_arrived_and_is_called_otherwise() {
    let mut world = World::new(1, 0);
    world.count(0);
    world.pass(SECOND);
    world.cluster.nodes[1].lags_until = 100 * SECOND;
    world.count(0);
    let before = world.cluster.nodes[1].server.identity;
    assert!(world.cluster.strike(world.now, &mut world.rng, Upset::PrimaryDies));
    world.pass(20 * SECOND);
    assert_eq!((world.cluster.primary, world.cluster.nodes[1].server.count), (1, 1));
    assert_ne!(world.cluster.nodes[1].server.identity, before);
    // The dead one is given what the other has.
    assert_eq!(world.counts(), [1, 1]);
    assert!(world.cluster.losses.iter().any(|loss| loss.of.is_none() && loss.since < loss.until));
    assert_eq!(world.cluster.targets, [1, 1]);
}

#[test]
fn what_an_isolated_primary_goes_on_to_take_is_lost_when_it_is_put_back() {
    let mut world = World::new(1, 1);
    world.count(0);
    world.pass(SECOND);
    assert!(world.cluster.strike(world.now, &mut world.rng, Upset::PrimaryIsolated));
    world.count(0);
    world.cluster.hold(world.now, 0, "won", SECOND / 10);
    while world.cluster.primary == 0 {
        world.pass(world.now + SECOND / 100);
    }
    world.count(0);
    assert_eq!(world.counts(), [3, 1]);
    world.pass(60 * SECOND);
    assert_eq!(world.counts(), [1, 1]);
    assert!(world.cluster.confirmed.iter().all(|(_, _, enough)| !enough), "no replica had it");
    assert!(world.cluster.losses.iter().any(|loss| loss.of == Some(0)));
    assert!(!world.cluster.nodes[0].is_primary);
}

#[test]
fn after_any_upsets_all_are_whole_again() {
    let upsets = [
        Upset::PrimaryDies,
        Upset::Flaps,
        Upset::ReplicaLags,
        Upset::ReplicaEmpty,
        Upset::PrimaryReturns,
        Upset::PrimaryIsolated,
        Upset::HandOver,
    ];
    for seed in 0..200 {
        let mut world = World::new(2, 0);
        world.rng = Rng::new(seed);
        for _ in 0..20 {
            let upset = upsets[world.rng.index(upsets.len())];
            world.cluster.strike(world.now, &mut world.rng, upset);
            for node in 0..3 {
                if world.cluster.nodes[node].is_primary && world.cluster.nodes[node].state == State::Up {
                    world.count(node);
                }
            }
            let later = world.now + world.rng.below(Duration::from_secs(2));
            world.pass(later);
        }
        world.pass(world.now + 10 * SECOND);
        let primary = world.cluster.primary;
        world.count(primary);
        world.pass(world.now + 10 * SECOND);
        let counts = world.counts();
        assert!(counts.iter().all(|count| *count == counts[primary]), "seed {seed}: {counts:?}");
        assert_eq!(world.cluster.targets, [primary, primary], "seed {seed}");
        assert_eq!(world.cluster.nodes.iter().filter(|node| node.is_primary).count(), 1, "seed {seed}");
    }
}
