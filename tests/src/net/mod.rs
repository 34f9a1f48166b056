//! Real networks for tests: real interfaces, real packets, and rules of the kernel that lose them.
//!
//! A [`Network`] has some [parties](Party), each in a network namespace of its own, in which servers and nodes run. The namespaces
//! have no names and no files: they are gone with the processes that hold them, and these with the test, however it ends.
//!
//! What a [proxy](crate::redis::Proxy) does to bytes, this does to packets: what is lost is sent again by TCP, connections that lead
//! nowhere stay open, and nobody is told.

mod loss;
mod namespace;
mod network;

pub use network::{Network, Party};
