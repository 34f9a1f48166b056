//! A primary and its replicas: what is written to the one gets to the others later, in order, and is lost to them on the way
//! if the connection ends.
//!
//! Part of a world, which hands back each [`Turn`] when its time has come. What replicates is what a command has changed, as
//! in Redis; the servers themselves are of the world's kind. A replica that becomes the primary has what it got, and nothing
//! else; a primary that was cut off, or came back, goes on to take writes from whoever reaches it, and loses them when it
//! becomes a replica.

mod failover;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::time::Duration;

use super::clock::Clock;
use super::rng::Rng;

pub use failover::Upset;

/// What a node of a cluster runs.
pub trait Server {
    /// All that it holds.
    type Memory: Clone + Debug;
    /// What one command has changed.
    type Write: Clone + Debug;

    /// What it holds now.
    fn memory(&self) -> Self::Memory;
    /// It holds this from now on, and nothing else.
    fn load(&mut self, memory: Self::Memory);
    /// It holds nothing.
    fn lose_all(&mut self);
    /// What a command has changed elsewhere changes here.
    fn apply(&mut self, write: Self::Write);
    /// It is called so from now on.
    fn identify(&mut self, identity: u32);
}

/// Whether a node takes what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// At once.
    Up,
    /// What arrives is lost.
    Down,
    /// What arrives waits until then.
    StandsStill(u64),
}

/// One server, with what it is to the others. Times are nanoseconds of true time.
#[derive(Debug)]
pub struct Node<S> {
    /// What runs on it.
    pub server: S,
    /// Its wall clock.
    pub clock: Clock,
    /// Whether it takes what arrives.
    pub state: State,
    /// Grows when all connections of clients die.
    pub connection: u32,
    /// It takes writes.
    pub is_primary: bool,
    /// Its writes, or how many of its primary's it has got.
    offset: u64,
    /// As a replica: which connection to its primary.
    link: u32,
    /// When what was sent to it last arrives; nothing passes that.
    stream_end: u64,
    /// What is sent to it arrives no earlier.
    lags_until: u64,
    /// It has all that was written to the primary of that time before then.
    as_of: u64,
    /// Another one became the primary then, and this one does not know.
    superseded: Option<u64>,
    identity: u32,
}

/// What is sent to a replica.
#[derive(Debug, Clone)]
pub enum Stream<W, M> {
    /// What one command has changed.
    Write(W),
    /// Everything, at the begin of a connection.
    All(M),
}

/// A part of a stream, on its way.
#[derive(Debug)]
pub struct Part<W, M> {
    from: usize,
    replica: usize,
    link: u32,
    /// How much the replica has once it has this.
    offset: u64,
    /// When it was written, if that was to the primary of that time.
    as_of: Option<u64>,
    what: Stream<W, M>,
}

/// What happens to a cluster later.
#[derive(Debug)]
pub enum Turn<W, M> {
    /// A part of the stream arrives.
    Arrives(Box<Part<W, M>>),
    /// A primary hears how much a replica has.
    Acked {
        /// Who hears it,
        primary: usize,
        /// as long as it is called so;
        identity: u32,
        /// who has it,
        replica: usize,
        /// and how much.
        offset: u64,
    },
    /// Nobody waits for replicas any more to have what the answer of this number tells of.
    WaitOver(u64),
    /// A replica looks for the primary.
    Attaches(usize),
    /// A replica becomes the primary.
    Promoted(usize),
    /// A server that died is there again: as a replica, or as the primary that it was.
    Returns {
        /// Which one.
        node: usize,
        /// As what.
        as_primary: bool,
    },
    /// A primary hears that it is none any more.
    Demoted(usize),
    /// The network is whole again.
    Heals,
    /// A client looks for the primary.
    Moves(usize),
    /// The second half of a flap: the old primary is put back.
    FlapsBack(usize),
}

/// What was written within this time is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// From then on,
    pub since: u64,
    /// and until then,
    pub until: u64,
    /// to this node alone, beside the primary of that time; or to the primary.
    pub of: Option<usize>,
}

/// An answer that is held back until enough replicas have what it tells of.
#[derive(Debug)]
struct Held<R> {
    id: u64,
    node: usize,
    offset: u64,
    /// The replicas that have it, one bit each.
    have: u64,
    answer: R,
}

/// What separates some nodes, with some clients, from the others.
#[derive(Debug, Clone)]
struct Partition {
    nodes: Vec<bool>,
    clients: Vec<bool>,
}

/// All nodes, the ways between them, and which one each client asks.
#[derive(Debug)]
pub struct Cluster<S: Server, R> {
    /// The nodes.
    pub nodes: Vec<Node<S>>,
    /// The one that clients should ask.
    pub primary: usize,
    /// The one that each client asks.
    pub targets: Vec<usize>,
    /// The one that each replica gets its stream from.
    attached: Vec<Option<usize>>,
    /// What is to happen, to be taken by the world: true time, and what.
    pub planned: Vec<(u64, TurnOf<S>)>,
    /// Answers that may go out, and whether enough replicas have what they tell of; to be taken by the world.
    pub confirmed: Vec<(usize, R, bool)>,
    /// What was lost, to be taken by the world.
    pub losses: Vec<Loss>,
    /// What happened, to be taken by the world.
    pub told: Vec<String>,
    wait: usize,
    ttl: Duration,
    /// A server is known by its run alone.
    by_run_alone: bool,
    partition: Option<Partition>,
    /// A promotion is under way.
    promoting: bool,
    identities: u32,
    held: Vec<Held<R>>,
    waits: u64,
}

/// What happens later to a cluster of such servers.
pub type TurnOf<S> = Turn<<S as Server>::Write, <S as Server>::Memory>;
type What<S> = Stream<<S as Server>::Write, <S as Server>::Memory>;

impl<S: Server, R> Cluster<S, R> {
    /// These servers, the first of them the primary, and so many clients. `wait`: an answer that asks for it is held back until
    /// so many replicas have what it tells of. `ttl`: what the length of everything is measured by.
    #[must_use]
    pub fn new(servers: Vec<(S, Clock)>, clients: usize, wait: usize, ttl: Duration, by_run_alone: bool) -> Self {
        let node = |(index, (mut server, clock)): (usize, (S, Clock))| {
            let identity = index as u32 + 1;
            server.identify(identity);
            Node {
                server,
                clock,
                state: State::Up,
                connection: 0,
                is_primary: index == 0,
                offset: 0,
                // All are connected, and have nothing.
                link: 0,
                stream_end: 0,
                lags_until: 0,
                as_of: 0,
                superseded: None,
                identity,
            }
        };
        let nodes: Vec<_> = servers.into_iter().enumerate().map(node).collect();
        Self {
            primary: 0,
            targets: vec![0; clients],
            planned: Vec::new(),
            confirmed: Vec::new(),
            losses: Vec::new(),
            told: Vec::new(),
            wait,
            ttl,
            by_run_alone,
            partition: None,
            promoting: false,
            identities: nodes.len() as u32,
            held: Vec::new(),
            waits: 0,
            attached: vec![Some(0); nodes.len()],
            nodes,
        }
    }

    /// The node that clients should ask.
    pub fn main(&mut self) -> &mut Node<S> {
        &mut self.nodes[self.primary]
    }

    /// Whether nothing gets from a client to a node, or back.
    #[must_use]
    pub fn is_cut(&self, client: usize, node: usize) -> bool {
        self.partition.as_ref().is_some_and(|partition| partition.clients[client] != partition.nodes[node])
    }

    fn are_cut(&self, one: usize, other: usize) -> bool {
        self.partition.as_ref().is_some_and(|partition| partition.nodes[one] != partition.nodes[other])
    }

    /// A node has executed a command: its replicas are told what that has changed.
    pub fn written(&mut self, now: u64, node: usize, rng: &mut Rng, write: impl Fn(&S) -> S::Write) {
        if self.nodes.len() == 1 {
            return;
        }
        self.nodes[node].offset += 1;
        let as_of = (node == self.primary).then_some(now);
        for replica in 0..self.nodes.len() {
            if replica != node && self.attached[replica] == Some(node) && !self.are_cut(node, replica) {
                let what = Stream::Write(write(&self.nodes[node].server));
                let takes = 50_000 + rng.around(Duration::from_micros(500));
                self.stream(now, (node, replica), as_of, what, takes);
            }
        }
    }

    fn stream(&mut self, now: u64, (from, replica): (usize, usize), as_of: Option<u64>, what: What<S>, takes: u64) {
        let offset = self.nodes[from].offset;
        let to = &mut self.nodes[replica];
        let at = (now + takes).max(to.stream_end).max(to.lags_until);
        to.stream_end = at;
        let part = Part { from, replica, link: to.link, offset, as_of, what };
        self.planned.push((at, Turn::Arrives(Box::new(part))));
    }

    /// Whether answers may have to wait.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.wait > 0
    }

    /// Holds an answer back until enough replicas have what it tells of, or until `patience` is over.
    pub fn hold(&mut self, now: u64, node: usize, answer: R, patience: u64) {
        self.waits += 1;
        let (id, offset) = (self.waits, self.nodes[node].offset);
        self.held.push(Held { id, node, offset, have: 0, answer });
        self.planned.push((now + patience, Turn::WaitOver(id)));
    }

    /// Something that was planned happens.
    pub fn turn(&mut self, now: u64, rng: &mut Rng, turn: TurnOf<S>) {
        match turn {
            Turn::Arrives(part) => {
                if self.nodes[part.replica].link == part.link && !self.are_cut(part.from, part.replica) {
                    self.arrives(now, rng, *part);
                }
            }
            Turn::Acked { primary, identity, replica, offset } => {
                if let State::StandsStill(until) = self.nodes[primary].state {
                    self.planned.push((until, Turn::Acked { primary, identity, replica, offset }));
                } else if self.nodes[primary].identity == identity && !self.are_cut(primary, replica) {
                    self.acked(primary, replica, offset);
                }
            }
            Turn::WaitOver(id) => {
                let Some(place) = self.held.iter().position(|held| held.id == id) else { return };
                if let State::StandsStill(until) = self.nodes[self.held[place].node].state {
                    self.planned.push((until, Turn::WaitOver(id)));
                } else {
                    let held = self.held.remove(place);
                    self.confirmed.push((held.node, held.answer, false));
                }
            }
            other => self.changes(now, rng, other),
        }
    }

    fn arrives(&mut self, now: u64, rng: &mut Rng, part: Part<S::Write, S::Memory>) {
        let Part { from, replica, offset, as_of, what, .. } = part;
        let node = &mut self.nodes[replica];
        match what {
            Stream::Write(write) => node.server.apply(write),
            Stream::All(memory) => node.server.load(memory),
        }
        node.offset = offset;
        node.as_of = as_of.unwrap_or(node.as_of);
        let identity = self.nodes[from].identity;
        let at = now + 50_000 + rng.around(Duration::from_micros(300));
        self.planned.push((at, Turn::Acked { primary: from, identity, replica, offset }));
    }

    fn acked(&mut self, primary: usize, replica: usize, offset: u64) {
        let wait = self.wait as u32;
        for held in self.held.iter_mut().filter(|held| held.node == primary && held.offset <= offset) {
            held.have |= 1 << replica;
        }
        let done = |held: &mut Held<R>| held.node == primary && held.have.count_ones() >= wait;
        let done: Vec<_> = self.held.extract_if(.., done).collect();
        self.confirmed.extend(done.into_iter().map(|held| (held.node, held.answer, true)));
    }

    /// All connections of clients die, and with them what they wait for.
    fn drop_clients(&mut self, node: usize) {
        self.nodes[node].connection += 1;
        self.held.retain(|held| held.node != node);
    }
}
