//! What needs several crates, several processes or a real server.

#[cfg(unix)]
pub mod process;
pub mod sim;
