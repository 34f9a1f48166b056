//! What needs several crates, several processes or a real server.

pub mod sim;
