//! What the server and the connection say, as errors that tell what to do.

use std::time::Duration;

use super::connection::Failure;
use super::keys::Keys;
use crate::error::StoreError;

/// What a failure means for whoever `attempted` something within `timeout`.
pub(super) fn store_error(failure: Failure, attempted: String, timeout: Duration, keys: &Keys) -> StoreError {
    match failure {
        Failure::Unreachable(cause) => StoreError::Unavailable { attempted, cause },
        Failure::TimedOut => StoreError::TimedOut { attempted, after: timeout },
        Failure::Impossible { cause, advice } => StoreError::Refused { attempted, cause, advice },
        Failure::Server(cause) => match advice(&cause, keys) {
            Some(advice) => StoreError::Refused { attempted, cause, advice },
            None => StoreError::Unavailable { attempted, cause },
        },
    }
}

/// A new connection may find another server, or be let in again; this one will not.
pub(super) fn calls_for_a_new_link(error: &str) -> bool {
    ["READONLY", "MASTERDOWN", "LOADING", "NOAUTH", "WRONGPASS"].contains(&code(error))
}

/// The script is not in the server's memory.
pub(super) fn is_unknown_script(error: &str) -> bool {
    code(error) == "NOSCRIPT"
}

fn code(error: &str) -> &str {
    error.split_once(' ').map_or(error, |(code, _)| code)
}

/// What to do about an error that does not pass by itself; `None` for one that may.
fn advice(error: &str, keys: &Keys) -> Option<String> {
    let advice = match code(error) {
        "NOAUTH" => "write the password into the URL: redis://:PASSWORD@host:6379 or redis://USER:PASSWORD@host:6379",
        "WRONGPASS" => "correct user and password in the URL (special characters are percent-encoded there)",
        "NOPERM" => {
            return Some(format!("allow it: ACL SETUSER <user> {}", keys.permissions()));
        }
        "WRONGTYPE" => {
            "another application uses this key: choose another prefix (Config::prefix, LEADER_PREFIX) for one of the two, \
             or delete the key if nobody needs it"
        }
        "READONLY" => "this is a replica: name the primary in the URL",
        "MISCONF" => {
            "the server cannot write its snapshot, and accepts no writes: see its log, and make room on its disk"
        }
        "OOM" => {
            "the server's memory is full: raise maxmemory, or free memory. A lease that is held is renewed, a new one is \
             not given"
        }
        "NOREPLICAS" => {
            "too few replicas are in step with the server: see that they run, or lower its min-replicas-to-write"
        }
        "CROSSSLOT" | "MOVED" | "ASK" => "this server is part of a cluster, and the URL means a single server",
        "DENIED" => "the server is in protected mode: set a password, or the address that it listens on (bind)",
        "ERR" if error.contains("DB index") || error.contains("SELECT is not allowed") => {
            "the URL ends with the number of a database that this server does not have: redis://host:6379/0"
        }
        "ERR" if error.contains("unknown command") => {
            "this is not a whole Redis server (a proxy, or renamed commands): scripts with their commands are needed"
        }
        "ERR" if error.contains("largest number that a record can hold") => {
            "somebody wrote to the record of this group: stop all its instances, delete the record, and start them again"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: &str) -> StoreError {
        let failure = Failure::Server(error.to_owned());
        store_error(failure, "acquire of a on redis://host".to_owned(), Duration::from_secs(1), &Keys::new("leader:"))
    }

    #[test]
    fn what_does_not_pass_by_itself_says_what_to_do() {
        for (error, advice) in [
            ("NOAUTH Authentication required.", "redis://USER:PASSWORD@"),
            ("WRONGPASS invalid username-password pair or user is disabled.", "percent-encoded"),
            ("NOPERM this user has no permissions to run the 'evalsha' command", "+evalsha"),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", "LEADER_PREFIX"),
            ("READONLY You can't write against a read only replica.", "primary"),
            ("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to", "disk"),
            ("OOM command not allowed when used memory > 'maxmemory'.", "maxmemory"),
            ("NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
            ("MOVED 3999 127.0.0.1:6381", "cluster"),
            ("ERR DB index is out of range", "redis://host:6379/0"),
            ("ERR unknown command 'EVALSHA', with args beginning with: ", "scripts"),
        ] {
            let refused = of(error);
            assert!(refused.is_permanent(), "{refused}");
            let text = refused.to_string();
            assert!(text.contains(error) && text.contains(advice) && text.contains("acquire of a on"), "{text}");
        }
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        for error in
            ["LOADING Redis is loading", "BUSY Redis is busy running a script", "ERR max number of clients reached"]
        {
            assert!(!of(error).is_permanent(), "{error}");
        }
    }
}
