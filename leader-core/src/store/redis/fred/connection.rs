//! One connection.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ::fred::bytes::Bytes;
use ::fred::clients::Client;
use ::fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use ::fred::types::{ClusterHash, CustomCommand, Message, Resp3Frame, Value};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use super::super::address::Address;
use super::super::client::failure::{ended, is_of_the_disk, is_of_the_moment, of_server};
use super::super::client::life::Life;
use super::super::connection::{Failure, Reply, Request};
use super::{failure, settings};

/// A client of fred with one socket.
///
/// Without a reconnect policy fred's task ends when the socket does, and calls would wait for ever from then on; so the
/// task is watched, and its end is every call's.
pub(in super::super) struct Connection {
    client: Client,
    address: Arc<Address>,
    life: Life,
}

impl Connection {
    /// Connects, logs in, selects the database, and asks once whether the server answers.
    pub(super) async fn open(address: &Arc<Address>, timeout: Duration) -> Result<Self, Failure> {
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
            Err(Failure::Server(error)) if is_of_the_moment(&error) => {}
            answer => drop(answer?),
        }
        Ok(this)
    }

    fn new(client: Client, task: JoinHandle<Result<(), ::fred::error::Error>>, address: Arc<Address>) -> Self {
        let fred = task.abort_handle();
        let course = {
            let address = Arc::clone(&address);
            async move {
                match task.await {
                    Ok(Err(error)) => failure::of(&error, &address),
                    Ok(Ok(())) | Err(_) => ended(&address),
                }
            }
        };
        let life = Life::begin(Arc::clone(&address), course, vec![fred]);
        Self { client, address, life }
    }

    /// Sends one command and waits for its reply, which may be an error of the server's. See [`Life::call`].
    pub(super) async fn call(&self, request: Request, timeout: Duration) -> Result<Resp3Frame, Failure> {
        let sending = async {
            let command = CustomCommand::new_static(request.name, ClusterHash::Random, false);
            let arguments: Vec<Value> = request.arguments.into_iter().map(|bytes| Bytes::from(bytes).into()).collect();
            // A time-out of zero, which is never let through to here, would be none to fred.
            let client = self.client.with_options(&settings::options(timeout));
            client.custom_raw(command, arguments).await.map_err(|error| failure::of(&error, &self.address))
        };
        self.life.call(timeout, sending).await
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
            Err(Failure::Server(error)) if is_of_the_disk(&error) => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Err(Failure::Unreachable(format!("{} did not confirm the subscription", self.address.server))),
        }
    }

    /// What is published on the channels, from now on.
    pub(super) fn messages(&self) -> broadcast::Receiver<Message> {
        self.client.message_rx()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.life.has_ended()
    }

    /// Resolves when the connection has ended.
    pub(super) async fn ended(&self) -> Failure {
        self.life.ended().await
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
        Resp3Frame::SimpleError { data, .. } => return Err(of_server(&data)),
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
