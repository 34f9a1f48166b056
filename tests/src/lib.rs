//! What needs several crates, several processes or a real server.

#[cfg(target_os = "linux")]
pub mod chaos;
#[cfg(target_os = "linux")]
pub mod command;
#[cfg(target_os = "linux")]
pub mod cost;
#[cfg(target_os = "linux")]
pub mod cron_chaos;
#[cfg(all(target_os = "linux", feature = "peers"))]
pub mod cron_cost;
pub mod fixture;
pub mod foreign;
pub mod future;
pub mod gate;
mod many;
pub mod model;
#[cfg(target_os = "linux")]
pub mod net;
pub mod one_job;
#[cfg(unix)]
pub mod process;
#[cfg(target_os = "linux")]
pub mod redis;
#[cfg(target_os = "linux")]
pub mod redis_clients;
pub mod script;
pub mod sim;
#[cfg(target_os = "linux")]
pub mod soak;
pub mod ticks;

/// The programs in the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
