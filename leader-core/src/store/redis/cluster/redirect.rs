//! What a node says that does not have the slot of a key: who does. It has executed nothing.

use super::super::address::Server;
use super::super::connection::Failure;

/// Whom to ask instead.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Redirect {
    /// Another node has the slot.
    Moved(Server),
    /// The slot is about to move there, and the key has done so, or never was here: ask there, this once.
    Ask(Server),
}

impl Redirect {
    /// Whom the node `by` names in place of an answer, if it does.
    pub(in super::super) fn of(failure: &Failure, by: &Server) -> Option<Self> {
        let Failure::Server(error) = failure else { return None };
        let mut words = error.split(' ');
        let (code, _slot, node) = (words.next()?, words.next()?.parse::<u16>().ok()?, words.next()?);
        let (host, port) = node.rsplit_once(':')?;
        let host = match host {
            // The node does not know by which name it is reached itself: the others are where it is.
            "" => &by.host,
            // Nor does it know the name of that one.
            "?" => return None,
            host => host,
        };
        let server = Server::named(host, port.parse().ok()?)?;
        match code {
            "MOVED" => Some(Self::Moved(server)),
            "ASK" => Some(Self::Ask(server)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, port: u16) -> Server {
        Server { host: host.to_owned(), port }
    }

    fn of(error: &str, by: &Server) -> Option<Redirect> {
        Redirect::of(&Failure::Server(error.to_owned()), by)
    }

    #[test]
    fn who_has_the_slot_is_understood_however_it_is_named() {
        let by = server("10.0.0.1", 7000);
        for (error, there) in [
            ("MOVED 3999 127.0.0.1:6381", server("127.0.0.1", 6381)),
            ("MOVED 3999 node-3.redis.internal:6381", server("node-3.redis.internal", 6381)),
            ("MOVED 3999 2001:db8::1:6381", server("2001:db8::1", 6381)),
            ("MOVED 3999 [2001:db8::1]:6381", server("2001:db8::1", 6381)),
            ("MOVED 3999 :6381", server("10.0.0.1", 6381)),
        ] {
            assert_eq!(of(error, &by), Some(Redirect::Moved(there)), "{error}");
        }
        let ask = of("ASK 3999 127.0.0.1:6381", &by);
        assert_eq!(ask, Some(Redirect::Ask(server("127.0.0.1", 6381))));
    }

    #[test]
    fn what_names_nobody_is_no_redirection() {
        for error in [
            "MOVED 3999 ?:6381",
            "MOVED 3999 127.0.0.1",
            "MOVED 3999 127.0.0.1:0x1",
            "MOVED 3999 127.0.0.1:0",
            "MOVED 3999 []:6381",
            "MOVED 3999 a\r\nb:6381",
            "MOVED",
            "CLUSTERDOWN Hash slot not served",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "ERR 3999 127.0.0.1:6381",
        ] {
            assert_eq!(of(error, &server("a", 1)), None, "{error}");
        }
    }
}
