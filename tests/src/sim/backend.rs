//! The store of a simulated world: the model of its rules, or the Redis store's own script.

use std::time::Duration;

use leader_core::GroupName;
use leader_core::store::{Answer, Command};

use super::cluster::Server as OfCluster;
use super::settings::{Settings, StoreKind};
use super::store::{Data, Executed, Store};
use crate::script::server::{Keys, Server};
use crate::script::{ScriptStore, lease_key};

#[derive(Debug)]
pub(super) enum Backend {
    Model(Store),
    Script(ScriptStore),
}

/// What a store holds.
#[derive(Debug, Clone)]
pub(super) enum Memory {
    Model(Data),
    Script(Keys),
}

impl Backend {
    /// An empty server.
    pub(super) fn new(settings: &Settings) -> Self {
        let shortest_quarantine = if settings.ttls.len() > 1 { settings.longest_ttl() } else { Duration::ZERO };
        let flaw = settings.flaw();
        match settings.store {
            StoreKind::Model => Self::Model(Store::new(shortest_quarantine, flaw)),
            StoreKind::Script => Self::Script(ScriptStore::new(Server::new(0), flaw, shortest_quarantine, false)),
        }
    }

    /// Executes a command at `now`, microseconds of the server's clock.
    pub(super) fn execute(&mut self, now: u64, command: &Command) -> Executed {
        match self {
            Self::Model(store) => store.execute(now, command),
            Self::Script(store) => {
                let answer = store.execute(now, std::slice::from_ref(command)).remove(0);
                let answer = answer.unwrap_or_else(|error| panic!("{command:?}: {error}"));
                let minted = if let Answer::Won(won) = &answer { Some(won.term) } else { None };
                let announced = store.server().published.drain(..).count() > 0;
                Executed { answer, minted, announced }
            }
        }
    }

    /// An operator deletes the lease key.
    pub(super) fn delete_lease(&mut self, group: &GroupName) {
        match self {
            Self::Model(store) => store.delete_lease(),
            Self::Script(store) => _ = store.call(&["DEL", &lease_key(group)]),
        }
    }
}

impl OfCluster for Backend {
    type Memory = Memory;
    /// There is not much more than what one command changes.
    type Write = Memory;

    fn memory(&self) -> Memory {
        match self {
            Self::Model(store) => Memory::Model(store.data.clone()),
            Self::Script(store) => Memory::Script(store.server().keys.clone()),
        }
    }

    fn load(&mut self, memory: Memory) {
        match (self, memory) {
            (Self::Model(store), Memory::Model(data)) => store.data = data,
            (Self::Script(store), Memory::Script(keys)) => store.server().keys = keys,
            (backend, memory) => unreachable!("{memory:?} is not of {backend:?}"),
        }
    }

    fn lose_all(&mut self) {
        match self {
            Self::Model(store) => store.data = Data::default(),
            Self::Script(store) => store.server().keys = Keys::default(),
        }
    }

    fn apply(&mut self, write: Memory) {
        self.load(write);
    }

    fn identify(&mut self, identity: u32) {
        match self {
            Self::Model(store) => store.server = identity,
            Self::Script(store) => store.server().identity = identity,
        }
    }
}
