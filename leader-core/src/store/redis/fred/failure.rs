//! What fred, the system and the TLS library say, in words that tell what to do.
//!
//! fred keeps of an error only its `Debug` text: what is known of it is found by looking for the names in there.

use ::fred::error::{Error, ErrorKind};

use super::super::address::Address;
use super::super::connection::Failure;

/// The connection was ended by us, or its task has died.
pub(super) fn ended(address: &Address) -> Failure {
    Failure::Unreachable(format!("the connection to {} has ended", address.server))
}

/// The connection was ended because a call on it got no answer.
pub(super) fn given_up(address: &Address) -> Failure {
    let server = &address.server;
    Failure::Unreachable(format!("the connection to {server} was given up, as an earlier call got no answer"))
}

pub(super) fn of(error: &Error, address: &Address) -> Failure {
    let text = error.details();
    match error.kind() {
        ErrorKind::Timeout => Failure::TimedOut,
        ErrorKind::IO => of_io(text, address),
        #[cfg(feature = "redis-tls")]
        ErrorKind::Tls => of_tls(text, address).unwrap_or_else(|| Failure::Unreachable(text.to_owned())),
        ErrorKind::Protocol => no_redis(address),
        _ if is_of_server(text) => Failure::Server(text.to_owned()),
        _ => ended(address),
    }
}

/// `Os { code: 111, kind: ConnectionRefused, message: "Connection refused" }`, `Custom { kind: InvalidData, error: … }`
fn of_io(text: &str, address: &Address) -> Failure {
    let server = &address.server;
    if let Some(failure) = of_tls(text, address) {
        return failure;
    }
    let names = |kinds: &[&str]| kinds.iter().any(|kind| text.contains(kind));
    Failure::Unreachable(if names(&["ConnectionRefused"]) {
        format!("connection refused by {server}")
    } else if names(&["failed to lookup address", "Failed to resolve"]) {
        let detail =
            text.split_once("information: ").map_or("", |(_, detail)| detail.trim_end_matches(['"', ' ', '}']));
        format!("no address is found for the host name `{}`: {detail}", server.host)
    } else if names(&["Connection closed", "UnexpectedEof", "ConnectionReset", "ConnectionAborted", "BrokenPipe"]) {
        format!("{server} closed the connection")
    } else {
        let message = text.split_once("message: \"").and_then(|(_, rest)| rest.split_once('"'));
        format!("{server}: {}", message.map_or(text, |(message, _)| message))
    })
}

fn of_tls(text: &str, address: &Address) -> Option<Failure> {
    let server = &address.server;
    let (cause, advice) = if text.contains("InvalidContentType") || text.contains("InvalidMessage") {
        (format!("{server} does not speak TLS"), "use a `redis://` URL, or the server's TLS port")
    } else if text.contains("UnknownIssuer") {
        (
            format!("the certificate of {server} is signed by nobody who is trusted here"),
            "name the right CA with `?ca=/path/to/ca.pem`",
        )
    } else {
        return None;
    };
    Some(Failure::Impossible { cause, advice: advice.to_owned() })
}

fn no_redis(address: &Address) -> Failure {
    let server = &address.server;
    let advice = if address.tls {
        "see that host and port are those of a Redis server"
    } else {
        "use a `rediss://` URL if it expects TLS; see that host and port are those of a Redis server"
    };
    Failure::Impossible { cause: format!("{server} does not speak the protocol of Redis"), advice: advice.to_owned() }
}

/// Errors of the server begin with a word in capitals: `NOPERM this user has no permissions …`.
fn is_of_server(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    first.len() > 1 && first.bytes().all(|b| b.is_ascii_uppercase())
}
