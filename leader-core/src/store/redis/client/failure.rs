//! What the system, the TLS library and the server say to a client, in words that tell what to do.

use super::super::address::Address;
use super::super::connection::Failure;
use crate::doctor::shown;

/// The connection was ended by us, or its task has died.
pub(in super::super) fn ended(address: &Address) -> Failure {
    Failure::Unreachable(format!("the connection to {} has ended", address.server))
}

/// The connection was ended because a call on it got no answer.
pub(in super::super) fn given_up(address: &Address) -> Failure {
    let server = &address.server;
    Failure::Unreachable(format!("the connection to {server} was given up, as an earlier call got no answer"))
}

/// The other end has ended it.
pub(in super::super) fn closed(address: &Address) -> Failure {
    Failure::Unreachable(format!("{} closed the connection", address.server))
}

/// What the server said, in one line, but not what it was told: a server that does not know a command repeats its arguments,
/// and those of a login are user and password.
pub(in super::super) fn of_server(text: &str) -> Failure {
    let said = text.split(", with args beginning with").next().unwrap_or_default();
    Failure::Server(shown(said))
}

/// Refusals of a PING that do not mean that nobody may come in.
pub(in super::super) fn is_of_the_moment(error: &str) -> bool {
    ["BUSY ", "LOADING ", "MASTERDOWN ", "NOPERM "].iter().any(|code| error.starts_with(code)) || is_of_the_disk(error)
}

pub(in super::super) fn is_of_the_disk(error: &str) -> bool {
    error.starts_with("MISCONF ")
}

/// Whatever is between us and the server may have words of its own for a login that it refuses.
pub(in super::super) fn hide(text: &str, address: &Address) -> String {
    match &address.access.password {
        Some(password) if !password.is_empty() => text.replace(password, "***"),
        _ => text.to_owned(),
    }
}

/// The `Debug` text of an error of the system's, which is all that some clients keep of it: what is known of it is found by
/// looking for the names in there. Such as `Os { code: 111, kind: ConnectionRefused, message: "Connection refused" }`.
pub(in super::super) fn of_io(text: &str, address: &Address) -> Failure {
    let server = &address.server;
    let names = |kinds: &[&str]| kinds.iter().any(|kind| text.contains(kind));
    // Once TLS has begun, its sudden end is one like any other.
    if address.access.tls && names(&["InvalidData", "tls handshake eof"]) {
        return of_tls(text, address);
    }
    Failure::Unreachable(if names(&["ConnectionRefused"]) {
        format!("connection refused by {server}")
    } else if names(&["failed to lookup address", "Failed to resolve"]) {
        let detail =
            text.split_once("information: ").map_or("", |(_, detail)| detail.trim_end_matches(['"', ' ', '}']));
        format!("no address is found for the host name `{}`: {detail}", server.host)
    } else if names(&["Connection closed", "UnexpectedEof", "ConnectionReset", "ConnectionAborted", "BrokenPipe"]) {
        return closed(address);
    } else {
        let message = text.split_once("message: \"").and_then(|(_, rest)| rest.split_once('"'));
        format!("{server}: {}", message.map_or(text, |(message, _)| message))
    })
}

/// Such as `Custom { kind: InvalidData, error: InvalidCertificate(UnknownIssuer) }`.
fn of_tls(text: &str, address: &Address) -> Failure {
    let server = &address.server;
    let names = |kinds: &[&str]| kinds.iter().any(|kind| text.contains(kind));
    let (cause, advice) = if names(&["InvalidMessage", "tls handshake eof"]) {
        return no_tls(address);
    } else if names(&["UnknownIssuer", "BadSignature"]) {
        (
            format!("the certificate of {server} is signed by nobody who is trusted here"),
            "name the file with the certificate of its CA in the URL: `?ca=/path/to/ca.pem`",
        )
    } else if names(&["NotValidForName"]) {
        (
            format!("the certificate of {server} is not for `{}`", server.host),
            "use a host that the certificate names, or have one made for this name",
        )
    } else if names(&["Expired"]) {
        (
            format!("the certificate of {server} has expired"),
            "give the server a new certificate, or see that the clock here is right",
        )
    } else if names(&["UnknownCA", "BadCertificate", "CertificateUnknown", "DecryptError", "AccessDenied"]) {
        (
            format!("{server} does not accept our certificate"),
            "let `cert` in the URL name one by a CA that the server trusts, and those between the two",
        )
    } else if names(&["CertificateRequired"]) {
        (
            format!("{server} asks for a certificate of the client, and the URL names none"),
            "name ours in the URL, `?cert=/path/to/client.pem&key=/path/to/client.key`, or set `tls-auth-clients no` at the server",
        )
    } else {
        let detail = text.split_once("error: ").map_or(text, |(_, detail)| detail.trim_end_matches([' ', '}']));
        (
            format!("{server} and this client do not agree on TLS: {detail}"),
            "see that the server's certificate and its versions of TLS are in order",
        )
    };
    Failure::Impossible { cause, advice: advice.to_owned() }
}

pub(in super::super) fn no_tls(address: &Address) -> Failure {
    Failure::Impossible {
        cause: format!("{} does not speak TLS", address.server),
        advice: "use a `redis://` URL (`redis-sentinel://` for sentinels), or the port where the server does"
            .to_owned(),
    }
}

pub(in super::super) fn tls_only(address: &Address) -> Failure {
    Failure::Impossible {
        cause: format!("{} speaks TLS, not plain text", address.server),
        advice: "use a `rediss://` URL (`rediss-sentinel://` for sentinels, `rediss-cluster://` for a cluster), or the port for \
                 plain text"
            .to_owned(),
    }
}

pub(in super::super) fn no_redis(address: &Address) -> Failure {
    let server = &address.server;
    Failure::Impossible {
        cause: format!("{server} does not speak the protocol of Redis"),
        advice: "see that host and port are those of a Redis server".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_line_without_what_it_was_told() {
        for (text, said) in [
            ("ERR unknown command 'AUTH', with args beginning with: 'secret'", "ERR unknown command 'AUTH'"),
            ("ERR \u{1b}[2J\r\n2026 a line", "ERR ?[2J??2026 a line"),
        ] {
            assert_eq!(of_server(text), Failure::Server(said.to_owned()));
        }
    }
}
