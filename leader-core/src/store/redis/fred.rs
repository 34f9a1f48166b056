//! Redis by the crate `fred`.
//!
//! Left to itself, fred connects again and sends once more what got no reply, long after the caller has given up. So a
//! [`Connection`] is a client of fred that has no rule for that: it ends with its socket, or with its first failure.
//!
//! fred and the TLS library write logs, by the crate `log`, on the thread that runs the connection. They hold no password.
//! On the driver's thread a bridge of `log` to `tracing` gets none of them; a logger of `log` itself, such as `env_logger`,
//! gets a warning when a connection is lost, and its writer holds up the driver if it blocks.

mod connection;
mod failure;
mod listener;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use self::connection::Connection;
use self::listener::Messages;
use super::address::Address;
use super::client::Adapter;
use super::connection::{Failure, Link, Pending, Reply, Request};

/// Makes links by `fred`.
pub(super) struct Fred;

impl Adapter for Fred {
    type Link = Connection;
    type Listener = Messages;

    async fn open(address: &Arc<Address>, timeout: Duration) -> Result<Connection, Failure> {
        Connection::open(address, timeout).await
    }

    async fn listen(address: &Arc<Address>, channels: Vec<String>, timeout: Duration) -> Result<Messages, Failure> {
        Messages::on(Connection::open(address, timeout).await?, channels, timeout).await
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
