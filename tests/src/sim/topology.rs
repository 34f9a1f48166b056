//! The store's servers in a world: what befalls them, and what comes of that.

use leader_core::store::Answer;

use super::backend::{Backend, Memory};
use super::cluster::{Cluster, State, Turn, Upset};
use super::world::{Happening, Sender, World, push};

/// All servers of a world.
pub(super) type Servers = Cluster<Backend, Waiting>;
/// What happens to them later.
pub(super) type ServersTurn = Turn<Memory, Memory>;

/// An answer that waits for replicas.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) from: Sender,
    pub(super) answer: Answer,
}

impl World<'_> {
    pub(super) fn upset(&mut self, upset: Upset) -> bool {
        self.cluster.strike(self.now, &mut self.rng, upset)
    }

    pub(super) fn cluster_turns(&mut self, turn: ServersTurn) {
        self.cluster.turn(self.now, &mut self.rng, turn);
    }

    /// Takes what the servers have planned and said.
    pub(super) fn heed_cluster(&mut self) {
        for (node, Waiting { from, answer }, enough) in std::mem::take(&mut self.cluster.confirmed) {
            if enough {
                self.minted(node, &answer);
            }
            self.answers(from, node, enough.then_some(answer));
        }
        for (at, turn) in self.cluster.planned.drain(..) {
            self.agenda.add(at, Happening::Cluster(turn));
        }
        for line in self.cluster.told.drain(..) {
            if let Some(trace) = &mut self.trace {
                push(trace, self.now, &format!("  servers: {line}"));
            }
        }
        // Leases are not excused by it.
        self.cluster.losses.clear();
    }

    /// What the primary holds is lost, or replaced: so it is to its replicas.
    pub(super) fn restart(&mut self, how: &str) {
        self.say_store(|| how.to_owned());
        self.cluster.primary_restarts(self.now, &mut self.rng);
        let node = self.cluster.primary;
        self.cluster.nodes[node].state = State::Down;
        let later = self.rng.below(self.settings.ttl(0) / 4);
        self.agenda.add(self.now + later, Happening::StoreBack(node));
    }

    /// A command of somebody else has changed the primary.
    pub(super) fn written(&mut self) {
        let node = self.cluster.primary;
        self.cluster.written(self.now, node, &mut self.rng, super::cluster::Server::memory);
    }
}
