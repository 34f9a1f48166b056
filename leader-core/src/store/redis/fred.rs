//! Redis by the crate `fred`.
//!
//! Left to itself, fred connects again and sends once more what got no reply, long after the caller has given up. So
//! nothing of it is used that outlives a connection: a [`Connection`] is a client of fred that ends with its socket, or
//! with its first failure. Whoever wants another one opens it.
//!
//! fred and the TLS library write logs, by the crate `log`, on the thread that runs the connection. They hold no password.
//! On the driver's thread a bridge of `log` to `tracing` gets none of them; a logger of `log` itself, such as `env_logger`,
//! gets a warning when a connection is lost, and its writer holds up the driver if it blocks.

mod connection;
mod failure;
mod peer;
mod settings;
mod subscription;
#[cfg(feature = "redis-tls")]
mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::connection::Connection;
use super::address::Address;
use super::connection::{Client, Heard, Link, Pending, Reply, Request, Subscription, Whereabouts};

/// Makes links to a server.
pub(super) struct FredClient {
    whereabouts: Arc<dyn Whereabouts>,
}

impl FredClient {
    /// To this server.
    pub(super) fn new(address: Address) -> Self {
        Self::wherever(Arc::new(Arc::new(address)))
    }

    /// To the server that is found.
    pub(super) fn wherever(whereabouts: Arc<dyn Whereabouts>) -> Self {
        Self { whereabouts }
    }
}

impl Client for FredClient {
    fn connect(&self, timeout: Duration) -> Pending<'_, Box<dyn Link>> {
        Box::pin(async move {
            let began = Instant::now();
            let address = self.whereabouts.find(timeout).await?;
            let connection = Connection::open(&address, timeout.saturating_sub(began.elapsed())).await?;
            Ok(Box::new(connection) as Box<dyn Link>)
        })
    }

    fn subscribe(
        &self,
        channels: Vec<String>,
        heard: Box<dyn Fn(Heard) + Send + Sync>,
        patience: Duration,
        timeout: Duration,
    ) -> Pending<'_, Box<dyn Subscription>> {
        Box::pin(async move {
            let subscribed =
                subscription::start(Arc::clone(&self.whereabouts), channels, heard, patience, timeout).await?;
            Ok(Box::new(subscribed) as Box<dyn Subscription>)
        })
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
