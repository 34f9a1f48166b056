//! All ties of one elector to the store, each with connections of its own: no lease ever waits behind anything else.

use std::sync::Arc;

use super::address::{Cluster, Place};
use super::cluster::{Map, Nodes};
use super::connection::Client;
use super::doctor::Memory;
use super::fred::FredClient;
use super::sentinel::SentinelClient;
use super::session::{Script, Session};
use super::tie::Tie;
use super::{Inner, ticks};
use crate::store::Session as Asked;

/// What the URL means.
#[derive(Clone)]
pub(super) enum Servers {
    /// One server at a time.
    One(Arc<dyn Client>),
    /// The nodes of a cluster.
    Cluster(Arc<Cluster>),
}

/// One elector's.
pub(super) struct Ties {
    pub(super) leases: Tie,
    pub(super) locks: Tie,
    pub(super) ticks: Tie,
    pub(super) fences: Tie,
    /// Of a cluster.
    pub(super) map: Option<Arc<Map>>,
    /// Of the doctor.
    pub(super) memory: Memory,
}

impl Servers {
    pub(super) fn at(place: Place) -> Self {
        let of_server = |address| Arc::new(FredClient::new(address)) as Arc<dyn Client>;
        match place {
            Place::Server(address) => Self::One(of_server(address)),
            Place::Sentinels(sentinels) => Self::One(Arc::new(SentinelClient::new(sentinels, Box::new(of_server)))),
            Place::Cluster(cluster) => Self::Cluster(Arc::new(cluster)),
        }
    }
}

impl Ties {
    /// Nothing is opened before it is needed.
    pub(super) fn new(inner: &Inner, fences: Arc<Script>, asked: Asked) -> Self {
        let script = |text: &Arc<str>| Arc::new(Script::new(Arc::clone(text)));
        let [leases, locks, ticks] = [&inner.script, &inner.lock_script, &ticks::TEXT.into()].map(script);
        let (announcer, timeout) = (asked.announcer.clone(), asked.timeout);
        match &inner.servers {
            Servers::One(client) => {
                let beside =
                    |script| Tie::Server(Session::beside(Arc::clone(client), script, announcer.clone(), timeout));
                let [locks, ticks, fences] = [locks, ticks, fences].map(beside);
                let leases = Tie::Server(Session::new(Arc::clone(client), leases, &inner.keys, asked));
                Self { leases, locks, ticks, fences, map: None, memory: Memory::default() }
            }
            Servers::Cluster(cluster) => {
                let map = Arc::new(Map::new(Arc::clone(cluster), announcer.clone(), timeout));
                let nodes = |script| Nodes::new(Arc::clone(&map), script, announcer.clone(), timeout);
                let [locks, ticks, fences] = [locks, ticks, fences].map(|script| Tie::Cluster(nodes(script)));
                let anywhere = Arc::new(FredClient::wherever(Arc::clone(&map) as _));
                let listener = Session::new(anywhere, Arc::clone(&leases), &inner.keys, asked);
                let leases = Tie::Cluster(nodes(leases).listening(listener));
                Self { leases, locks, ticks, fences, map: Some(map), memory: Memory::default() }
            }
        }
    }
}
