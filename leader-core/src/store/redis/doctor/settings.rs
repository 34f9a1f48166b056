//! What only `CONFIG GET` tells.

use std::time::Duration;

use super::super::connection::{Failure, Reply};
use super::super::failure::denied;
use super::server::Info;
use crate::doctor::Finding;

/// A setting that matters where the server is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settings {
    /// After how long a silent replica counts as missing, in seconds.
    ReplicaLag,
    /// A slot without a node stops all others.
    FullCoverage,
}

impl Settings {
    pub(super) fn that_matter(info: &Info<'_>, as_node: bool) -> Vec<Self> {
        let lag = (!as_node && info.minds_replicas()).then_some(Self::ReplicaLag);
        let coverage = as_node.then_some(Self::FullCoverage);
        lag.into_iter().chain(coverage).collect()
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReplicaLag => "min-replicas-max-lag",
            Self::FullCoverage => "cluster-require-full-coverage",
        }
    }

    /// A promise depends on it: not to know it is a finding.
    pub(super) fn says_if_denied(self) -> bool {
        self == Self::ReplicaLag
    }

    /// `reply`: to `CONFIG GET`. What a service does not have cannot be put right there, so it is not told.
    pub(super) fn judge(self, reply: Result<Reply, Failure>, ttl: Duration) -> Option<Finding> {
        match (self, reply) {
            (_, Ok(Reply::List(pair))) => match &pair[..] {
                [_, Reply::Text(value)] => self.judge_value(value, ttl),
                _ => None,
            },
            (_, Err(Failure::Server(error))) if self.says_if_denied() && denied(&error).is_some() => Some(
                Finding::warning(
                    "whether min-replicas-max-lag is shorter than the ttl could not be checked, as the server's user lacks the \
                     permission +config|get",
                    "if it is not, a server that is cut off from its replicas confirms leases for too long",
                    "allow it: ACL SETUSER <user> +config|get",
                )
                .coded("replicas-lag"),
            ),
            _ => None,
        }
    }

    fn judge_value(self, value: &str, ttl: Duration) -> Option<Finding> {
        match self {
            Self::ReplicaLag => {
                let lag = Duration::from_secs(value.parse().ok()?);
                (lag >= ttl).then(|| {
                    Finding::warning(
                        format!("the server's min-replicas-max-lag is {lag:?}, which is not shorter than the ttl of {ttl:?}"),
                        "a server that is cut off from its replicas together with a leader confirms its lease for so long, and \
                         meanwhile one of them may take its place and give another",
                        format!(
                            "CONFIG SET min-replicas-max-lag {}, and the same in its configuration file; or choose a longer ttl",
                            (ttl.as_secs() / 2).max(1)
                        ),
                    )
                    .coded("replicas-lag")
                })
            }
            Self::FullCoverage => (value == "yes").then(|| {
                Finding::warning(
                    "cluster-require-full-coverage is yes",
                    "when one node fails, all groups are without a leader until its replica has taken its place, and not only \
                     those in its slots",
                    "CONFIG SET cluster-require-full-coverage no, and the same in the configuration file, on each node",
                )
                .coded("full-coverage")
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn is(setting: Settings, value: &str) -> Option<String> {
        let pair = [setting.name(), value].map(|text| Reply::Text(text.to_owned()));
        setting.judge(Ok(Reply::List(pair.into())), TTL).map(|finding| finding.to_string())
    }

    #[test]
    fn a_replica_may_be_silent_for_less_than_a_ttl() {
        assert_eq!(is(Settings::ReplicaLag, "9"), None);
        for long in ["10", "60"] {
            let text = is(Settings::ReplicaLag, long).unwrap();
            assert!(text.contains(&format!("is {long}s")) && text.contains("min-replicas-max-lag 5"), "{text}");
        }
    }

    #[test]
    fn full_coverage_is_told_and_its_absence_is_not() {
        assert!(is(Settings::FullCoverage, "yes").unwrap().contains("full-coverage no"));
        assert_eq!(is(Settings::FullCoverage, "no"), None);
    }

    #[test]
    fn what_may_not_be_read_is_told_where_a_promise_depends_on_it_and_what_does_not_exist_is_not() {
        let refused = |error: &str| Err(Failure::Server(error.to_owned()));
        let denied = "NOPERM this user has no permissions to run the 'config|get' command";
        let finding = Settings::ReplicaLag.judge(refused(denied), TTL).unwrap();
        assert!(finding.advice.ends_with("+config|get"), "{finding}");
        assert_eq!(Settings::FullCoverage.judge(refused(denied), TTL), None);
        for setting in [Settings::ReplicaLag, Settings::FullCoverage] {
            assert_eq!(setting.judge(refused("ERR unknown command 'CONFIG'"), TTL), None);
            assert_eq!(setting.judge(Ok(Reply::List(Vec::new())), TTL), None);
        }
    }
}
