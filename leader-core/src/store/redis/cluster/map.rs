//! What one elector knows of its cluster: which node has which slot.
//!
//! It is asked anew whenever something has contradicted it, and for as long as a node that it names cannot be used: with the
//! first answer that names another one, whoever waits for its next attempt need not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::super::address::{Address, Cluster, Server};
use super::super::client::Connector;
use super::super::connection::{Client, Failure, Pending, Request, Whereabouts};
use super::super::session::{left, patience};
use super::first::first_of;
use super::slots::Slots;
use crate::store::Announcer;

/// From one round of questions to the next, at least.
const LEAST: Duration = Duration::from_millis(100);
/// And at most, while a node cannot be used.
const MOST: Duration = Duration::from_millis(500);
/// So many nodes of those that are known are asked in a round, before those in the URL are.
const ASKED: usize = 5;
/// What nobody has complained about for so long is nobody's trouble any more.
const FORGOTTEN: Duration = Duration::from_secs(60);

pub(in super::super) struct Map(Arc<Shared>);

struct Shared {
    cluster: Arc<Cluster>,
    connector: Connector,
    announcer: Announcer,
    /// The operation time-out.
    timeout: Duration,
    known: watch::Sender<Known>,
    course: Mutex<Course>,
    /// A round is wanted at once.
    wanted: Notify,
}

struct Known {
    slots: Arc<Slots>,
    /// How many rounds of questions there were.
    rounds: u64,
    /// What the last one came to: who has answered.
    outcome: Result<Server, Failure>,
}

/// The asking.
#[derive(Default)]
struct Course {
    task: Option<JoinHandle<()>>,
    last: Option<Instant>,
    wanted: bool,
    /// What cannot be used, with the last complaint.
    doubts: HashMap<Doubt, Instant>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Doubt {
    Node(Server),
    Slot(u16),
}

impl Map {
    /// Nothing is asked before it is needed.
    pub(in super::super) fn new(
        cluster: Arc<Cluster>,
        connector: Connector,
        announcer: Announcer,
        timeout: Duration,
    ) -> Self {
        let outcome = Err(Failure::Unreachable("no node of the cluster was asked yet".to_owned()));
        let known = watch::Sender::new(Known { slots: Arc::new(Slots::none()), rounds: 0, outcome });
        let course = Mutex::default();
        Self(Arc::new(Shared { cluster, connector, announcer, timeout, known, course, wanted: Notify::new() }))
    }

    /// Makes links to this node.
    pub(in super::super) fn client_of(&self, node: Server) -> Arc<dyn Client> {
        self.0.connector.to(self.0.cluster.access.to(node))
    }

    /// Who has this slot. If nobody is known to, that is asked.
    pub(super) async fn owner(&self, slot: u16, until: Instant) -> Result<Server, Failure> {
        if let Some(owner) = self.0.known.borrow().slots.owner(slot) {
            return Ok(owner.clone());
        }
        self.doubt(Doubt::Slot(slot));
        let known = self.asked_anew(until).await?;
        let owner = known.owner(slot).cloned();
        owner.ok_or_else(|| Failure::Unreachable(format!("no node of the cluster has slot {slot}")))
    }

    /// A node says that this slot is that one's.
    pub(super) fn moved(&self, slot: u16, to: &Server) {
        self.0.known.send_if_modified(|known| {
            let news = known.slots.owner(slot) != Some(to);
            if news {
                known.slots = Arc::new(known.slots.with(slot, to.clone()));
            }
            news
        });
        self.refresh();
    }

    /// This node has slots, as far as is known.
    pub(super) fn has_slots(&self, node: &Server) -> bool {
        self.0.known.borrow().slots.has_slots(node)
    }

    /// Resolves when this node is known to have no slots any more.
    pub(super) async fn replaced(&self, node: &Server) {
        let mut known = self.0.known.subscribe();
        // The map is there for as long as whoever asks.
        let _ = known.wait_for(|known| !known.slots.has_slots(node)).await;
    }

    /// This node cannot be used.
    pub(super) fn suspect(&self, node: &Server) {
        self.doubt(Doubt::Node(node.clone()));
    }

    /// It can.
    pub(super) fn trust(&self, node: &Server) {
        let mut course = self.0.course();
        if !course.doubts.is_empty() {
            course.doubts.remove(&Doubt::Node(node.clone()));
        }
    }

    fn doubt(&self, doubt: Doubt) {
        self.0.course().doubts.insert(doubt, Instant::now());
        self.refresh();
    }

    /// Has it asked, soon.
    fn refresh(&self) {
        let mut course = self.0.course();
        course.wanted = true;
        // Its runtime may have ended.
        if course.task.as_ref().is_none_or(JoinHandle::is_finished) {
            course.task = Some(tokio::spawn(Arc::clone(&self.0).ask()));
        } else {
            self.0.wanted.notify_one();
        }
    }

    /// What the next answer says.
    pub(in super::super) async fn asked_anew(&self, until: Instant) -> Result<Arc<Slots>, Failure> {
        let mut known = self.0.known.subscribe();
        let before = known.borrow().rounds;
        self.refresh();
        let round = timeout(left(until)?, known.wait_for(|known| known.rounds > before)).await;
        let Ok(Ok(known)) = round else { return Err(Failure::TimedOut) };
        known.outcome.clone().map(|_| Arc::clone(&known.slots))
    }
}

/// Any node, for what each of them can do: it is one that has just answered.
impl Whereabouts for Map {
    fn find(&self, timeout: Duration) -> Pending<'_, Arc<Address>> {
        Box::pin(async move {
            self.asked_anew(Instant::now() + timeout).await?;
            let outcome = self.0.known.borrow().outcome.clone();
            Ok(Arc::new(self.0.cluster.access.to(outcome?)))
        })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if let Some(task) = self.0.course().task.take() {
            task.abort();
        }
    }
}

impl Shared {
    fn course(&self) -> MutexGuard<'_, Course> {
        // Held for a look or an assignment only: a poisoned one is whole.
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for as long as there is a reason to.
    async fn ask(self: Arc<Self>) {
        let mut wait = LEAST;
        loop {
            let last = self.course().last;
            if let Some(last) = last {
                sleep(LEAST.saturating_sub(last.elapsed())).await;
            }
            {
                let mut course = self.course();
                course.last = Some(Instant::now());
                course.wanted = false;
            }
            let outcome = self.round().await;
            self.note(outcome);
            {
                let mut course = self.course();
                let slots = Arc::clone(&self.known.borrow().slots);
                course.doubts.retain(|doubt, last| doubt.stands(&slots) && last.elapsed() < FORGOTTEN);
                if course.doubts.is_empty() && !course.wanted {
                    course.task = None;
                    return;
                }
            }
            tokio::select! {
                () = sleep(jittered(wait)) => wait = (wait * 2).min(MOST),
                () = self.wanted.notified() => {}
            }
        }
    }

    /// Asks nodes until one answers.
    async fn round(&self) -> Result<(Server, Slots), Failure> {
        let slots = Arc::clone(&self.known.borrow().slots);
        let mut nodes: Vec<Server> = slots.nodes().cloned().collect();
        // Not always the same: each may be cut off from the others, and know nothing new.
        fastrand::shuffle(&mut nodes);
        nodes.truncate(ASKED);
        let mut named = self.cluster.servers.clone();
        fastrand::shuffle(&mut named);
        named.retain(|server| !nodes.contains(server));
        nodes.extend(named);
        let patience = patience(self.timeout);
        let attempts = nodes.into_iter().map(|node| slots_at(self.cluster.access.to(node), self.connector, patience));
        timeout(patience, first_of(attempts)).await.unwrap_or(Err(Failure::TimedOut))
    }

    fn note(&self, outcome: Result<(Server, Slots), Failure>) {
        let mut news = false;
        self.known.send_modify(|known| {
            known.rounds += 1;
            known.outcome = outcome.map(|(by, slots)| {
                news = !known.slots.is_empty() && slots.differ_from(&known.slots);
                known.slots = Arc::new(slots);
                by
            });
        });
        if news {
            self.announcer.gap();
        }
    }
}

impl Doubt {
    /// What the map says now does not settle it.
    fn stands(&self, slots: &Slots) -> bool {
        match self {
            Self::Node(node) => slots.has_slots(node),
            Self::Slot(slot) => slots.owner(*slot).is_none(),
        }
    }
}

/// What this node knows.
async fn slots_at(address: Address, connector: Connector, patience: Duration) -> Result<(Server, Slots), Failure> {
    let server = address.server.clone();
    let until = Instant::now() + patience;
    let link = connector.to(address).connect(patience).await?;
    let reply = link.run(Request::new("CLUSTER", vec!["SLOTS".to_owned()]), left(until)?).await;
    let slots = match reply {
        Err(Failure::Server(error)) if error.contains("cluster support disabled") => {
            return Err(Failure::Impossible {
                cause: format!("{server} is no node of a cluster"),
                advice: "write redis:// in the URL in place of redis-cluster://, or name a node of a cluster"
                    .to_owned(),
            });
        }
        reply => Slots::read(&reply?, &server),
    };
    match slots.filter(|slots| !slots.is_empty()) {
        Some(slots) => Ok((server, slots)),
        None => Err(Failure::Unreachable(format!("{server} knows of no node that has slots"))),
    }
}

/// Between half of it and all of it, so that a fleet does not ask in step.
fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + fastrand::f64() / 2.0)
}
