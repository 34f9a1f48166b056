//! Real Redis servers for tests: started by them, hurt by them, and gone with them.
//!
//! [`RedisServer`] is one server; what can be done to it reads like `redis.flush_all()`. A [`RedisCluster`] is several. A [`Proxy`] stands between it and
//! whoever is to have trouble with the network. A [`NestPeer`] competes for a lease the way the system does that this one
//! shares elections with. [`Replicated`] is a primary with replicas, and [`Watched`] one with sentinels that watch them. [`assert_deadline_within_lease`] sees what a leader believes and what the server holds.

mod client;
mod clock;
mod cluster;
mod deadline;
mod faults;
mod nest;
mod port;
mod proxy;
mod replicated;
mod seat;
mod sentinel;
mod server;
mod watched;

pub use client::Client;
pub use cluster::RedisCluster;
pub use deadline::{assert_deadline_within_lease, deadline_past_lease};
pub use faults::Busy;
pub use nest::NestPeer;
pub use port::Port;
pub use proxy::{Proxy, Way};
pub use replicated::Replicated;
pub use sentinel::Sentinel;
pub use server::RedisServer;
pub use watched::{Promoted, SERVICE, Watched};
