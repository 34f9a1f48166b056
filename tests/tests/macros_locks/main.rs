//! `#[with_lock]` and `#[run_once]`: where they can stand, the order in which they take effect, and what becomes of body and
//! lock when things go as they should not.
#![expect(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

use leader_core::LockError;

/// Runs an expression while somebody else has the lock, and while it is free.
macro_rules! check {
    ($key:expr, $call:expr, $busy:expr, $free:expr) => {{
        let key: &str = &$key;
        assert_eq!(busy_then_free(key, || $call), ($busy, $free), "{key}");
    }};
}

mod held;
mod keys;
mod lost;
mod nesting;
mod once;
mod refused;
mod shapes;
mod stage;

/// An error that can tell of a lock.
#[derive(Debug, PartialEq)]
enum Error {
    Own(&'static str),
    Number(std::num::ParseIntError),
    Lock(LockError),
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl From<std::num::ParseIntError> for Error {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::Number(error)
    }
}

/// What an error is about; a value as it is.
fn told<T>(result: Result<T, Error>) -> Result<T, &'static str> {
    result.map_err(|error| match error {
        Error::Own(_) => "own",
        Error::Number(_) => "number",
        Error::Lock(LockError::Busy { .. }) => "busy",
        Error::Lock(_) => "lock",
    })
}
