//! The store for a fleet: a Redis server.
#![cfg_attr(not(test), expect(dead_code, reason = "the store that uses it comes with the next change"))]

mod address;
mod connection;
mod fred;
#[cfg(test)]
mod tests;

use crate::error::StoreUrlError;

/// Whether `url` can be used.
pub(super) fn check(url: &str) -> Result<(), StoreUrlError> {
    address::Address::parse(url).map(drop)
}
