//! What the crate `redis` says, in words that tell what to do.

use std::error::Error;
use std::io;
use std::sync::Arc;

use ::redis::{ErrorKind, RedisError, ServerError};

use super::super::address::Address;
use super::super::client::failure::{ended, no_redis, of_io, of_server};
use super::super::connection::Failure;

/// Of an error that ends its connection, or of a refusal.
pub(super) fn of(error: &RedisError, address: &Address) -> Failure {
    if let Some(error) = of_system(error) {
        return of_io(&format!("{error:?}"), address);
    }
    match ServerError::try_from(error.clone()) {
        Ok(error) => of_server(&text(&error)),
        Err(error) if error.kind() == ErrorKind::Parse => no_redis(address),
        Err(_) => ended(address),
    }
}

fn of_system(error: &RedisError) -> Option<&io::Error> {
    // The crate shares its causes, and names what it shares them in.
    error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?.downcast_ref()
}

/// What the server said, as it said it.
pub(super) fn text(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}
