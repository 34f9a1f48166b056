//! A TCP proxy that a test controls: what it does to bytes and connections, it does from the call on.
//!
//! Bytes go in chunks, as they were read: a request that was written at once is one, and so is its reply.

mod carry;
mod rules;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::watch;

pub use rules::Way;

use super::port::Port;
use super::server::RedisServer;
use crate::process::PATIENCE;
use rules::Rules;

/// A proxy before one server. Dropping it ends all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    runtime: Runtime,
}

#[derive(Debug)]
struct State {
    /// Where new connections lead to.
    server: watch::Sender<SocketAddr>,
    rules: watch::Sender<Rules>,
    listening: watch::Sender<bool>,
    /// The numbers of the connections.
    connections: watch::Sender<BTreeSet<u64>>,
    /// What came on connections that were held then.
    held: [watch::Sender<Vec<u8>>; 2],
    /// How many chunks were kept back and are not delivered yet.
    kept: [watch::Sender<usize>; 2],
    /// How many chunks were swallowed.
    lost: [watch::Sender<u64>; 2],
}

impl Proxy {
    /// A proxy before the server, also after that was restarted.
    ///
    /// # Panics
    /// If the system has no port or thread for it.
    #[must_use]
    pub fn before(server: &RedisServer) -> Self {
        Self::to(server.address())
    }

    /// A proxy before whatever listens there.
    ///
    /// # Panics
    /// If the system has no port or thread for it.
    #[must_use]
    pub fn to(server: SocketAddr) -> Self {
        let port = Port::reserve().expect("there is a free port");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread can be started");
        let state = Arc::new(State {
            server: watch::Sender::new(server),
            rules: watch::Sender::default(),
            listening: watch::Sender::default(),
            connections: watch::Sender::default(),
            held: Default::default(),
            kept: Default::default(),
            lost: Default::default(),
        });
        let address = port.address();
        runtime.spawn(carry::serve(port, Arc::clone(&state)));
        let proxy = Self { address, state, runtime };
        proxy.wait(&proxy.state.listening, "it listens", |listening| *listening);
        proxy
    }

    /// Where to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the server's database 0 through it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// How many connections it carries.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state.connections.borrow().len()
    }

    fn wait<T>(&self, watched: &watch::Sender<T>, what: &str, wanted: impl FnMut(&T) -> bool) {
        let mut watched = watched.subscribe();
        let waiting = async { tokio::time::timeout(PATIENCE, watched.wait_for(wanted)).await.is_ok() };
        assert!(self.runtime.block_on(waiting), "the proxy waited in vain until {what}");
    }
}

/// Faults of connections.
impl Proxy {
    /// Ends all connections, and returns when they have ended. New ones are accepted.
    ///
    /// # Panics
    /// If that takes very long.
    pub fn cut(&self) {
        let mut last = 0;
        self.state.rules.send_modify(|rules| {
            last = rules.accepted;
            rules.cut = last;
        });
        let over = |open: &BTreeSet<u64>| open.first().is_none_or(|first| *first > last);
        self.wait(&self.state.connections, "all connections have ended", over);
    }

    /// New connections lead to another server; those that there are stay as they are.
    pub fn redirect(&self, server: &RedisServer) {
        self.state.server.send_replace(server.address());
    }

    /// Refuses new connections, and returns when it does. Those that there are stay.
    ///
    /// # Panics
    /// If that takes very long.
    pub fn refuse(&self) {
        self.state.rules.send_modify(|rules| rules.open = false);
        self.wait(&self.state.listening, "it listens no more", |listening| !listening);
    }

    /// Ends [`refuse`](Self::refuse), and returns when connections are accepted.
    ///
    /// # Panics
    /// If that takes very long.
    pub fn accept(&self) {
        self.state.rules.send_modify(|rules| rules.open = true);
        self.wait(&self.state.listening, "it listens", |listening| *listening);
    }
}

/// Faults of bytes.
impl Proxy {
    /// Everything arrives so much later.
    pub fn delay(&self, way: Way, delay: Duration) {
        self.change(way, |course| course.delay = delay);
    }

    /// Nothing arrives any more, also on new connections: a network that loses everything. A direction of a connection that
    /// has lost something stays lost, even after [`heal`](Self::heal).
    pub fn swallow(&self, way: Way) {
        self.change(way, |course| course.swallows = true);
    }

    /// [`swallow`](Self::swallow) in both directions.
    pub fn black_hole(&self) {
        self.swallow(Way::ToServer);
        self.swallow(Way::ToClient);
    }

    /// The `n`th chunk from now on does not arrive, counted over all connections from 1, nor does what follows it on its
    /// connection.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn swallow_nth(&self, way: Way, n: u64) {
        assert!(n > 0, "the first is number 1");
        self.change(way, |course| course.swallows_in = Some(n));
    }

    /// Waits until `n` chunks in all were swallowed, since it began.
    ///
    /// # Panics
    /// If that takes very long.
    pub fn until_lost(&self, way: Way, n: u64) {
        self.wait(&self.state.lost[way as usize], &format!("{n} chunks are lost"), |lost| *lost >= n);
    }

    /// Keeps what comes on the present connections back, also when their senders have closed them, until
    /// [`release`](Self::release). New connections are carried.
    pub fn hold(&self, way: Way) {
        self.state.rules.send_modify(|rules| rules.course(way).held = rules.accepted);
    }

    /// The same for new connections too: a network that is interrupted, and delivers late.
    pub fn stall(&self, way: Way) {
        self.change(way, |course| course.held = u64::MAX);
    }

    /// Delivers what was kept back, in order, and returns when that is done.
    ///
    /// # Panics
    /// If that takes very long.
    pub fn release(&self, way: Way) {
        self.change(way, |course| {
            course.held = 0;
            self.state.held[way as usize].send_replace(Vec::new());
        });
        self.wait(&self.state.kept[way as usize], "what was kept back is delivered", |kept| *kept == 0);
    }

    /// Waits until bytes that contain `wanted` are kept back.
    ///
    /// # Panics
    /// If that takes very long.
    pub fn until_held(&self, way: Way, wanted: &str) {
        let contains = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(wanted);
        self.wait(&self.state.held[way as usize], &format!("`{wanted}` is kept back"), contains);
    }

    /// Ends all faults; connections that have lost something stay as they are.
    ///
    /// # Panics
    /// If that takes very long.
    pub fn heal(&self) {
        for way in [Way::ToServer, Way::ToClient] {
            self.change(way, |course| *course = rules::Course::default());
            self.release(way);
        }
        self.accept();
    }

    fn change(&self, way: Way, change: impl FnOnce(&mut rules::Course)) {
        self.state.rules.send_modify(|rules| change(rules.course(way)));
    }
}

impl State {
    /// A new connection, with its number.
    fn begin(&self) -> u64 {
        let mut number = 0;
        self.rules.send_if_modified(|rules| {
            rules.accepted += 1;
            number = rules.accepted;
            false
        });
        self.connections.send_if_modified(|connections| connections.insert(number));
        number
    }

    fn end(&self, number: u64) {
        self.connections.send_if_modified(|connections| connections.remove(&number));
    }

    /// Notes a chunk that is kept back, for as long as the returned value lives.
    fn note_held(self: &Arc<Self>, way: Way, number: u64, chunk: &[u8]) -> Option<Kept> {
        let mut kept = None;
        self.rules.send_if_modified(|rules| {
            // Under this lock: what a release takes away is what was held before it.
            if number <= rules.course(way).held {
                self.held[way as usize].send_modify(|held| held.extend(chunk));
                self.kept[way as usize].send_modify(|chunks| *chunks += 1);
                kept = Some(Kept { way, state: Arc::clone(self) });
            }
            false
        });
        kept
    }
}

/// A chunk that is kept back, and then delivered or lost.
struct Kept {
    way: Way,
    state: Arc<State>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.state.kept[self.way as usize].send_modify(|chunks| *chunks -= 1);
    }
}
