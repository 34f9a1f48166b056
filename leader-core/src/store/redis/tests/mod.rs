//! What every client has to keep, tried on real servers. All of this is compiled once a client, and run over it.

mod doctor;
mod failures;
mod links;
mod locks;
pub(crate) mod proxy;
mod replicas;
pub(crate) mod server;
mod subscriptions;
mod ticks;
#[cfg(feature = "redis-tls")]
mod tls;

use std::sync::Arc;
use std::time::Duration;

use super::RedisStore;
use super::address::Place;
use super::client::Connector;
use super::connection::{Client, Failure, Link, Reply, Request};
use super::ties::Servers;
use crate::config::{FreshStore, RedisClient};

/// Long enough for a busy machine, where nothing is said about time.
const AMPLE: Duration = Duration::from_secs(20);
/// Where something has to take its time.
const SHORT: Duration = Duration::from_millis(300);

/// The client that these tests are for: it stands in the name of their module.
fn chosen() -> RedisClient {
    if module_path!().ends_with("_by_redis_rs") { RedisClient::RedisRs } else { RedisClient::Fred }
}

/// A store that takes its server for new.
fn store_at(url: &str) -> RedisStore {
    RedisStore::new(url).unwrap().client(chosen()).unwrap().fresh_store(FreshStore::Trust)
}

fn client(url: &str) -> Arc<dyn Client> {
    match Servers::at(Place::parse(url).unwrap(), Connector::of(chosen()).unwrap()) {
        Servers::One(client) => client,
        Servers::Cluster(..) => panic!("{url} is of many servers"),
    }
}

async fn link(url: &str) -> Box<dyn Link> {
    client(url).connect(AMPLE).await.unwrap()
}

fn request(words: &[&'static str]) -> Request {
    Request::new(words[0], words[1..].iter().map(ToString::to_string).collect())
}

async fn run(link: &dyn Link, words: &[&'static str]) -> Result<Reply, Failure> {
    link.run(request(words), AMPLE).await
}

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}
