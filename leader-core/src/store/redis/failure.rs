//! What the server and the connection say, as errors that tell what to do.

use std::num::NonZeroU8;
use std::time::Duration;

use super::connection::Failure;
use super::keys::Keys;
use crate::error::StoreError;

/// What a failure means for whoever `attempted` something within `timeout`.
pub(super) fn store_error(failure: Failure, attempted: String, timeout: Duration, keys: &Keys) -> StoreError {
    match failure {
        Failure::Unreachable(cause) => StoreError::Unavailable { attempted, cause },
        Failure::TimedOut => {
            // Something of the time-out is gone before a call begins; nobody wants to read that.
            let after = Duration::from_millis(u64::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(u64::MAX));
            StoreError::TimedOut { attempted, after }
        }
        Failure::Unconfirmed { by, of } => StoreError::Unavailable { attempted, cause: unconfirmed(by, of) },
        Failure::Impossible { cause, advice } => StoreError::Refused { attempted, cause, advice },
        Failure::Server(cause) => match advice(&cause, keys) {
            Some(advice) => StoreError::Refused { attempted, cause, advice },
            None => StoreError::Unavailable { attempted, cause },
        },
    }
}

/// It passes as soon as replicas are back, and was written all the same: so it is tried again, and says what to do meanwhile.
fn unconfirmed(by: Option<u8>, of: NonZeroU8) -> String {
    let by = by.map_or_else(|| "not all".to_owned(), |by| by.to_string());
    format!(
        "{by} of the {of} replicas that have to confirm it did so in time, and without them it does not count: see that they run \
         and follow this server, or lower Config::replicas (LEADER_REPLICAS)"
    )
}

/// A new connection may find another server, or be let in again; this one will not.
pub(super) fn calls_for_a_new_link(error: &str) -> bool {
    ["READONLY", "MASTERDOWN", "LOADING", "NOAUTH", "WRONGPASS"].contains(&code(error))
}

/// The script is not in the server's memory.
pub(super) fn is_unknown_script(error: &str) -> bool {
    code(error) == "NOSCRIPT"
}

/// What the server's user may not do, where an error says so. Of a command inside of a script, not every version says it
/// by a code.
pub(super) fn denied(error: &str) -> Option<Denied> {
    let text = said(error);
    let is = |part| text.contains(part);
    if code(text) != "NOPERM" && !is("The user executing the script can't") && !is("ACL failure in script") {
        None
    } else if is("to run the") || is("can't run this") {
        Some(Denied::Command)
    } else if is("channel") {
        Some(Denied::Channel)
    } else {
        Some(Denied::Key)
    }
}

/// Which kind of permission is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    Command,
    Key,
    Channel,
}

/// The word that an error begins with: `OOM`.
pub(super) fn code(error: &str) -> &str {
    let text = said(error);
    text.split_once(' ').map_or(text, |(code, _)| code)
}

/// Redis 6.2 wraps what a command inside of a script has said:
/// `ERR Error running script (call to f_1f…): @user_script:1: @user_script: 1: -OOM command not allowed …`
fn said(error: &str) -> &str {
    let mut text = error;
    if let Some(rest) = text.strip_prefix("ERR Error running script") {
        text = rest.split_once("): ").map_or(rest, |(_, rest)| rest);
    }
    while let Some(rest) = text.strip_prefix("@user_script:") {
        text = rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
        text = text.strip_prefix(": ").unwrap_or(text);
    }
    text.strip_prefix('-').unwrap_or(text)
}

/// What to do about an error that does not pass by itself; `None` for one that may.
fn advice(error: &str, keys: &Keys) -> Option<String> {
    if let Some(denied) = denied(error) {
        return Some(keys.rights().advice(denied));
    }
    let advice = match code(error) {
        "NOAUTH" => {
            "write the server's password into the URL, before the host: redis://:PASSWORD@host:6379 or redis://USER:PASSWORD@host:6379"
        }
        "WRONGPASS" => "correct user and password in the URL (special characters are percent-encoded there)",
        "WRONGTYPE" => {
            "another application uses this key: choose another prefix (Config::prefix, LEADER_PREFIX) for one of the two, \
             or delete the key if nobody needs it"
        }
        "READONLY" => "this is a replica: name the primary in the URL",
        "MISCONF" => "the server cannot write to its disk, and accepts no writes: see its log, and make room",
        "OOM" => {
            "the server's memory is full: raise maxmemory, or free memory. A lease that is held is renewed, a new one is \
             not given"
        }
        "NOREPLICAS" => {
            "too few replicas are in step with the server: see that they run, or lower its min-replicas-to-write"
        }
        "CROSSSLOT" | "MOVED" | "ASK" => {
            "this server is part of a cluster, and the URL means a single server: write redis-cluster:// in place of redis://"
        }
        "DENIED" => "the server is in protected mode: set a password, or the address that it listens on (bind)",
        "ERR" if error.contains("DB index") || error.contains("SELECT is not allowed") => {
            "the URL ends with the number of a database that this server does not have: redis://host:6379/0"
        }
        "ERR" if error.contains("unknown command") => {
            "this is not a whole Redis server (a proxy, or renamed commands): scripts with their commands are needed; if it is a \
             sentinel, write redis-sentinel://host:26379/service"
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
    fn what_a_script_may_not_do_is_recognized_in_the_words_of_each_version() {
        for (error, what) in [
            ("NOPERM this user has no permissions to run the 'evalsha' command", Denied::Command),
            ("NOPERM this user has no permissions to run the 'evalsha' command or its subcommand", Denied::Command),
            ("NOPERM this user has no permissions to access one of the keys used as arguments", Denied::Key),
            ("NOPERM this user has no permissions to access one of the channels used as arguments", Denied::Channel),
            ("NOPERM No permissions to access a key", Denied::Key),
            ("NOPERM No permissions to access a channel", Denied::Channel),
            ("@user_script: 2: The user executing the script can't run this command or subcommand", Denied::Command),
            ("ERR The user executing the script can't run this command or subcommand", Denied::Command),
            (
                "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
                Denied::Key,
            ),
            (
                "ERR The user executing the script can't publish to the channel mentioned in the command",
                Denied::Channel,
            ),
            ("ERR ACL failure in script: User app has no permissions to run the 'set' command", Denied::Command),
            ("ERR ACL failure in script: No permissions to access a key", Denied::Key),
            (
                "ERR Error running script (call to f_104ae65debf4): @user_script:1: @user_script: 1: The user executing the \
                 script can't run this command or subcommand",
                Denied::Command,
            ),
        ] {
            assert_eq!(denied(error), Some(what), "{error}");
            assert!(of(error).is_permanent() && of(error).to_string().contains("ACL SETUSER"), "{error}");
        }
        assert_eq!(denied("WRONGTYPE Operation against a key holding the wrong kind of value"), None);
    }

    #[test]
    fn what_a_user_lacks_is_added_and_nothing_is_taken_away_and_no_pattern_comes_twice() {
        for (error, patterns) in [
            ("NOPERM No permissions to access a key", &["~leader:*", "~{leader:*"][..]),
            ("NOPERM No permissions to access a channel", &["&leader:*"]),
            ("NOPERM this user has no permissions to run the 'evalsha' command", &[]),
        ] {
            let text = of(error).to_string();
            let (_, rules) = text.split_once("ACL SETUSER <user> ").unwrap();
            let (commands, others): (Vec<_>, Vec<_>) = rules.split(' ').partition(|rule| rule.starts_with('+'));
            assert_eq!(others, patterns, "{text}");
            assert!(commands.contains(&"+evalsha"), "{text}");
        }
    }

    #[test]
    fn the_code_of_an_error_is_found_inside_of_what_a_script_makes_of_it() {
        for (error, found) in [
            ("@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.", "OOM"),
            (
                "ERR Error running script (call to f_29): @user_script:1: @user_script: 1: -READONLY You can't write against",
                "READONLY",
            ),
            ("READONLY You can't write against a read only replica. script: on @user_script:1.", "READONLY"),
            ("ERR Error running script (call to f_29): @user_script:1: user_script:1: attempt to", "user_script:1:"),
            ("OOM", "OOM"),
        ] {
            assert_eq!(code(error), found);
        }
        assert!(of("@user_script: 45: -MISCONF Redis is configured to save RDB snapshots").is_permanent());
    }

    #[test]
    fn what_replicas_did_not_confirm_passes_and_says_how_many_there_were() {
        let of = |by| {
            let failure = Failure::Unconfirmed { by, of: NonZeroU8::new(2).unwrap() };
            let error = store_error(
                failure,
                "renew of a on redis://host".to_owned(),
                Duration::from_secs(1),
                &Keys::new("leader:"),
            );
            assert!(!error.is_permanent());
            error.to_string()
        };
        let text = of(Some(1));
        assert!(text.starts_with("renew of a on redis://host failed: 1 of the 2 replicas"), "{text}");
        assert!(text.contains("lower Config::replicas"), "{text}");
        assert!(of(None).contains("not all of the 2 replicas"));
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
