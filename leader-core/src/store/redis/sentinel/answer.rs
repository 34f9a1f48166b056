//! What a sentinel is asked, and what its answer means.

use super::super::address::Server;
use super::super::connection::{Failure, Reply, Request};
use super::super::failure::code;

/// What one sentinel has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Told {
    /// Where the primary is, and by which election.
    Primary(Found),
    /// It watches no service of this name.
    Unknown,
    /// Nothing, and that may pass.
    Nothing(String),
    /// Nothing, and that does not pass by itself.
    Refused { cause: String, advice: String },
}

/// A primary, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Found {
    pub(in super::super) server: Server,
    /// Of the election that made it the primary: later ones have larger numbers. 0 if that was not told.
    pub(in super::super) epoch: u64,
}

/// Asks for the address that clients are to use: during a failover that is the new one as soon as it takes writes.
pub(super) fn where_is(service: &str) -> Request {
    Request::new("SENTINEL", vec!["get-master-addr-by-name".to_owned(), service.to_owned()])
}

/// Asks for the rest, of which only the election counts.
pub(super) fn what_of(service: &str) -> Request {
    Request::new("SENTINEL", vec!["master".to_owned(), service.to_owned()])
}

/// What the answers to both mean.
pub(in super::super) fn read(from: &Server, place: Result<Reply, Failure>, rest: Result<Reply, Failure>) -> Told {
    let parts = match place {
        Ok(Reply::List(parts)) => parts,
        Ok(Reply::Nil) => return Told::Unknown,
        Ok(_) => return Told::Nothing(format!("{from} answered with something else than an address")),
        Err(failure) => return failed(from, failure),
    };
    let epoch = match rest {
        Ok(Reply::List(fields)) => epoch(&fields).unwrap_or_default(),
        // Not permitted.
        Ok(_) | Err(Failure::Server(_)) => 0,
        Err(failure) => return failed(from, failure),
    };
    match server(&parts) {
        Some(server) => Told::Primary(Found { server, epoch }),
        None => Told::Nothing(format!("{from} answered with an address that is none")),
    }
}

/// Why one sentinel tells nothing.
pub(super) fn failed(from: &Server, failure: Failure) -> Told {
    match failure {
        Failure::Unreachable(cause) => Told::Nothing(cause),
        // A question is nothing to confirm.
        Failure::TimedOut | Failure::Unconfirmed { .. } => Told::Nothing(format!("{from} did not answer in time")),
        Failure::Impossible { cause, advice } => Told::Refused { cause, advice },
        Failure::Server(error) => match advice(&error) {
            Some(advice) => {
                Told::Refused { cause: format!("the sentinel {from} says: {error}"), advice: advice.to_owned() }
            }
            None => Told::Nothing(format!("{from} says: {error}")),
        },
    }
}

fn server(parts: &[Reply]) -> Option<Server> {
    match parts {
        [Reply::Text(host), Reply::Text(port)] => Server::named(host, port.parse().ok()?),
        _ => None,
    }
}

/// Names and values take turns.
fn epoch(fields: &[Reply]) -> Option<u64> {
    fields.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Text(name), Reply::Text(value)] if name == "config-epoch" => value.parse().ok(),
        _ => None,
    })
}

/// What to do about an error that does not pass by itself.
fn advice(error: &str) -> Option<&'static str> {
    Some(match code(error) {
        "NOAUTH" => {
            "write what the sentinels ask for into the URL, which is not what the servers ask for: \
             `?sentinel_user=USER&sentinel_password=PASSWORD`, or the password alone"
        }
        "WRONGPASS" => {
            "correct `sentinel_user` and `sentinel_password` in the URL (special characters are percent-encoded there)"
        }
        "ERR" if error.contains("AUTH") && error.contains("without any password configured") => {
            "the sentinels ask for no password: remove `sentinel_password` from the URL"
        }
        "NOPERM" => {
            "allow it at the sentinels: ACL SETUSER <user> +ping +sentinel|get-master-addr-by-name +sentinel|master"
        }
        "ERR" if error.contains("unknown command") => {
            "this is no sentinel: name the ports of sentinels in the URL (26379 unless they say otherwise), or a server \
             itself by `redis://`"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Reply {
        Reply::Text(text.to_owned())
    }

    fn list(texts: &[&str]) -> Result<Reply, Failure> {
        Ok(Reply::List(texts.iter().map(|part| text(part)).collect()))
    }

    fn says<T>(error: &str) -> Result<T, Failure> {
        Err(Failure::Server(error.to_owned()))
    }

    fn from() -> Server {
        Server { host: "watcher".to_owned(), port: 26379 }
    }

    #[test]
    fn an_address_counts_with_the_number_of_its_election() {
        let found =
            |host: &str, epoch| Told::Primary(Found { server: Server { host: host.to_owned(), port: 6379 }, epoch });
        let rest = || list(&["name", "m", "config-epoch", "17", "num-slaves", "2"]);
        assert_eq!(read(&from(), list(&["10.0.0.1", "6379"]), rest()), found("10.0.0.1", 17));
        assert_eq!(read(&from(), list(&["fd00::1", "6379"]), rest()), found("fd00::1", 17));
        let denied = || says("NOPERM this user has no permissions to run the 'sentinel|master' command");
        assert_eq!(read(&from(), list(&["a.internal", "6379"]), denied()), found("a.internal", 0));
        assert_eq!(read(&from(), list(&["a", "6379"]), list(&["config-epoch"])), found("a", 0));
    }

    #[test]
    fn what_is_no_address_is_none() {
        let rest = || list(&["config-epoch", "17"]);
        assert_eq!(read(&from(), Ok(Reply::Nil), says("ERR No such master with that name")), Told::Unknown);
        for place in [
            list(&["a"]),
            list(&["", "6379"]),
            list(&["a b", "6379"]),
            list(&["a", "0"]),
            list(&["a", "x"]),
            Ok(text("a")),
        ] {
            assert!(matches!(read(&from(), place.clone(), rest()), Told::Nothing(_)), "{place:?}");
        }
        // It ended between the two answers: the number would be missing.
        let ended = Err(Failure::Unreachable("gone".to_owned()));
        assert_eq!(read(&from(), list(&["a", "6379"]), ended), Told::Nothing("gone".to_owned()));
    }

    #[test]
    fn what_does_not_pass_by_itself_says_what_to_do() {
        for (error, advised) in [
            ("NOAUTH Authentication required.", "sentinel_password=PASSWORD"),
            ("WRONGPASS invalid username-password pair or user is disabled.", "percent-encoded"),
            ("ERR AUTH <password> called without any password configured for the default user. Are", "remove"),
            ("NOPERM this user has no permissions to run the 'sentinel' command", "+sentinel|get-master-addr-by-name"),
            ("ERR unknown command 'SENTINEL'", "no sentinel"),
        ] {
            let told = failed(&from(), Failure::Server(error.to_owned()));
            let Told::Refused { cause, advice } = told else { panic!("{told:?}") };
            assert!(cause.contains("watcher:26379") && cause.contains(error) && advice.contains(advised), "{advice}");
        }
        for failure in [
            Failure::TimedOut,
            Failure::Unreachable("connection refused by watcher:26379".to_owned()),
            Failure::Server("LOADING whatever".to_owned()),
        ] {
            let told = failed(&from(), failure);
            assert!(matches!(&told, Told::Nothing(cause) if cause.contains("watcher:26379") ), "{told:?}");
        }
    }
}
