//! A Redis Cluster of a test's own: three primaries with a third of the slots each, and three replicas.

use std::fmt::Write as _;

use super::seat::Seat;
use super::server::RedisServer;
use crate::net::Network;
use crate::process::eventually;

const SLOTS: u16 = 16_384;
const PRIMARIES: usize = 3;

/// A node that is silent for so long is taken for dead. Much less, and a busy machine kills nodes.
const NODE_TIMEOUT_MS: &str = "2000";

/// What each node is started with: a replica is in step as soon as it can be.
const OPTIONS: [(&str, &str); 3] =
    [("cluster-enabled", "yes"), ("repl-diskless-sync-delay", "0"), ("cluster-allow-replica-migration", "no")];

/// The ports of the two nodes that have an address for themselves.
const PORTS: [u16; 2] = [6379, 6380];

/// Six nodes. Dropping it ends them.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// A cluster that takes commands, with replicas that are in step: node 3 of node 0, and so on. None, with the reason
    /// printed, where no Redis is installed.
    ///
    /// # Panics
    /// If it does not come about.
    #[must_use]
    pub fn start(options: &[(&str, &str)]) -> Option<Self> {
        Self::build(options, |_| Seat::of_node())
    }

    /// The same in a network, at its first three parties: a primary at each, and the replica of the next one's.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_inside(network: &Network, options: &[(&str, &str)]) -> Option<Self> {
        Self::build(options, |number| match number.checked_sub(PRIMARIES) {
            None => Seat::At(network.party(number).clone(), PORTS[0]),
            Some(of) => Seat::At(network.party((of + PRIMARIES - 1) % PRIMARIES).clone(), PORTS[1]),
        })
    }

    fn build(options: &[(&str, &str)], seat: impl Fn(usize) -> Seat) -> Option<Self> {
        let options = [&OPTIONS, options].concat();
        let nodes = (0..2 * PRIMARIES).map(|number| RedisServer::start_at(seat(number), &options));
        let cluster = Self { nodes: nodes.collect::<Option<_>>()? };
        let first = cluster.nodes[0].address();
        for (index, node) in cluster.nodes.iter().enumerate() {
            node.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            node.command::<()>(&["CLUSTER", "MEET", &first.ip().to_string(), &first.port().to_string()]);
        }
        for (index, node) in cluster.nodes[..PRIMARIES].iter().enumerate() {
            let slots: Vec<String> =
                (0..SLOTS).filter(|slot| Self::first_owner(*slot) == index).map(|slot| slot.to_string()).collect();
            let mut command = vec!["CLUSTER", "ADDSLOTS"];
            command.extend(slots.iter().map(String::as_str));
            node.command::<()>(&command);
        }
        let all_of = |node: &RedisServer, wanted: &str, number: usize| {
            node.command::<String>(&["CLUSTER", "NODES"]).matches(wanted).count() == number
        };
        eventually("all nodes know each other", || {
            cluster.nodes.iter().all(|node| all_of(node, " connected", 2 * PRIMARIES)).then_some(())
        });
        for (index, node) in cluster.nodes[PRIMARIES..].iter().enumerate() {
            node.command::<()>(&["CLUSTER", "REPLICATE", &cluster.id(index)]);
        }
        // Not before: those that do not get to know each other in this time never do.
        for node in &cluster.nodes {
            node.command::<()>(&["CONFIG", "SET", "cluster-node-timeout", NODE_TIMEOUT_MS]);
        }
        eventually("the cluster takes commands, and each replica is in step", || cluster.is_whole().then_some(()));
        Some(cluster)
    }

    /// Each node takes commands, knows as many primaries as replicas, none of them failed, and is in step if it is a replica.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_ok = |node: &RedisServer| {
            let asked = |parts: &[&str]| node.try_command::<String>(parts).unwrap_or_default();
            let replication = asked(&["INFO", "replication"]);
            let linked = replication.contains("role:master") || replication.contains("master_link_status:up");
            let nodes = asked(&["CLUSTER", "NODES"]);
            linked
                && nodes.matches("slave ").count() == PRIMARIES
                && nodes.matches("master ").count() == PRIMARIES
                && !nodes.contains("fail")
                && asked(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
        };
        self.nodes.iter().all(is_ok)
    }

    fn first_owner(slot: u16) -> usize {
        usize::from(slot) * PRIMARIES / usize::from(SLOTS)
    }

    /// The URL, which names two nodes.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&[0, 4], "")
    }

    /// The URL that names these nodes and this user: `user:password@`.
    #[must_use]
    pub fn url_of(&self, nodes: &[usize], user: &str) -> String {
        let mut url = format!("redis-cluster://{user}");
        for (place, node) in nodes.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(url, "{comma}{}", self.nodes[*node].address());
        }
        url
    }

    /// One of the nodes.
    #[must_use]
    pub fn node(&self, index: usize) -> &RedisServer {
        &self.nodes[index]
    }

    /// The same, to do it harm.
    pub fn node_mut(&mut self, index: usize) -> &mut RedisServer {
        &mut self.nodes[index]
    }

    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The name that a node has in the cluster.
    ///
    /// # Panics
    /// If it does not answer.
    #[must_use]
    pub fn id(&self, index: usize) -> String {
        self.nodes[index].command(&["CLUSTER", "MYID"])
    }

    /// The slot of a key.
    ///
    /// # Panics
    /// If the node does not answer.
    #[must_use]
    pub fn slot(&self, asked: usize, key: &str) -> u16 {
        self.nodes[asked].command(&["CLUSTER", "KEYSLOT", key])
    }

    /// Names of groups, one for each primary, whose leases it has as long as no slot moves.
    #[must_use]
    pub fn groups(&self) -> [String; PRIMARIES] {
        std::array::from_fn(|index| self.group_of(index, "group"))
    }

    /// The name of a group, which begins with `begin`, whose lease this primary has.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn group_of(&self, index: usize, begin: &str) -> String {
        let mut names = (0..1000).map(|number| format!("{begin}-{number}"));
        let found = names.find(|name| Self::first_owner(self.slot(index, &format!("leader:{name}"))) == index);
        found.expect("of a thousand names some are in each third of the slots")
    }

    /// Which node has this slot, as this one sees it; none, if that has failed.
    ///
    /// # Panics
    /// If that one does not answer.
    #[must_use]
    pub fn owner(&self, asked: usize, slot: u16) -> Option<usize> {
        let nodes: String = self.nodes[asked].command(&["CLUSTER", "NODES"]);
        let line = nodes.lines().find(|line| {
            let mut words = line.split(' ');
            let flags = words.nth(2).unwrap_or_default();
            // Of a slot that is about to move there is a word in brackets, too.
            flags.contains("master") && !flags.contains("fail") && words.skip(5).any(|range| has(range, slot))
        })?;
        self.nodes.iter().position(|node| line.contains(&format!("{}@", node.address())))
    }

    /// Moves a slot with all that is in it.
    ///
    /// # Panics
    /// If a node does not answer.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_to_move(slot, from, to);
        while self.move_keys(slot, from, to) > 0 {}
        self.end_to_move(slot, from, to);
    }

    /// Begins to move a slot.
    pub fn begin_to_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.nodes[to].command::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]);
        self.nodes[from].command::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]);
    }

    /// Moves all keys that are in it by now.
    ///
    /// # Panics
    /// If a node does not answer.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize) -> usize {
        let keys: Vec<String> = self.nodes[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "100"]);
        if !keys.is_empty() {
            let to = self.nodes[to].address();
            let (ip, port) = (to.ip().to_string(), to.port().to_string());
            let mut command = vec!["MIGRATE", &*ip, &*port, "", "0", "5000", "KEYS"];
            command.extend(keys.iter().map(String::as_str));
            self.nodes[from].command::<()>(&command);
        }
        keys.len()
    }

    /// Ends the move: from now on the slot is the other one's.
    pub fn end_to_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, id) = (slot.to_string(), self.id(to));
        let is_primary =
            |node: &usize| self.nodes[*node].command::<String>(&["INFO", "replication"]).contains("role:master");
        // The one that gets it first, and then all primaries, to see it.
        let others = (0..self.nodes.len()).filter(|node| ![from, to].contains(node)).filter(is_primary);
        for node in [to, from].into_iter().chain(others) {
            self.nodes[node].command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
        }
    }
}

/// `0-5460`, or `17`.
fn has(range: &str, slot: u16) -> bool {
    let (begin, end) = range.split_once('-').unwrap_or((range, range));
    matches!((begin.parse::<u16>(), end.parse::<u16>()), (Ok(begin), Ok(end)) if (begin..=end).contains(&slot))
}
