//! One server, and nodes that reach it by a network.

use std::time::Duration;

use leader_tests::net::Network;
use leader_tests::process::{Fleet, Options, Reign};
use leader_tests::redis::RedisServer;

use crate::PROGRAM;

/// The party of the server. Those of the nodes follow.
pub(crate) const SERVER: usize = 0;
pub(crate) const A: usize = 1;
pub(crate) const B: usize = 2;

pub(crate) struct Scene {
    // First: nodes go before what they need.
    pub(crate) fleet: Fleet,
    pub(crate) redis: RedisServer,
    pub(crate) network: Network,
}

impl Scene {
    /// These nodes, which were started one after the other, and the first of which leads. They take the server for new.
    pub(crate) fn new(ttl: Duration, labels: &[&str], change: impl Fn(&mut Options)) -> Option<(Self, Reign)> {
        let network = Network::of(1 + labels.len())?;
        // Who aborts a connection while nothing arrives is not heard: the server finds out by itself.
        let redis = RedisServer::start_inside(network.party(SERVER), &[("tcp-keepalive", "3")])?;
        let mut fleet = Fleet::on_store(PROGRAM, &redis.url());
        for (number, label) in labels.iter().enumerate() {
            let mut plan = fleet.plan(label, ttl);
            plan.entry = network.party(A + number).entry().to_vec();
            plan.options.trust_fresh_store = true;
            change(&mut plan.options);
            fleet.start(&plan);
        }
        let reign = fleet.leader("default", 0);
        assert_eq!(reign.label, labels[0]);
        Some((Self { fleet, redis, network }, reign))
    }
}
