//! One elector's ties to the nodes of a cluster: a link to each that has slots of its keys.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::super::address::Server;
use super::super::connection::{Client, Failure};
use super::super::failure::{calls_for_a_new_link, code};
use super::super::fred::FredClient;
use super::super::replicas::{Confirmations, Reading};
use super::super::session::{Answered, Call, Script, Session, left};
use super::map::Map;
use super::redirect::Redirect;
use crate::store::Announcer;

/// So many calls are under way on one link; the others wait. A batch is as many calls as it has slots.
const CALLS: usize = 256;

/// Until the next attempt, while some keys of a slot have moved to another node and some have not.
const MOMENT: Duration = Duration::from_millis(20);

pub(in super::super) struct Nodes {
    map: Arc<Map>,
    script: Arc<Script>,
    announcer: Announcer,
    /// The operation time-out.
    timeout: Duration,
    /// A link to any node, and what listens there: what is published reaches all of them.
    listening: Option<Session>,
    open: Mutex<HashMap<Server, Arc<Node>>>,
}

struct Node {
    session: Session,
    room: Semaphore,
}

impl Nodes {
    /// Nothing is opened before it is needed.
    pub(in super::super) fn new(map: Arc<Map>, script: Arc<Script>, announcer: Announcer, timeout: Duration) -> Self {
        Self { map, script, announcer, timeout, listening: None, open: Mutex::default() }
    }

    /// The same, and this session listens.
    pub(in super::super) fn listening(self, session: Session) -> Self {
        Self { listening: Some(session), ..self }
    }

    pub(in super::super) fn listener(&self) -> Option<&Session> {
        self.listening.as_ref()
    }

    pub(in super::super) fn script(&self) -> &Arc<Script> {
        &self.script
    }

    /// One call of a script whose keys are all in this slot, on the node that has it. What a node has refused as not its own,
    /// or as being under way to another one, it has not executed: then it is sent once more, to who is said to have the slot,
    /// or after a moment.
    pub(in super::super) async fn call<T>(
        &self,
        slot: u16,
        call: Call<'_>,
        reading: &Reading<'_, T>,
        until: Instant,
    ) -> Result<Answered<T>, Failure> {
        let mut server = self.map.owner(slot, until).await?;
        let mut moved = false;
        loop {
            let mut outcome = self.at(&server, call, reading, until).await;
            let redirect = outcome.as_ref().err().and_then(|failure| Redirect::of(failure, &server));
            match redirect {
                Some(Redirect::Moved(to)) => {
                    self.map.moved(slot, &to);
                    if !moved {
                        (server, moved) = (to, true);
                        continue;
                    }
                }
                Some(Redirect::Ask(to)) => outcome = self.asking(to, call, reading, until).await,
                None => {}
            }
            match &outcome {
                Err(Failure::Server(error)) if is_elsewhere(error) => {
                    self.map.suspect(&server);
                    return Err(unsettled(slot, error));
                }
                Err(Failure::Server(error)) if code(error) == "TRYAGAIN" && left(until)? > 2 * MOMENT => {
                    sleep(MOMENT).await;
                }
                _ => return outcome,
            }
        }
    }

    async fn at<T>(
        &self,
        server: &Server,
        call: Call<'_>,
        reading: &Reading<'_, T>,
        until: Instant,
    ) -> Result<Answered<T>, Failure> {
        let node = self.node(server);
        let room = timeout(left(until)?, node.room.acquire()).await;
        // It is never closed.
        let Ok(Ok(_room)) = room else { return Err(Failure::TimedOut) };
        let mut attempt = Attempt { map: &self.map, server, answered: false };
        let outcome = tokio::select! {
            biased;
            outcome = node.session.call(call, reading, until) => outcome,
            // It may stand still, and whoever waits for it could have asked its successor by now.
            () = self.map.replaced(server) => Err(Failure::Unreachable(format!("another node has taken the place of {server}"))),
        };
        attempt.answered = match &outcome {
            Ok(answers) => answers.iter().all(|answer| answer.as_ref().err().is_none_or(is_an_answer)),
            Err(failure) => is_an_answer(failure),
        };
        outcome
    }

    /// One call on the node to which the slot is about to move. On a link of its own: what is asked there has to come right
    /// behind the permission, and others use the node's link.
    async fn asking<T>(
        &self,
        server: Server,
        call: Call<'_>,
        reading: &Reading<'_, T>,
        until: Instant,
    ) -> Result<Answered<T>, Failure> {
        let link = FredClient::new(self.map.address(server)).connect(left(until)?).await?;
        let reply = call.asking(&*link, until).await?;
        Ok(reading.answers(reply, &*link, &Confirmations::default(), until).await)
    }

    fn node(&self, server: &Server) -> Arc<Node> {
        // Held for a look or an assignment only: a poisoned one is whole.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = open.get(server) {
            return Arc::clone(node);
        }
        // Those that have no slots any more. Calls that are under way there go on.
        open.retain(|server, _| self.map.has_slots(server));
        let client = Arc::new(FredClient::new(self.map.address(server.clone())));
        let session = Session::beside(client, Arc::clone(&self.script), self.announcer.clone(), self.timeout);
        let node = Arc::new(Node { session, room: Semaphore::new(CALLS) });
        open.insert(server.clone(), Arc::clone(&node));
        node
    }
}

/// A call on a node. If it gets no answer, or its future is dropped, the map is doubted.
struct Attempt<'a> {
    map: &'a Map,
    server: &'a Server,
    answered: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.answered {
            self.map.trust(self.server);
        } else {
            self.map.suspect(self.server);
        }
    }
}

/// There is no reason to doubt the map of the cluster.
fn is_an_answer(failure: &Failure) -> bool {
    match failure {
        Failure::Server(error) => !is_of_the_node(error),
        // A node that its replicas do not follow any more may have been replaced.
        Failure::Unconfirmed { .. } | Failure::Unreachable(_) | Failure::TimedOut => false,
        // Nothing that a map could say.
        Failure::Impossible { .. } => true,
    }
}

/// Another node may be in its place, or soon will be.
fn is_of_the_node(error: &str) -> bool {
    code(error) == "CLUSTERDOWN" || calls_for_a_new_link(error) && !["NOAUTH", "WRONGPASS"].contains(&code(error))
}

fn is_elsewhere(error: &str) -> bool {
    ["MOVED", "ASK"].contains(&code(error))
}

/// It passes, unlike a redirection by a server that is taken for a single one.
fn unsettled(slot: u16, error: &str) -> Failure {
    Failure::Unreachable(format!("the nodes of the cluster do not agree on who has slot {slot}: {error}"))
}
