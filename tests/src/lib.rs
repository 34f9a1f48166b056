//! What needs several crates, several processes or a real server.

pub mod fixture;
pub mod future;
pub mod gate;
#[cfg(unix)]
pub mod process;
pub mod sim;
