//! The crates that can speak to Redis, behind what the store needs of a client ([`connection`](super::connection)); and what
//! they have in common.
//!
//! Left to themselves, clients connect again by their own rules, and some send once more what got no reply. So nothing of
//! them is used that outlives a connection: each opens one, which ends with its socket or with its first failure. Whoever
//! wants another one opens it.

pub(super) mod failure;
pub(super) mod life;
mod peer;
mod subscription;
#[cfg(feature = "redis-tls")]
pub(super) mod tls;

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::address::Address;
use super::connection::{Client, Failure, Heard, Link, Pending, Subscription, Whereabouts};
#[cfg(feature = "redis-fred")]
use super::fred::Fred;
#[cfg(feature = "redis-rs")]
use super::redis_rs::RedisRs;
use crate::config::{RedisClient, StoreOptions};
use crate::error::ConfigError;

/// How links are made: by one of the clients that are built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connector {
    #[cfg(feature = "redis-fred")]
    Fred,
    #[cfg(feature = "redis-rs")]
    RedisRs,
}

impl Connector {
    /// Where nobody has chosen.
    #[cfg(feature = "redis-rs")]
    const DEFAULT: Self = Self::RedisRs;
    #[cfg(not(feature = "redis-rs"))]
    const DEFAULT: Self = Self::Fred;

    /// By this client.
    ///
    /// # Errors
    /// It is not built in.
    pub(super) fn of(client: RedisClient) -> Result<Self, ConfigError> {
        match client {
            #[cfg(feature = "redis-fred")]
            RedisClient::Fred => Ok(Self::Fred),
            #[cfg(feature = "redis-rs")]
            RedisClient::RedisRs => Ok(Self::RedisRs),
            #[cfg(not(all(feature = "redis-fred", feature = "redis-rs")))]
            client => Err(client.is_left_out()),
        }
    }

    /// By the client that the options name, which have been checked, or by the default one.
    pub(super) fn for_options(options: &StoreOptions) -> Self {
        options.redis_client.and_then(|client| Self::of(client).ok()).unwrap_or(Self::DEFAULT)
    }

    /// Makes links to this server.
    pub(super) fn to(self, address: Address) -> Arc<dyn Client> {
        self.wherever(Arc::new(Arc::new(address)))
    }

    /// Makes links to the server that is found.
    pub(super) fn wherever(self, whereabouts: Arc<dyn Whereabouts>) -> Arc<dyn Client> {
        match self {
            #[cfg(feature = "redis-fred")]
            Self::Fred => Arc::new(By::<Fred>(whereabouts, PhantomData)),
            #[cfg(feature = "redis-rs")]
            Self::RedisRs => Arc::new(By::<RedisRs>(whereabouts, PhantomData)),
        }
    }
}

/// What a crate does, for one connection.
pub(super) trait Adapter: Send + Sync + 'static {
    type Link: Link;
    type Listener: Listener;

    /// Connects, logs in, selects the database, and asks once whether the server answers.
    fn open(address: &Arc<Address>, timeout: Duration) -> impl Future<Output = Result<Self::Link, Failure>> + Send;

    /// The same, and listens to these channels: all of them are confirmed.
    fn listen(
        address: &Arc<Address>,
        channels: Vec<String>,
        timeout: Duration,
    ) -> impl Future<Output = Result<Self::Listener, Failure>> + Send;
}

/// A connection that listens. Dropping it ends it.
pub(super) trait Listener: Send + 'static {
    /// What is heard next; nothing once the connection has ended. Nothing is lost if the future is dropped.
    fn next(&mut self) -> impl Future<Output = Option<Heard>> + Send;

    /// Asks the peer whether it is there.
    fn ask(&self, timeout: Duration) -> impl Future<Output = bool> + Send + 'static;
}

/// Makes links by a crate, to the server that is found.
struct By<A>(Arc<dyn Whereabouts>, PhantomData<A>);

impl<A: Adapter> Client for By<A> {
    fn connect(&self, timeout: Duration) -> Pending<'_, Box<dyn Link>> {
        Box::pin(async move {
            let began = Instant::now();
            let address = self.0.find(timeout).await?;
            let left = timeout.saturating_sub(began.elapsed());
            let link = peer::open(&address, left, A::open(&address, left)).await?;
            Ok(Box::new(link) as Box<dyn Link>)
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
            let subscribed = subscription::start::<A>(Arc::clone(&self.0), channels, heard, patience, timeout).await?;
            Ok(Box::new(subscribed) as Box<dyn Subscription>)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "redis-rs")]
    #[test]
    fn who_has_not_chosen_gets_the_one_that_the_feature_redis_stands_for() {
        assert_eq!(Connector::for_options(&StoreOptions::default()), Connector::RedisRs);
    }

    #[cfg(feature = "redis-fred")]
    #[test]
    fn who_has_chosen_gets_that() {
        let options = StoreOptions { redis_client: Some(RedisClient::Fred), ..StoreOptions::default() };
        assert_eq!(Connector::for_options(&options), Connector::Fred);
    }
}
