//! What is unsafe or broken about a store, or about how it is used: what, why it matters, what to do.

mod place;
#[cfg_attr(
    not(any(feature = "redis-fred", feature = "redis-rs", feature = "sqlite")),
    allow(dead_code, reason = "for the stores that processes share")
)]
mod same_id;
#[cfg_attr(
    not(any(feature = "redis-fred", feature = "redis-rs", feature = "sqlite")),
    allow(dead_code, reason = "for the stores that processes share")
)]
mod several;
#[cfg_attr(
    not(any(feature = "redis-fred", feature = "redis-rs", feature = "sqlite")),
    allow(dead_code, reason = "for the stores that processes share")
)]
mod work;

use std::fmt;

use crate::error::StoreError;
use crate::group::GroupName;

#[cfg(feature = "sqlite")]
pub(crate) use place::is_orchestrated;
pub(crate) use place::of_the_place;
#[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
pub(crate) use several::{NAMED, some_of};
#[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
pub(crate) use work::has_jobs;
#[cfg(feature = "sqlite")]
pub(crate) use work::jobs_in;
pub(crate) use work::lines_of_jobs;
#[cfg(any(feature = "redis-fred", feature = "redis-rs", feature = "sqlite"))]
pub(crate) use {
    same_id::{same_id, this_process},
    several::Several,
    work::{describe, judge_ttl, lack, other_jobs, other_program, other_ttl, shown},
};

/// Something that somebody should change about the store, or about how it is used.
///
/// [`Elector::doctor`](crate::Elector::doctor) looks for them, and a [store](crate::store::LeaseStore::examine) finds them.
/// Its `Display` is one line with all of it, as it stands in the log.
///
/// # Codes
/// Errors are marked with **E**, warnings with W; **E**/W depends on what its meaning says.
///
/// | code | severity | meaning | what to do |
/// |---|---|---|---|
/// | `not-examined` | W | the store is away, or refused to be looked at | see that it answers |
/// | `unchecked` | W | a part of it could not be looked at: the text says which, and why | ask again by `Elector::doctor` |
/// | `not-shared` | **E**/W | instances elsewhere cannot share this store, and the surroundings look like a fleet: **E** in Kubernetes, W in ECS, Nomad, Cloud Run, Azure Container Apps and on Fly.io | use a store that hosts share |
/// | `same-id` | **E** | another elector that lives has the same stable instance id; on SQLite only if they have a group in common | give each its own |
/// | `other-ttl` | W | the leader of a group has another ttl than this instance | give all the same; or on Redis tell all of them the largest, by `Config::shortest_quarantine` |
/// | `other-jobs` | W | a leader of the same program lacks functions or jobs of this instance, or any leader has another schedule for them: usually a rolling update | let the update come to its end |
/// | `other-program` | **E** | a leader of another program lacks functions or jobs of this instance | use other groups, or another prefix |
/// | `server-too-old` | W | Redis before 6.2 | update it |
/// | `no-identity` | W | `INFO` does not tell the server's run id and replication id | use Redis or Valkey themselves |
/// | `cluster-node` | **E** | the server in the URL is part of a cluster | write `redis-cluster://` |
/// | `loading` | W | the server loads its data | wait |
/// | `replica` | **E** | the server is a replica | name the primary |
/// | `memory-full` | **E** | `maxmemory` is reached | raise it, or free memory |
/// | `memory-nearly-full` | W | more than 90 % of `maxmemory` are in use | the same |
/// | `evicting` | **E**/W | a `maxmemory-policy` other than `noeviction`: **E** if there is a limit | set `noeviction` |
/// | `replicas-missing` | **E** | fewer replicas are in step than `min-replicas-to-write`, or than [`Config::replicas`](crate::Config::replicas) | see that they run |
/// | `disk-failing` | **E** | the server could not save its data | make room on its disk |
/// | `not-waited-for` | W | there are replicas that leases need not have reached | set `Config::replicas` to the number of all, or `min-replicas-to-write` |
/// | `replicas-lag` | W | `min-replicas-max-lag` is not shorter than the ttl; needs `+config\|get` to be found | set it to less than the ttl |
/// | `no-replica` | W | nothing can take the place of a primary that sentinels watch, or of a node of a cluster | start a replica |
/// | `sentinels-few` | W | the service has fewer sentinels than its quorum, or only one | start more, or lower the quorum |
/// | `sentinels-unnamed` | W | the URL names one sentinel of several, by its IP address | name all |
/// | `sentinels-silent` | W | sentinels that the URL names do not answer, or do not know the service | see that they run, or take them out of the URL |
/// | `full-coverage` | W | one failed node stops the whole cluster; needs `+config\|get` to be found | set `cluster-require-full-coverage no` |
/// | `slots-lost` | **E** | no node has the slots of some groups | give them to a node |
/// | `slots-uncovered` | W | no node has some other slots | the same |
/// | `cluster-down` | **E** | the cluster takes no commands | see that most of its primaries run |
/// | `no-permission` | **E**/W | the server's user lacks rights: **E** without which nobody leads | the `ACL SETUSER` that adds them is in the text |
/// | `deaf` | W | nobody can listen to announced releases | see what the server says |
/// | `wrong-type` | **E** | somebody else's keys stand under the names of ours | choose another prefix |
/// | `lease-without-end` | **E** | a lease that never ends | delete the key |
/// | `foreign-lease` | W | a leader that keeps no record | choose another prefix, unless it takes part on purpose |
/// | `clock-apart` | **E**/W | the wall clocks of this host and of the Redis server differ: W from 2 s on, **E** from 30 s on if there are jobs of a group | set both by NTP |
/// | `clock-jumped` | W | the Redis server's wall clock was set in the last ten minutes | let it be slewed, not stepped |
/// | `network-file` | **E**/W | the SQLite file is on a network file system, which is **E**, or on FUSE | put it on a local disk |
/// | `container-file` | W | the SQLite file is in a container's own layer | put it on a volume that the instances share |
/// | `open-to-all` | W | everybody on the host may write to the SQLite file, its folder or its folder of locks | keep them in a folder that only its users may write to |
/// | `other-clock` | W | a leader on this host has another boot clock: another time namespace | give the containers one time namespace |
/// | `other-host` | **E** | the SQLite file is written from another host or virtual machine | use a store that hosts share |
/// | `unused-record` | W | SQLite: the ledger has a record of the last 30 days of a job that no instance has | `renamed_from`, if it was renamed |
/// | `other` | **E**/W | of a third-party store, which gave it no code | as it says |
///
/// # Example
/// ```
/// use leader_core::{Finding, GroupName};
///
/// let finding = Finding::error(
///     "the key `leader:reports` never expires",
///     "whoever holds it holds it for ever",
///     "see that nobody runs under that id, and delete the key",
/// )
/// .coded("lease-without-end")
/// .about(GroupName::new("reports")?);
/// assert_eq!(
///     finding.to_string(),
///     "group reports: the key `leader:reports` never expires: whoever holds it holds it for ever; see that nobody runs \
///      under that id, and delete the key"
/// );
/// # Ok::<_, leader_core::InvalidGroupName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// What kind of thing it is: a word of the table above, or one of a third-party store's own. It stays the same, whatever
    /// becomes of the texts.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The group, if it is about one only.
    pub group: Option<GroupName>,
    /// What was found, and on what.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub advice: String,
    /// It holds a number that is another one each time. The text: on which of several servers, if they are told apart.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) measured: Option<String>,
}

/// How bad a [`Finding`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Severity {
    /// Elections do not work, or a promise does not hold.
    Error,
    /// They work now, and may not later; or a promise is weaker than it could be; or something could not be checked.
    Warning,
}

impl Finding {
    /// The [`code`](Self::code) of a finding that was given none.
    pub const OTHER: &'static str = "other";

    /// A finding of [`Severity::Error`], about no group in particular. The three parts are read in this order, as one
    /// sentence: `what: why; advice`.
    #[must_use]
    pub fn error(what: impl Into<String>, why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            code: Self::OTHER,
            severity: Severity::Error,
            group: None,
            what: what.into(),
            why: why.into(),
            advice: advice.into(),
            measured: None,
        }
    }

    /// A finding of [`Severity::Warning`], like [`error`](Self::error).
    #[must_use]
    pub fn warning(what: impl Into<String>, why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(what, why, advice) }
    }

    /// The same, about this group.
    #[must_use]
    pub fn about(self, group: GroupName) -> Self {
        Self { group: Some(group), ..self }
    }

    /// The same, under this [`code`](Self::code).
    #[must_use]
    pub fn coded(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// The same, with a number in its text that is measured anew each time: another number is no news. It is logged again only
    /// when it was gone in between, or has become more or less severe.
    #[must_use]
    pub fn measured(self) -> Self {
        Self { measured: Some(String::new()), ..self }
    }

    /// The same, found on this node of several.
    #[cfg(any(feature = "redis-fred", feature = "redis-rs"))]
    pub(crate) fn at_node(self, node: &str) -> Self {
        let measured = self.measured.as_ref().map(|_| node.to_owned());
        Self { what: format!("node {node}: {}", self.what), measured, ..self }
    }

    /// Whoever knows one of them learns nothing from the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        if self.measured.is_some() {
            (self.code, self.severity, &self.group, &self.measured)
                == (other.code, other.severity, &other.group, &other.measured)
        } else {
            self == other
        }
    }

    /// All of it but the group.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}; {}", self.what, self.why, self.advice)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = &self.group {
            write!(f, "group {group}: ")?;
        }
        f.write_str(&self.text())
    }
}

/// The store was not examined: the last error says why, if there was one.
pub(crate) fn not_examined(address: &str, error: Option<&StoreError>) -> Finding {
    let again = || "see that it answers; it is then examined by itself".to_owned();
    let (cause, advice) = match error {
        None => ("it was not reached yet".to_owned(), again()),
        Some(StoreError::Unavailable { cause, .. }) => (cause.clone(), again()),
        Some(StoreError::TimedOut { after, .. }) => (format!("no answer within {after:?}"), again()),
        Some(StoreError::Refused { cause, advice, .. }) => {
            (cause.clone(), format!("{advice}; then ask again by Elector::doctor"))
        }
    };
    Finding::warning(
        format!("the store {address} could not be checked ({cause})"),
        "what may be unsafe about it stays unknown",
        advice,
    )
    .coded("not-examined")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// What stands between these two, in all sources of this crate.
    fn between(folder: &Path, before: &str, after: char, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                between(&path, before, after, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = fs::read_to_string(path).unwrap();
                found.extend(text.split(before).skip(1).filter_map(|rest| Some(rest.split_once(after)?.0.to_owned())));
            }
        }
    }

    #[test]
    fn each_code_stands_in_the_table_with_what_to_do_and_no_other_does() {
        let source = include_str!("doctor.rs");
        let rows: Vec<Vec<&str>> = source
            .lines()
            .filter_map(|line| line.trim().strip_prefix("/// | `"))
            .map(|row| row.trim_end_matches(" |").split(" | ").collect())
            .collect();
        assert!(rows.iter().all(|row| row.len() == 4 && row.iter().all(|cell| !cell.trim().is_empty())), "{rows:?}");
        let table: BTreeSet<String> = rows.iter().map(|row| row[0].trim_end_matches('`').to_owned()).collect();
        assert_eq!(table.len(), rows.len(), "each once");
        let mut used = BTreeSet::from([Finding::OTHER.to_owned()]);
        // In two parts, or it would find itself.
        between(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), concat!(".coded", "(\""), '"', &mut used);
        assert_eq!(used, table);
    }

    #[test]
    fn what_was_measured_anew_is_no_news_and_another_severity_is() {
        let apart = |by: &str| Finding::warning(by, "ticks", "set it").coded("clock-apart").measured();
        assert!(apart("by 2 s").is_same(&apart("by 3 s")));
        assert!(!Finding { severity: Severity::Error, ..apart("by 2 s") }.is_same(&apart("by 2 s")));
        assert!(!apart("by 2 s").about(GroupName::new("a").unwrap()).is_same(&apart("by 2 s")));
        let plain = |what: &str| Finding::warning(what, "why", "advice");
        assert!(plain("a").is_same(&plain("a")) && !plain("a").is_same(&plain("b")));
    }
}
