//! What happens to servers while both clients are called.

use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::caller::{Caller, Seen};
use super::{CLIENTS, Plan};
use crate::process::eventually;
use crate::redis::{Proxy, RedisCluster, RedisServer, Watched};

/// How long a server is away: longer than several calls may take.
const AWAY: Duration = Duration::from_millis(1500);
/// How long after the end of a fault something of it may still come.
const SETTLE: Duration = Duration::from_millis(1000);
/// More calls than are made while a node is replaced.
const KEYS: usize = 4000;

#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The server is killed, and comes back empty: what is executed then was sent once more.
    Death,
    /// The server stands still: what it has received it executes when it goes on, whoever sent it.
    Stop,
    /// Everything is lost on the way: what is executed of that was sent once more.
    BlackHole,
    /// The server ends all connections.
    Cut,
    /// The primary is killed, and sentinels name another one. What was under way may have been executed.
    Sentinel,
    /// A primary of a cluster is killed, and its replica takes its place. What was under way may have been executed.
    Cluster,
}

/// And how often each happens.
pub(super) fn all(plan: &Plan) -> [(Fault, usize); 6] {
    let (rounds, fleets) = (plan.rounds, plan.fleets);
    [
        (Fault::Death, rounds),
        (Fault::Stop, rounds),
        (Fault::BlackHole, rounds),
        (Fault::Cut, rounds),
        (Fault::Sentinel, fleets),
        (Fault::Cluster, fleets),
    ]
}

impl Fault {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Death => "kill -9, restart: back after",
            Self::Stop => "SIGSTOP, SIGCONT: back after",
            Self::BlackHole => "black hole: back after",
            Self::Cut => "CLIENT KILL: back after",
            Self::Sentinel => "sentinels, kill -9: another primary in",
            Self::Cluster => "cluster, kill -9: another primary in",
        }
    }

    /// Lets it happen once, to both.
    pub(super) fn happen(self) -> Result<[Seen; 2], Box<dyn Error>> {
        match self {
            Self::Sentinel => sentinel(),
            Self::Cluster => cluster(),
            single => single.happen_to_one(),
        }
    }

    fn happen_to_one(self) -> Result<[Seen; 2], Box<dyn Error>> {
        let mut redis = RedisServer::start(&[]).ok_or("there is no Redis server to measure on")?;
        let proxies = CLIENTS.map(|_| Proxy::before(&redis));
        let url = |which: usize| if matches!(self, Self::BlackHole) { proxies[which].url() } else { redis.url() };
        let callers = both(|which| Caller::begin(CLIENTS[which], &url(which), numbered(which)))?;
        let ended = match self {
            Self::Death => {
                redis.kill();
                sleep(AWAY);
                // How long it takes to start is the same for both.
                let ended = Instant::now();
                redis.start_again();
                ended
            }
            Self::Stop => {
                redis.stop();
                sleep(AWAY);
                redis.cont();
                Instant::now()
            }
            Self::BlackHole => {
                proxies.iter().for_each(Proxy::black_hole);
                sleep(AWAY);
                proxies.iter().for_each(Proxy::heal);
                Instant::now()
            }
            Self::Cut | Self::Sentinel | Self::Cluster => {
                redis.kill_clients();
                Instant::now()
            }
        };
        until_back(&callers, ended);
        let mut client = redis.client()?;
        Ok(callers.map(|caller| caller.end(ended, |key| client.command(&["EXISTS", &lock(key)]).unwrap_or(false))))
    }
}

fn sentinel() -> Result<[Seen; 2], Box<dyn Error>> {
    let mut watched = Watched::start(&[], &[], None).ok_or("there is no Redis server to measure on")?;
    let callers = both(|which| Caller::begin(CLIENTS[which], &watched.url(), numbered(which)))?;
    watched.servers[0].kill();
    let ended = Instant::now();
    let new = watched.until_promoted(0);
    until_back(&callers, ended);
    let mut client = watched.servers[new.server].client()?;
    Ok(callers.map(|caller| caller.end(ended, |key| client.command(&["EXISTS", &lock(key)]).unwrap_or(false))))
}

fn cluster() -> Result<[Seen; 2], Box<dyn Error>> {
    let options = [("cluster-require-full-coverage", "no")];
    let mut cluster = RedisCluster::start(&options).ok_or("there is no Redis server to measure on")?;
    // Only those of the node that is killed: calls on others tell nothing.
    let last_slot = 16_384 / 3;
    let mut asked = cluster.node(1).client()?;
    let mut of_first = |which: usize| {
        let names = (0..).map(|n| format!("{which}-{n}"));
        let is_of_first = |name: &String| {
            asked.command::<u16>(&["CLUSTER", "KEYSLOT", &lock(name)]).is_ok_and(|slot| slot < last_slot)
        };
        names.filter(is_of_first).take(KEYS).collect::<Vec<_>>().into_iter()
    };
    let mut keys = [of_first(0), of_first(1)];
    let callers = both(|which| {
        let mut keys = std::mem::take(&mut keys[which]);
        Caller::begin(CLIENTS[which], &cluster.url(), move || keys.next().expect("there are more keys than calls"))
    })?;
    cluster.node_mut(0).kill();
    let ended = Instant::now();
    until_back(&callers, ended);
    let mut client = cluster.node(3).client()?;
    Ok(callers.map(|caller| caller.end(ended, |key| client.command(&["EXISTS", &lock(key)]).unwrap_or(false))))
}

fn both(mut begin: impl FnMut(usize) -> Result<Caller, Box<dyn Error>>) -> Result<[Caller; 2], Box<dyn Error>> {
    Ok([begin(0)?, begin(1)?])
}

fn until_back(callers: &[Caller], ended: Instant) {
    eventually("both are back", || callers.iter().all(|caller| caller.is_back(ended)).then_some(()));
    // Whatever comes late comes now.
    sleep(SETTLE);
}

fn numbered(which: usize) -> impl FnMut() -> String + Send + 'static {
    let mut n = 0;
    move || {
        n += 1;
        format!("{which}-{n}")
    }
}

fn lock(key: &str) -> String {
    format!("_lock:{key}")
}
