//! Servers.
