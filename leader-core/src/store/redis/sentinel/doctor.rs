//! What is wrong with the sentinels themselves.

use std::net::IpAddr;

use super::super::address::Server;
use super::super::connection::{Failure, Reply};
use super::super::failure::denied;
use crate::doctor::{Finding, some_of};

/// What one sentinel says of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// So many sentinels watch it, with this one, and so many have to agree that the primary is gone.
    Watched { sentinels: u64, quorum: u64 },
    /// It may not be asked that.
    Nothing,
    /// Why nothing is to be expected of it.
    Useless(String),
}

/// Reads what `SENTINEL MASTER` was answered.
pub(super) fn read(answer: Result<Reply, Failure>) -> Word {
    match answer {
        Ok(Reply::List(fields)) => match (number(&fields, "num-other-sentinels"), number(&fields, "quorum")) {
            (Some(others), Some(quorum)) => Word::Watched { sentinels: others.saturating_add(1), quorum },
            _ => Word::Nothing,
        },
        Ok(_) => Word::Nothing,
        Err(Failure::Server(error)) if denied(&error).is_some() => Word::Nothing,
        Err(Failure::Server(error)) if error.contains("No such master") => {
            Word::Useless("it watches no service of this name".to_owned())
        }
        // A question is nothing to confirm.
        Err(Failure::TimedOut | Failure::Unconfirmed { .. }) => Word::Useless("it did not answer in time".to_owned()),
        Err(Failure::Server(cause) | Failure::Unreachable(cause) | Failure::Impossible { cause, .. }) => {
            Word::Useless(cause)
        }
    }
}

/// Names and values take turns.
fn number(fields: &[Reply], wanted: &str) -> Option<u64> {
    fields.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Text(name), Reply::Text(value)] if name == wanted => value.parse().ok(),
        _ => None,
    })
}

/// `words`: of all sentinels that the URL names.
pub(super) fn judge(service: &str, words: &[(Server, Word)]) -> Vec<Finding> {
    let useless: Vec<String> = words
        .iter()
        .filter_map(
            |(server, word)| if let Word::Useless(cause) = word { Some(format!("{server} ({cause})")) } else { None },
        )
        .collect();
    // If none can be asked, that is not a finding but the reason why there is none.
    let silent = (!useless.is_empty() && useless.len() < words.len()).then(|| {
        Finding::warning(
            format!("{} of {} sentinels are of no use: {}", useless.len(), words.len(), some_of(&useless)),
            "when more of them fail, the primary is not found any more, and none may be promoted in its place",
            "see that they run, can be reached from here, and watch the service; or take them out of the URL",
        )
        .coded("sentinels-silent")
    });
    let counts = words.iter().filter_map(|(_, word)| match word {
        Word::Watched { sentinels, quorum } => Some((*sentinels, *quorum)),
        _ => None,
    });
    let Some((sentinels, quorum)) = counts.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))) else {
        return silent.into_iter().collect();
    };
    let few = if sentinels < quorum {
        Some(format!("{sentinels} sentinel(s) watch the service `{service}`, and {quorum} have to agree (quorum)"))
    } else {
        (sentinels == 1).then(|| format!("one sentinel alone watches the service `{service}`"))
    };
    let few = few.map(|what| {
        let why = if sentinels < quorum {
            "when the primary fails, none takes its place, and nobody leads until it is back"
        } else {
            "while that one is away, the primary is not found, and none takes its place if it fails"
        };
        let advice = "let three or more sentinels on different hosts watch it, with a quorum of more than half of them";
        Finding::warning(what, why, advice).coded("sentinels-few")
    });
    // A name may stand for all of them, as that of a service of Kubernetes does.
    let is_one = matches!(words, [(server, _)] if server.host.parse::<IpAddr>().is_ok());
    let unnamed = (is_one && sentinels > 1).then(|| {
        Finding::warning(
            format!("the URL names one of the {sentinels} sentinels of the service `{service}`"),
            "while that one is away, no new connection finds the primary, although the others know it",
            "name all of them in the URL: redis-sentinel://host1,host2,host3/service",
        )
        .coded("sentinels-unnamed")
    });
    [silent, few, unnamed].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(words: &[Word]) -> Vec<(&'static str, String)> {
        judged_at(words, |n| format!("10.0.0.{n}"))
    }

    fn judged_at(words: &[Word], host: impl Fn(usize) -> String) -> Vec<(&'static str, String)> {
        let server = |n: usize| Server { host: host(n), port: 26379 };
        let words: Vec<_> = words.iter().enumerate().map(|(n, word)| (server(n), word.clone())).collect();
        judge("jobs", &words).into_iter().map(|finding| (finding.code, finding.to_string())).collect()
    }

    fn watched(sentinels: u64, quorum: u64) -> Word {
        Word::Watched { sentinels, quorum }
    }

    #[test]
    fn a_quorum_that_all_are_named_and_answer_is_nothing_to_find() {
        assert_eq!(judged(&[watched(3, 2), watched(3, 2), watched(3, 2)]), []);
        assert_eq!(judged(&[watched(5, 3), watched(5, 3)]), [], "two of five are enough to begin with");
        assert_eq!(judged(&[Word::Nothing]), [], "who may not ask knows nothing");
    }

    #[test]
    fn what_is_short_of_sentinels_is_told() {
        let [("sentinels-few", text)] = &judged(&[watched(2, 3), watched(2, 3)])[..] else { panic!() };
        assert!(text.contains("2 sentinel(s) watch the service `jobs`, and 3 have to agree"), "{text}");
        let [("sentinels-few", text)] = &judged(&[watched(1, 1)])[..] else { panic!() };
        assert!(text.contains("one sentinel alone"), "{text}");
        let [("sentinels-unnamed", text)] = &judged(&[watched(3, 2)])[..] else { panic!() };
        assert!(text.contains("one of the 3 sentinels"), "{text}");
        let gone = Word::Useless("connection refused".to_owned());
        let [("sentinels-silent", text)] = &judged(&[watched(3, 2), gone.clone(), watched(3, 2)])[..] else { panic!() };
        assert!(text.starts_with("1 of 3 sentinels are of no use: 10.0.0.1:26379 (connection refused)"), "{text}");
        assert_eq!(judged(&[gone.clone(), gone]), [], "then the primary is not found, which is an error");
    }

    #[test]
    fn a_name_may_stand_for_all_sentinels_and_an_address_does_not() {
        let at = |host: &'static str| judged_at(&[watched(3, 2)], |_| host.to_owned());
        assert_eq!(at("redis-sentinel.ns.svc"), []);
        for address in ["10.0.0.1", "fd00::1"] {
            assert!(matches!(at(address)[..], [("sentinels-unnamed", _)]), "{address}");
        }
    }

    #[test]
    fn answers_are_read() {
        let fields = ["name", "jobs", "num-other-sentinels", "2", "quorum", "2"];
        let fields = Reply::List(fields.iter().map(|text| Reply::Text((*text).to_owned())).collect());
        assert_eq!(read(Ok(fields)), watched(3, 2));
        assert_eq!(read(Ok(Reply::List(Vec::new()))), Word::Nothing);
        let says = |error: &str| read(Err(Failure::Server(error.to_owned())));
        assert_eq!(says("NOPERM this user has no permissions to run the 'sentinel|master' command"), Word::Nothing);
        assert_eq!(
            says("ERR No such master with that name"),
            Word::Useless("it watches no service of this name".to_owned())
        );
        assert!(matches!(says("NOAUTH Authentication required."), Word::Useless(_)));
        assert!(matches!(read(Err(Failure::TimedOut)), Word::Useless(_)));
    }
}
