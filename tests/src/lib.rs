//! What needs several crates, several processes or a real server.

pub mod model;
pub mod sim;
