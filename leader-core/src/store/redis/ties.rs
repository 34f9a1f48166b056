//! All ties of one elector to the store, each with connections of its own: no lease ever waits behind anything else.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::address::{Cluster, Place};
use super::client::Connector;
use super::cluster::{Map, Nodes};
use super::connection::Client;
use super::doctor::Memory;
use super::sentinel::SentinelClient;
use super::session::{Script, Session};
use super::tie::Tie;
use super::{Inner, ticks};
use crate::group::GroupName;
use crate::store::Session as Asked;

/// What the URL means.
#[derive(Clone)]
pub(super) enum Servers {
    /// One server at a time.
    One(Arc<dyn Client>),
    /// The nodes of a cluster, and how to get to them.
    Cluster(Arc<Cluster>, Connector),
}

/// One elector's.
pub(super) struct Ties {
    pub(super) leases: Tie,
    /// If replicas are waited for, which blocks a connection: for what is to wait for nobody's.
    pub(super) aside: Option<Tie>,
    pub(super) locks: Tie,
    pub(super) ticks: Tie,
    pub(super) fences: Tie,
    /// Of a cluster.
    pub(super) map: Option<Arc<Map>>,
    /// Of the doctor.
    pub(super) memory: Memory,
}

impl Servers {
    pub(super) fn at(place: Place, connector: Connector) -> Self {
        let of_server = move |address| connector.to(address);
        match place {
            Place::Server(address) => Self::One(of_server(address)),
            Place::Sentinels(sentinels) => Self::One(Arc::new(SentinelClient::new(sentinels, Box::new(of_server)))),
            Place::Cluster(cluster) => Self::Cluster(Arc::new(cluster), connector),
        }
    }
}

impl Ties {
    /// Nothing is opened before it is needed.
    pub(super) fn new(inner: &Inner, fences: Arc<Script>, asked: Asked) -> Self {
        let script = |text: &Arc<str>| Arc::new(Script::new(Arc::clone(text)));
        let [leases, locks, ticks] = [&inner.script, &inner.lock_script, &ticks::TEXT.into()].map(script);
        let (announcer, timeout) = (asked.announcer.clone(), asked.timeout);
        let aside = (inner.options.replicas > 0).then(|| Arc::clone(&leases));
        match &inner.servers {
            Servers::One(client) => {
                let beside =
                    |script| Tie::Server(Session::beside(Arc::clone(client), script, announcer.clone(), timeout));
                let aside = aside.map(beside);
                let [locks, ticks, fences] = [locks, ticks, fences].map(beside);
                let leases = Tie::Server(Session::new(Arc::clone(client), leases, &inner.keys, asked));
                Self { leases, aside, locks, ticks, fences, map: None, memory: Memory::default() }
            }
            Servers::Cluster(cluster, connector) => {
                let map = Arc::new(Map::new(Arc::clone(cluster), *connector, announcer.clone(), timeout));
                let nodes = |script| Nodes::new(Arc::clone(&map), script, announcer.clone(), timeout);
                let beside = |script| Tie::Cluster(nodes(script));
                let aside = aside.map(beside);
                let [locks, ticks, fences] = [locks, ticks, fences].map(beside);
                let anywhere = connector.wherever(Arc::clone(&map) as _);
                let listener = Session::new(anywhere, Arc::clone(&leases), &inner.keys, asked);
                let leases = Tie::Cluster(nodes(leases).listening(listener));
                Self { leases, aside, locks, ticks, fences, map: Some(map), memory: Memory::default() }
            }
        }
    }

    /// From now on that is what its elector does for these groups.
    pub(super) fn tell(&self, groups: &BTreeMap<GroupName, Vec<String>>) {
        if let Some(elector) = self.leases.listener().and_then(Session::elector) {
            elector.told.change(groups);
        }
    }
}
