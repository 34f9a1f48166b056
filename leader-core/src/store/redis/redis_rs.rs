//! Redis by the crate `redis`, whose repository is called redis-rs.
//!
//! Its connections that many calls share end with their sockets, and send nothing twice. What is around that is ours: the
//! socket with its settings and TLS ([`socket`]), so that nothing lingers in the system when a connection is dropped, and errors
//! are seen as they are; and the login ([`login`]), whose refusal the crate would tell in words of its own. In the crate's own
//! settings a call ends after half a second, and only the callers' times are to count.

mod connection;
mod failure;
mod listener;
mod login;
mod socket;

use std::sync::Arc;
use std::time::Duration;

use ::redis::RedisConnectionInfo;

use self::connection::Connection;
use self::listener::Messages;
use super::address::Address;
use super::client::Adapter;
use super::connection::{Failure, Link, Pending, Reply, Request};

/// Makes links by `redis`.
pub(super) struct RedisRs;

impl Adapter for RedisRs {
    type Link = Connection;
    type Listener = Messages;

    async fn open(address: &Arc<Address>, timeout: Duration) -> Result<Connection, Failure> {
        let socket = login::log_in(socket::open(address, timeout).await?, address).await?;
        Connection::over(socket, address).await
    }

    async fn listen(address: &Arc<Address>, channels: Vec<String>, timeout: Duration) -> Result<Messages, Failure> {
        let socket = login::log_in(socket::open(address, timeout).await?, address).await?;
        Messages::on(socket, channels, address).await
    }
}

impl Link for Connection {
    fn run(&self, request: Request, timeout: Duration) -> Pending<'_, Reply> {
        Box::pin(async move {
            let read = if request.verbatim { connection::verbatim } else { connection::reply };
            read(self.call(request, timeout).await?)
        })
    }

    fn is_over(&self) -> bool {
        self.has_ended()
    }
}

/// There is nothing left to say when the crate gets the socket. By version 2 of the protocol, as subscriptions and their
/// confirmations look different in version 3, and servers before 6.0 do not have it.
fn said_all() -> RedisConnectionInfo {
    RedisConnectionInfo::default().set_skip_set_lib_name()
}
