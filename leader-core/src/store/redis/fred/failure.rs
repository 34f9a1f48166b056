//! What fred says, in words that tell what to do.

use ::fred::error::{Error, ErrorKind};

use super::super::address::Address;
use super::super::client::failure::{closed, ended, hide, no_redis, of_io, of_server};
use super::super::connection::Failure;

pub(super) fn of(error: &Error, address: &Address) -> Failure {
    let text = error.details();
    match error.kind() {
        ErrorKind::Timeout => Failure::TimedOut,
        ErrorKind::IO => of_io(text, address),
        // No answer at all to a login, which fred takes for one of the wrong kind.
        ErrorKind::Protocol if text.starts_with("Expected string") => closed(address),
        ErrorKind::Protocol => no_redis(address),
        _ if is_of_server(text) => of_server(&hide(text, address)),
        _ => ended(address),
    }
}

/// Errors of the server begin with a word in capitals: `NOPERM this user has no permissions …`.
fn is_of_server(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    first.len() > 1 && first.bytes().all(|b| b.is_ascii_uppercase())
}
