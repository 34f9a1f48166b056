//! What only `CONFIG GET` tells.

use std::time::Duration;

use super::super::connection::{Failure, Reply};
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

    /// `reply`: to `CONFIG GET`. What a service does not have cannot be put right there, so it is not told; and nobody is urged
    /// to permit it, for whoever may read these two may read the passwords in the server's configuration, too.
    pub(super) fn judge(self, reply: Result<Reply, Failure>, ttl: Duration) -> Option<Finding> {
        let Ok(Reply::List(pair)) = reply else { return None };
        let [_, Reply::Text(value)] = &pair[..] else { return None };
        self.judge_value(value, ttl)
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
    fn what_may_not_be_read_and_what_does_not_exist_is_nothing_to_find() {
        let denied = "NOPERM this user has no permissions to run the 'config|get' command";
        for setting in [Settings::ReplicaLag, Settings::FullCoverage] {
            for error in [denied, "ERR unknown command 'CONFIG'"] {
                assert_eq!(setting.judge(Err(Failure::Server(error.to_owned())), TTL), None);
            }
            assert_eq!(setting.judge(Ok(Reply::List(Vec::new())), TTL), None);
        }
    }
}
