//! One elector's tie to the server: the connections that are open now, and their replacement when one fails.

mod listening;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::listening::{Listening, Subject};
use super::connection::{Client, Failure, Link, Lookout, Reply, Request, Subscription};
use super::elector::Elector;
use super::failure::{calls_for_a_new_link, is_unknown_script};
use super::keys::Keys;
use super::replicas::{Confirmations, Reading};
use crate::store::{Announcer, Session as Asked};

/// A slow server takes several round trips to let somebody in: an attempt may take so many operation time-outs.
const PATIENCE: u32 = 5;
/// And at least so long.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);

/// Beside what is shared with attempts to connect: whoever finds out that the connections lead elsewhere by now.
pub(super) struct Session(Arc<Shared>, OnceLock<Option<Lookout>>);

/// A script.
#[derive(Debug)]
pub(super) struct Script {
    text: Arc<str>,
    /// The name under which servers know it; it is the same for all of them.
    digest: OnceLock<String>,
    /// A server was asked to learn it.
    asked: AtomicBool,
}

impl Script {
    pub(super) fn new(text: Arc<str>) -> Self {
        Self { text, digest: OnceLock::new(), asked: AtomicBool::new(false) }
    }
}

/// One call of a script.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) script: &'a Script,
    /// What follows the script.
    pub(super) arguments: &'a (dyn Fn() -> Vec<Vec<u8>> + Sync),
    /// The reply is wanted as it is.
    pub(super) verbatim: bool,
}

/// What each command of a call was answered, or why it has no answer that counts.
pub(super) type Answered<T> = Vec<Result<T, Failure>>;

struct Shared {
    client: Arc<dyn Client>,
    script: Arc<Script>,
    connections: Mutex<Connections>,
    /// The last link has failed, and no call has been answered since.
    failing: AtomicBool,
    announcer: Announcer,
    /// What its channels are about.
    channels: HashMap<String, Subject>,
    /// Of the elector that listens.
    elector: Option<Arc<Elector>>,
    /// The operation time-out.
    timeout: Duration,
}

enum Connections {
    /// But for what still listens beside a link that did not answer in time: it looks after itself.
    None(Option<Arc<dyn Subscription>>),
    Opening(Opening),
    Open(Arc<Open>),
}

/// Attempts to connect, of which the first that succeeds counts. They outlast the calls that wait for them.
struct Opening {
    /// What listens already.
    kept: Option<Arc<dyn Subscription>>,
    attempts: Vec<AbortHandle>,
    under_way: usize,
    newest: Instant,
    outcome: Arc<watch::Sender<Option<Outcome>>>,
}

type Outcome = Result<Arc<Open>, Failure>;

/// One connection for commands, and one that listens: both to the server that the address means now.
struct Open {
    link: Box<dyn Link>,
    confirmations: Confirmations,
    subscription: Mutex<Listening>,
    /// Listens anew, if that is what listened before.
    anew: OnceLock<Lookout>,
}

impl Session {
    /// Nothing is opened before it is needed.
    pub(super) fn new(client: Arc<dyn Client>, script: Arc<Script>, keys: &Keys, asked: Asked) -> Self {
        let elector = Arc::new(Elector::new(&asked, keys));
        let mut channels: HashMap<_, _> =
            asked.groups.into_keys().map(|group| (keys.channel(&group), Subject::Lease(group))).collect();
        channels.insert(keys.wake_channel(asked.candidate.incarnation), Subject::Locks);
        channels.insert(elector.twins.channel().to_owned(), Subject::Id);
        Self::with(client, script, asked.announcer, channels, Some(elector), asked.timeout)
    }

    /// Connections of their own for other commands, which listen to nothing.
    pub(super) fn beside(
        client: Arc<dyn Client>,
        script: Arc<Script>,
        announcer: Announcer,
        timeout: Duration,
    ) -> Self {
        Self::with(client, script, announcer, HashMap::new(), None, timeout)
    }

    fn with(
        client: Arc<dyn Client>,
        script: Arc<Script>,
        announcer: Announcer,
        channels: HashMap<String, Subject>,
        elector: Option<Arc<Elector>>,
        timeout: Duration,
    ) -> Self {
        let shared = Shared {
            client,
            script,
            connections: Mutex::new(Connections::None(None)),
            failing: AtomicBool::new(false),
            announcer,
            channels,
            elector,
            timeout,
        };
        Self(Arc::new(shared), OnceLock::new())
    }

    /// Waits until the connections are open. If they are not in time, they go on opening. From here on, somebody looks where
    /// they should lead.
    pub(super) async fn open(&self) -> Result<(), Failure> {
        self.1.get_or_init(|| {
            // Not the other way round, as for a subscription.
            let shared = Arc::downgrade(&self.0);
            let moved = move || shared.upgrade().iter().for_each(|shared| shared.moved());
            self.0.client.watch(self.0.timeout, Box::new(moved))
        });
        self.open_beside().await
    }

    /// The same for connections beside others, which nobody has to look after.
    pub(super) async fn open_beside(&self) -> Result<(), Failure> {
        self.connections(Instant::now() + self.0.timeout).await.map(drop)
    }

    /// Why nobody listens to releases, if nobody does.
    pub(super) fn deaf(&self) -> Option<String> {
        match &*self.0.connections() {
            Connections::Open(open) => open.listening().as_ref().err().cloned(),
            _ => None,
        }
    }

    pub(super) fn script(&self) -> &Arc<Script> {
        &self.0.script
    }

    /// What is known of its elector; nothing, if it does not listen.
    pub(super) fn elector(&self) -> Option<&Elector> {
        self.0.elector.as_deref()
    }

    /// One call of a script, on new connections if the last ones have failed.
    pub(super) async fn call<T>(
        &self,
        call: Call<'_>,
        reading: &Reading<'_, T>,
        until: Instant,
    ) -> Result<Answered<T>, Failure> {
        let open = self.connections(until).await?;
        let mut watch = Watch { shared: &self.0, open: &open, trusted: false, silent: true };
        let reply = call.on(&*open.link, until).await;
        watch.silent &= reply.is_err();
        let answers = match reply {
            Ok(reply) => reading.answers(reply, &*open.link, &open.confirmations, until).await,
            Err(failure) => {
                watch.trusted = leaves_the_link_alone(&failure);
                watch.silent = failure == Failure::TimedOut;
                return Err(failure);
            }
        };
        // What a command inside of the script was told is an answer of the script's.
        watch.trusted = answers.iter().all(|answer| answer.as_ref().err().is_none_or(leaves_the_link_alone));
        if watch.trusted && self.0.failing.swap(false, Ordering::Relaxed) {
            // The server is back. Those who wait for their next attempt need not, and a release may have been missed.
            self.0.announcer.gap();
        }
        Ok(answers)
    }

    /// Nobody has to look where the connections should lead.
    fn is_for_one_address(&self) -> bool {
        matches!(self.1.get(), Some(None))
    }

    async fn connections(&self, until: Instant) -> Outcome {
        let mut outcome = match &mut *self.0.connections() {
            // One that an operator or a proxy has closed costs nobody a lease: nothing was sent on it.
            Connections::Open(open) if !open.link.is_over() => return Ok(Arc::clone(open)),
            Connections::Opening(opening) => {
                // Whatever the older attempts are stuck in, the server may be there by now.
                if opening.newest.elapsed() >= self.0.timeout && opening.under_way < PATIENCE as usize {
                    opening.attempt(&self.0);
                }
                opening.outcome.subscribe()
            }
            over_or_none => {
                let kept = match over_or_none {
                    // An address that means different servers in turn would leave it behind.
                    Connections::None(kept) if self.is_for_one_address() => kept.take(),
                    _ => None,
                };
                let mut opening = Opening {
                    kept,
                    attempts: Vec::new(),
                    under_way: 0,
                    newest: Instant::now(),
                    outcome: Arc::new(watch::Sender::new(None)),
                };
                opening.attempt(&self.0);
                let outcome = opening.outcome.subscribe();
                *over_or_none = Connections::Opening(opening);
                outcome
            }
        };
        let opened = async {
            let outcome = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
            outcome.unwrap_or_else(|| Err(Failure::Unreachable("the attempt to connect was given up".to_owned())))
        };
        let opened = tokio::time::timeout(left(until)?, opened).await.unwrap_or(Err(Failure::TimedOut));
        if opened.is_err() {
            self.0.failing.store(true, Ordering::Relaxed);
        }
        opened
    }
}

/// The server has said it, and is the right one.
fn leaves_the_link_alone(failure: &Failure) -> bool {
    match failure {
        Failure::Server(error) => !calls_for_a_new_link(error),
        Failure::Unconfirmed { by, .. } => by.is_some(),
        _ => false,
    }
}

impl Call<'_> {
    async fn on(&self, link: &dyn Link, until: Instant) -> Result<Reply, Failure> {
        if !self.script.asked.load(Ordering::Relaxed) {
            self.script.load(link, until).await?;
        }
        if let Some(digest) = self.script.digest.get() {
            match link.run(self.request("EVALSHA", digest), left(until)?).await {
                Err(Failure::Server(error)) if is_unknown_script(&error) => {}
                reply => return reply,
            }
        }
        link.run(self.request("EVAL", &self.script.text), left(until)?).await
    }

    /// On a node to which its slot is about to move. Nobody else may use the link meanwhile: the first command of all is the
    /// one that the permission counts for.
    pub(super) async fn asking(&self, link: &dyn Link, until: Instant) -> Result<Reply, Failure> {
        link.run(Request::bare("ASKING"), left(until)?).await?;
        link.run(self.request("EVAL", &self.script.text), left(until)?).await
    }

    fn request(&self, name: &'static str, script: &str) -> Request {
        let mut arguments = vec![script.as_bytes().to_vec()];
        arguments.extend((self.arguments)());
        Request { name, arguments, verbatim: self.verbatim }
    }
}

impl Script {
    /// Has the server learn it, unless that or another one did.
    async fn load(&self, link: &dyn Link, until: Instant) -> Result<(), Failure> {
        if self.digest.get().is_some() {
            return Ok(());
        }
        let request = Request::new("SCRIPT", vec!["LOAD".to_owned(), self.text.to_string()]);
        match link.run(request, left(until)?).await {
            Ok(Reply::Text(digest)) => drop(self.digest.set(digest)),
            // Not permitted, or not now: then each call brings the script along.
            Ok(_) | Err(Failure::Server(_)) => {}
            Err(failure) => return Err(failure),
        }
        self.asked.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Open {
    fn listening(&self) -> MutexGuard<'_, Listening> {
        // Held for a look or an assignment only.
        self.subscription.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The attempts hold what is shared, too.
        *self.0.connections() = Connections::None(None);
    }
}

impl Opening {
    fn attempt(&mut self, shared: &Arc<Shared>) {
        self.newest = Instant::now();
        self.under_way += 1;
        let (shared, outcome, kept) = (Arc::clone(shared), Arc::clone(&self.outcome), self.kept.clone());
        let attempt = async move {
            let listens = kept.is_some();
            let opened = shared.attempt(kept).await.map(Arc::new);
            if let (true, Ok(open)) = (listens, &opened) {
                shared.listen_anew(open);
            }
            shared.attempted(opened, &outcome);
        };
        self.attempts.push(tokio::spawn(attempt).abort_handle());
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.attempts.iter().for_each(AbortHandle::abort);
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        // Held for a look or an assignment only: a poisoned one is whole.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn attempt(self: &Arc<Self>, kept: Option<Arc<dyn Subscription>>) -> Result<Open, Failure> {
        let patience = patience(self.timeout);
        let until = Instant::now() + patience;
        let link = async {
            let link = self.client.connect(patience).await?;
            self.script.load(&*link, until).await?;
            Ok(link)
        };
        let listening = async {
            match kept {
                Some(kept) => Ok(Ok(Some(kept))),
                None => self.subscribe(patience).await,
            }
        };
        let (link, subscription) = tokio::try_join!(link, listening)?;
        let (subscription, anew) = (Mutex::new(subscription), OnceLock::new());
        Ok(Open { link, confirmations: Confirmations::default(), subscription, anew })
    }

    /// Takes in what has become of an attempt.
    fn attempted(&self, opened: Outcome, outcome: &Arc<watch::Sender<Option<Outcome>>>) {
        let mut connections = self.connections();
        let Connections::Opening(opening) = &mut *connections else { return };
        if !Arc::ptr_eq(&opening.outcome, outcome) {
            return;
        }
        opening.under_way -= 1;
        let next = match &opened {
            Ok(open) => Connections::Open(Arc::clone(open)),
            Err(_) if opening.under_way > 0 => return,
            Err(_) => Connections::None(None),
        };
        *connections = next;
        drop(connections);
        outcome.send_replace(Some(opened));
    }

    /// The address means another server by now. Whoever waits for the old one, or for an attempt at it, need not.
    fn moved(&self) {
        let mut connections = self.connections();
        let over = matches!(&*connections, Connections::Open(open) if open.link.is_over());
        // What is under way there goes on to its own end.
        let left = over.then(|| std::mem::replace(&mut *connections, Connections::None(None)));
        drop(connections);
        drop(left);
        self.announcer.gap();
    }

    fn forget(&self, failed: &Arc<Open>, silent: bool) {
        self.failing.store(true, Ordering::Relaxed);
        let mut connections = self.connections();
        if matches!(&*connections, Connections::Open(open) if Arc::ptr_eq(open, failed)) {
            let listening = failed.listening().as_ref().ok().and_then(Option::clone);
            *connections = Connections::None(listening.filter(|_| silent));
        }
    }
}

/// A call that failed, or whose future was dropped, takes its connections with it: a command may be stuck in them. Calls
/// that are under way there go on to their own ends; no further one begins. What listens stays, if the call just got no answer: to
/// have two connections opened takes longer, and where packets are lost that has cost leases.
struct Watch<'a> {
    shared: &'a Shared,
    open: &'a Arc<Open>,
    trusted: bool,
    /// There was no answer at all.
    silent: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.trusted {
            self.shared.forget(self.open, self.silent);
        }
    }
}

/// How long an attempt to get in may take, where a call may take `timeout`.
pub(super) fn patience(timeout: Duration) -> Duration {
    timeout.saturating_mul(PATIENCE).max(LEAST_PATIENCE)
}

pub(super) fn left(until: Instant) -> Result<Duration, Failure> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::TimedOut) } else { Ok(left) }
}
