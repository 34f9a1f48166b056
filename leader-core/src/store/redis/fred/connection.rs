//! One connection: opened once, used until its first failure, and then never again.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use ::fred::bytes::Bytes;
use ::fred::clients::Client;
use ::fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use ::fred::types::{ClusterHash, CustomCommand, Message, Resp3Frame, Value};
use tokio::sync::{broadcast, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::super::address::Address;
use super::super::connection::{Failure, Reply, Request};
use super::{failure, peer, settings};

/// A client of fred with one socket.
///
/// Without a reconnect policy fred's task ends when the socket does, and calls would wait for ever from then on; so the
/// task is watched, and its end is every call's.
pub(super) struct Connection {
    client: Client,
    address: Arc<Address>,
    /// Why it ended, once it has.
    end: Arc<watch::Sender<Option<Failure>>>,
    /// A call on it got no answer.
    given_up: AtomicBool,
    /// Calls without an answer yet.
    under_way: AtomicUsize,
    tasks: [AbortHandle; 2],
}

impl Connection {
    /// Connects, logs in, selects the database, and asks once whether the server answers.
    pub(super) async fn open(address: &Arc<Address>, timeout: Duration) -> Result<Self, Failure> {
        let began = Instant::now();
        let opened = tokio::select! {
            biased;
            opened = tokio::time::timeout(timeout, Self::attempt(address, timeout)) => opened.unwrap_or(Err(Failure::TimedOut)),
            cause = peer::plain(address, timeout) => Err(cause),
        };
        // What a TLS port does with plain text.
        let suspect = [failure::closed(address), failure::no_redis(address)];
        if opened.as_ref().is_err_and(|cause| suspect.contains(cause)) {
            let left = timeout.saturating_sub(began.elapsed()).min(timeout / 2);
            if tokio::time::timeout(left, peer::speaks_tls(address)).await.unwrap_or(false) {
                return Err(failure::tls_only(address));
            }
        }
        opened
    }

    async fn attempt(address: &Arc<Address>, timeout: Duration) -> Result<Self, Failure> {
        let config = settings::config(address).await?;
        let (performance, connection) = (settings::performance(timeout), settings::connection(timeout));
        let client = Client::new(config, Some(performance), Some(connection), None);
        let mut connected = pin!(client.wait_for_connect());
        // The first poll begins to listen, and what it listens for may be over as soon as the next line is.
        let early = poll_fn(|cx| Poll::Ready(connected.as_mut().poll(cx))).await;
        let this = Self::new(client.clone(), client.connect(), Arc::clone(address));
        if early.is_pending() {
            tokio::select! {
                biased;
                connected = connected => connected.map_err(|error| failure::of(&error, address))?,
                cause = this.ended() => return Err(cause),
            }
        }
        // fred takes a connection for good that was closed while it logged in.
        match reply(this.call(Request::bare("PING"), timeout).await?) {
            // It is there, whatever else it can do now: that is for the commands to find out.
            Err(Failure::Server(error)) if failure::is_of_the_moment(&error) => {}
            answer => drop(answer?),
        }
        Ok(this)
    }

    fn new(client: Client, task: JoinHandle<Result<(), ::fred::error::Error>>, address: Arc<Address>) -> Self {
        let end = Arc::new(watch::Sender::new(None));
        let fred = task.abort_handle();
        let watcher = tokio::spawn({
            let (end, address) = (Arc::clone(&end), Arc::clone(&address));
            async move {
                let cause = match task.await {
                    Ok(Err(error)) => failure::of(&error, &address),
                    Ok(Ok(())) | Err(_) => failure::ended(&address),
                };
                finish(&end, cause);
            }
        });
        let (given_up, under_way) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { client, address, end, given_up, under_way, tasks: [fred, watcher.abort_handle()] }
    }

    /// Sends one command and waits for its reply, which may be an error of the server's.
    ///
    /// After any failure, and after a future that was dropped before it was ready, no further command is sent: it would be
    /// queued behind one that is stuck, and sent when nobody expects it any more. Commands that are under way go on.
    pub(super) async fn call(&self, request: Request, timeout: Duration) -> Result<Resp3Frame, Failure> {
        if timeout.is_zero() {
            // To fred it would mean: without a limit.
            return Err(Failure::TimedOut);
        }
        if let Some(cause) = self.end.borrow().clone() {
            return Err(cause);
        }
        if self.given_up.load(Ordering::Relaxed) {
            return Err(failure::given_up(&self.address));
        }
        let mut call = Call::begin(self);
        let command = CustomCommand::new_static(request.name, ClusterHash::Random, false);
        let arguments: Vec<Value> = request.arguments.into_iter().map(|bytes| Bytes::from(bytes).into()).collect();
        let client = self.client.with_options(&settings::options(timeout));
        let answer = tokio::select! {
            biased;
            answer = client.custom_raw(command, arguments) => answer.map_err(|error| failure::of(&error, &self.address)),
            cause = self.ended() => Err(cause),
        };
        call.answered = answer.is_ok();
        answer
    }

    /// Listens to these channels too; returns when the server has confirmed all of them.
    pub(super) async fn subscribe(&self, channels: Vec<String>, timeout: Duration) -> Result<(), Failure> {
        // fred calls a subscription done as soon as it is written, and drops what the server says to it. A PING right
        // behind it gets the refusal, if there is one, and otherwise the answer that only subscribers get.
        let client = self.client.with_options(&settings::options(timeout));
        let writing = async {
            tokio::select! {
                biased;
                written = client.subscribe(channels) => written.map_err(|error| failure::of(&error, &self.address)),
                cause = self.ended() => Err(cause),
            }
        };
        let (written, answer) = tokio::join!(writing, self.call(Request::bare("PING"), timeout));
        written?;
        match reply(answer?) {
            Ok(Reply::List(_)) => Ok(()),
            // That is no refusal: a server that cannot write to its disk refuses each PING.
            Err(Failure::Server(error)) if failure::is_of_the_disk(&error) => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Err(Failure::Unreachable(format!("{} did not confirm the subscription", self.address.server))),
        }
    }

    /// What is published on the channels, from now on.
    pub(super) fn messages(&self) -> broadcast::Receiver<Message> {
        self.client.message_rx()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.borrow().is_some() || self.given_up.load(Ordering::Relaxed)
    }

    /// Resolves when the connection has ended.
    pub(super) async fn ended(&self) -> Failure {
        let mut end = self.end.subscribe();
        let cause = end.wait_for(Option::is_some).await.ok().and_then(|cause| cause.clone());
        cause.unwrap_or_else(|| failure::ended(&self.address))
    }

    fn abort(&self) {
        finish(&self.end, failure::ended(&self.address));
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.abort();
    }
}

/// The first cause is the one that counts.
fn finish(end: &watch::Sender<Option<Failure>>, cause: Failure) {
    end.send_if_modified(|known| known.is_none().then(|| *known = Some(cause)).is_some());
}

/// A call that is under way. If it is not answered when this is dropped, its connection takes no more calls, and ends with
/// the last of those that it has.
struct Call<'a> {
    connection: &'a Connection,
    answered: bool,
}

impl<'a> Call<'a> {
    fn begin(connection: &'a Connection) -> Self {
        connection.under_way.fetch_add(1, Ordering::Relaxed);
        Self { connection, answered: false }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let Connection { given_up, under_way, .. } = self.connection;
        given_up.fetch_or(!self.answered, Ordering::Relaxed);
        if under_way.fetch_sub(1, Ordering::Relaxed) == 1 && given_up.load(Ordering::Relaxed) {
            self.connection.abort();
        }
    }
}

/// What the server answered, if it is no error.
pub(super) fn reply(frame: Resp3Frame) -> Result<Reply, Failure> {
    Ok(match frame {
        Resp3Frame::Null => Reply::Nil,
        Resp3Frame::Number { data, .. } => Reply::Integer(data),
        Resp3Frame::BlobString { data, .. } | Resp3Frame::SimpleString { data, .. } => {
            Reply::Text(String::from_utf8_lossy(&data).into_owned())
        }
        Resp3Frame::Array { data, .. } => Reply::List(data.into_iter().map(reply).collect::<Result<_, _>>()?),
        Resp3Frame::SimpleError { data, .. } => return Err(failure::of_server(&data)),
        // Version 2 of the protocol, which was asked for, has no others.
        _ => return Err(Failure::Unreachable("an answer of a kind that does not exist".to_owned())),
    })
}

/// The same, with its strings as they are, and the errors inside of it.
pub(super) fn verbatim(frame: Resp3Frame) -> Result<Reply, Failure> {
    let inside = |frame| match frame {
        Resp3Frame::SimpleError { data, .. } => Ok(Reply::Error(data.to_string())),
        frame => verbatim(frame),
    };
    match frame {
        Resp3Frame::BlobString { data, .. } => Ok(Reply::Bytes(data.into())),
        Resp3Frame::Array { data, .. } => Ok(Reply::List(data.into_iter().map(inside).collect::<Result<_, _>>()?)),
        frame => reply(frame),
    }
}
