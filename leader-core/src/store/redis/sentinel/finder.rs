//! Asks sentinels where the primary is, and keeps what was found.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::super::address::{Address, Sentinels, Server};
use super::super::connection::{Client, Failure};
use super::super::tie::all;
use super::answer::{self, Found, Told};
use super::doctor::{self, Word};
use super::tally::Tally;

/// Makes a client for one server.
pub(in super::super) type Connector = Box<dyn Fn(Address) -> Arc<dyn Client> + Send + Sync>;

/// So long most of the sentinels are waited for when some have answered, and no longer than for this part of the time.
const LATE: Duration = Duration::from_millis(500);
const LATE_PART: u32 = 4;

pub(super) struct Finder {
    sentinels: Sentinels,
    connector: Connector,
    known: Mutex<Known>,
    /// Whose turn it is to be asked alone.
    turn: AtomicUsize,
    /// The last attempt to open a link has failed, or goes on.
    lack: AtomicBool,
}

/// What all who ask have found out.
#[derive(Default)]
struct Known {
    found: Option<Found>,
    /// How often it was another server than before.
    moves: u64,
}

impl Known {
    fn epoch(&self) -> u64 {
        self.found.as_ref().map_or(0, |found| found.epoch)
    }

    fn take(&mut self, found: Found) {
        if self.found.as_ref().is_some_and(|known| known.server != found.server) {
            self.moves += 1;
        }
        self.found = Some(found);
    }
}

impl Finder {
    pub(super) fn new(sentinels: Sentinels, connector: Connector) -> Self {
        // A fleet does not begin with the same one.
        let turn = AtomicUsize::new(fastrand::usize(..sentinels.servers.len()));
        Self { sentinels, connector, known: Mutex::default(), turn, lack: AtomicBool::new(false) }
    }

    pub(super) fn service(&self) -> &str {
        &self.sentinels.service
    }

    /// The client for a server that the sentinels watch.
    pub(super) fn client_of(&self, server: &Server) -> Arc<dyn Client> {
        (self.connector)(self.sentinels.watched.to(server.clone()))
    }

    /// By what was found last, another server than this one is the primary.
    pub(super) fn leads_elsewhere(&self, server: &Server) -> bool {
        self.known().found.as_ref().is_some_and(|found| found.server != *server)
    }

    /// How often another server became the primary, as far as is known.
    pub(super) fn moves(&self) -> u64 {
        self.known().moves
    }

    pub(super) fn note_lack(&self, lack: bool) {
        self.lack.store(lack, Ordering::Relaxed);
    }

    /// Somebody waits for a link to a primary.
    pub(super) fn lacks_a_link(&self) -> bool {
        self.lack.load(Ordering::Relaxed)
    }

    /// Asks all sentinels at once.
    pub(super) async fn find(&self, timeout: Duration) -> Result<Server, Failure> {
        let until = Instant::now() + timeout;
        let late = Instant::now() + LATE.min(timeout / LATE_PART);
        let before = self.known().epoch();
        let mut tally = Tally::new(&self.sentinels, before);
        let mut asked = JoinSet::new();
        for number in 0..self.sentinels.servers.len() {
            let asking = self.ask(number, timeout);
            asked.spawn(async move { (number, asking.await) });
        }
        loop {
            let is_late = Instant::now() >= late;
            if let Some(verdict) = tally.verdict(is_late) {
                return self.settle(verdict?, before);
            }
            match timeout_at(if is_late { until } else { late }, asked.join_next()).await {
                Ok(Some(Ok((number, told)))) => tally.take(number, told),
                // The runtime ends.
                Ok(Some(Err(_))) => {}
                Ok(None) => tally.close(),
                Err(_) if is_late => tally.close(),
                Err(_) => {}
            }
        }
    }

    /// Asks one sentinel, another one each time; and all of them if it names another primary than the known one, unless by a
    /// later election.
    pub(super) async fn look(&self, timeout: Duration) {
        let number = self.turn.fetch_add(1, Ordering::Relaxed) % self.sentinels.servers.len();
        let Told::Primary(told) = self.ask(number, timeout).await else { return };
        {
            let mut known = self.known();
            if told.epoch > known.epoch() {
                known.take(told);
                return;
            }
            if known.found.as_ref().is_some_and(|found| found.server == told.server) {
                return;
            }
        }
        // If they cannot be asked now, the next look comes.
        let _ = self.find(timeout).await;
    }

    /// Asks all sentinels what they know of the service and of each other, for the doctor: nothing is kept of it.
    pub(super) async fn survey(&self, timeout: Duration) -> Vec<(Server, Word)> {
        let ask = |server: &Server| {
            let client = (self.connector)(self.sentinels.access.to(server.clone()));
            let (server, question) = (server.clone(), answer::what_of(&self.sentinels.service));
            async move {
                let asked = async { client.connect(timeout).await?.run(question, timeout).await };
                let answer = tokio::time::timeout(timeout, asked).await.unwrap_or(Err(Failure::TimedOut));
                (server, doctor::read(answer))
            }
        };
        all(self.sentinels.servers.iter().map(ask)).await
    }

    /// Asks one.
    fn ask(&self, number: usize, timeout: Duration) -> impl Future<Output = Told> + Send + use<> {
        let server = self.sentinels.servers[number].clone();
        let client = (self.connector)(self.sentinels.access.to(server.clone()));
        let service = self.sentinels.service.clone();
        async move {
            let asked = async {
                let link = client.connect(timeout).await?;
                let (place, rest) = (answer::where_is(&service), answer::what_of(&service));
                Ok(tokio::join!(link.run(place, timeout), link.run(rest, timeout)))
            };
            match tokio::time::timeout(timeout, asked).await.unwrap_or(Err(Failure::TimedOut)) {
                Ok((place, rest)) => answer::read(&server, place, rest),
                Err(failure) => answer::failed(&server, failure),
            }
        }
    }

    /// Keeps what was found by questions that began when `before` was the latest election.
    fn settle(&self, found: Found, before: u64) -> Result<Server, Failure> {
        let mut known = self.known();
        if found.epoch < known.epoch() && known.epoch() > before {
            let service = &self.sentinels.service;
            return Err(Failure::Unreachable(format!("the primary of `{service}` has changed while it was asked for")));
        }
        let server = found.server.clone();
        known.take(found);
        Ok(server)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Held for a look or an assignment only: a poisoned one is whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
