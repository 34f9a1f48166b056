//! What the store needs of a Redis client. Clients differ in what they do to a command after a disconnect, so each stands
//! behind this, and the store's rules stand in one place.

use std::future::Future;
use std::num::NonZeroU8;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::address::Address;
use crate::doctor::Finding;
use tokio::task::AbortHandle;

/// A boxed future of a client.
pub(super) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// What an examination has found.
pub(super) type Judged<'a> = Pin<Box<dyn Future<Output = Vec<Finding>> + Send + 'a>>;

/// Says where a server is. It may be another one each time: whoever connects asks anew.
pub(super) trait Whereabouts: Send + Sync + 'static {
    /// The server to connect to now.
    fn find(&self, timeout: Duration) -> Pending<'_, Arc<Address>>;
}

/// A server that is always the same.
impl Whereabouts for Arc<Address> {
    fn find(&self, _: Duration) -> Pending<'_, Arc<Address>> {
        Box::pin(std::future::ready(Ok(Arc::clone(self))))
    }
}

/// Makes links to one server, or to one set of servers that stand for each other. Nothing is opened before it is asked to.
pub(super) trait Client: Send + Sync + 'static {
    /// Opens a link for commands: connected, authenticated, in the right database. Its tasks run on the current runtime.
    fn connect(&self, timeout: Duration) -> Pending<'_, Box<dyn Link>>;

    /// Opens a link that listens to `channels`, and returns when the server has confirmed all of them. It restores itself
    /// after a disconnect, for as long as the returned value lives: `heard` is told of each message, and of each time that
    /// messages may have been lost. `patience` is how long an opening may take; `timeout` how long a peer may be silent
    /// when it is asked whether it is there, and at most a second about how long until the next attempt to restore it.
    fn subscribe(
        &self,
        channels: Vec<String>,
        heard: Box<dyn Fn(Heard) + Send + Sync>,
        patience: Duration,
        timeout: Duration,
    ) -> Pending<'_, Box<dyn Subscription>>;

    /// Finds out by itself, on the current runtime, whether links lead elsewhere than they should by now, for as long as the
    /// returned value lives, and about once in a `timeout`. `moved` is told each time; links that are over by that say so.
    /// Nothing where a name always means the same server.
    fn watch(&self, timeout: Duration, moved: Box<dyn Fn() + Send + Sync>) -> Option<Lookout> {
        let _ = (timeout, moved);
        None
    }

    /// What is wrong with whoever says where the server is, such as sentinels.
    fn examine(&self, until: Instant) -> Judged<'_> {
        let _ = until;
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(super) struct Lookout(AbortHandle);

impl Lookout {
    pub(super) fn over(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection for commands.
///
/// Dropping it ends it at once: nothing that it had queued is sent any more. What is on the wire already may still be
/// executed. After a call that got no answer no further one is sent; those that are under way go on to their ends.
pub(super) trait Link: Send + Sync + 'static {
    /// Sends one command, and waits for its reply up to `timeout`.
    ///
    /// It is sent at most once. After any failure but [`Failure::Server`] the link is not to be trusted: drop it. The same
    /// goes for a future that was dropped before it was ready.
    fn run(&self, request: Request, timeout: Duration) -> Pending<'_, Reply>;

    /// It is known by now that it takes no more commands, such as after the other end has closed it; or that it does not lead
    /// where it should.
    fn is_over(&self) -> bool;
}

/// A subscription; dropping it ends it.
pub(super) trait Subscription: Send + Sync + 'static {}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// `EVALSHA`.
    pub(super) name: &'static str,
    /// All that follows the name.
    pub(super) arguments: Vec<Vec<u8>>,
    /// The reply is wanted as it is: its strings as [`Reply::Bytes`], and the errors inside of it.
    pub(super) verbatim: bool,
}

impl Request {
    /// A command whose arguments are text.
    pub(super) fn new(name: &'static str, arguments: Vec<String>) -> Self {
        Self { arguments: arguments.into_iter().map(String::into_bytes).collect(), ..Self::bare(name) }
    }

    /// A command without arguments.
    pub(super) fn bare(name: &'static str) -> Self {
        Self { name, arguments: Vec::new(), verbatim: false }
    }
}

/// A reply that is no error.
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for simulations, under `testing`"))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// A number.
    Integer(i64),
    /// A string, or the status that some commands answer with.
    Text(String),
    /// A string that is wanted as it is.
    Bytes(Vec<u8>),
    /// An error among other replies that are wanted as they are.
    Error(String),
    /// Replies in a row.
    List(Vec<Reply>),
}

/// What a subscription tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// A message on this channel.
    Message { channel: String, text: String },
    /// The subscription was interrupted and stands again: messages may have been lost.
    Gap,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is no connection, or it ended: what the system said. Whether the command was executed is unknown.
    Unreachable(String),
    /// Nothing came in time. Whether the command was executed, or will be, is unknown.
    TimedOut,
    /// The server's error, as it is: `NOPERM this user has no permissions …`.
    Server(String),
    /// It was executed, and too few replicas have confirmed in time that they have it: so many, if the server said how many,
    /// of so many.
    Unconfirmed { by: Option<u8>, of: NonZeroU8 },
    /// The connection will not come about without a change on either side, such as a certificate that is not trusted.
    Impossible {
        /// What was found.
        cause: String,
        /// What to do.
        advice: String,
    },
}
