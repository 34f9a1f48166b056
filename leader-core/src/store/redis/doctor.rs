//! Examines a server: what it is set to, what its user may do, what lies under the keys of our groups.
//!
//! Here is what it is asked, on a link of its own, so that no batch waits behind it. What the answers mean is judged in the
//! files below, without I/O.

mod clock;
pub(super) mod leases;
mod nodes;
mod permissions;
pub(super) mod server;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use self::clock::{Clocks, Reading, Start};
use self::leases::Survey;
use self::permissions::Tried;
use self::server::Info;
use self::settings::Settings;
use super::connection::{Failure, Link, Reply, Request};
use super::failure::{denied, is_unknown_script};
use super::keys::Keys;
use super::slot;
use super::twins::Twins;
use crate::doctor::{Finding, has_jobs};
use crate::group::GroupName;
use crate::store::Examination;

/// So many groups are looked at in one call: a longer one would keep other clients of the server waiting.
const AT_ONCE: usize = 50;

/// What is known beside the server.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) keys: &'a Keys,
    pub(super) examination: &'a Examination,
    /// Why nobody listens to releases, if nobody does.
    pub(super) deaf: Option<&'a str>,
    /// See [`Config::shortest_quarantine`](crate::Config::shortest_quarantine).
    pub(super) shortest_quarantine: Duration,
    /// Those who have this instance id; nothing if nobody listens.
    pub(super) twins: Option<&'a Twins>,
    /// What was found out before.
    pub(super) memory: Option<&'a Memory>,
    /// So many replicas have to confirm.
    pub(super) replicas: u8,
    pub(super) until: Instant,
}

/// What the doctor of one elector keeps from one examination to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    clocks: Clocks,
    /// The server's user may not read settings. Each attempt is a line in the server's log of refusals, so there is one for
    /// each server at most, and the next when this instance is started again.
    reads_no_settings: AtomicBool,
}

/// Looks at everything that can be looked at until then. `sentinels`: whether they watch the server. A failure: nothing could
/// be looked at.
pub(super) async fn examine(link: &dyn Link, here: Here<'_>, sentinels: bool) -> Result<Vec<Finding>, Failure> {
    Look { link, here, sentinels, as_node: false }.examine().await
}

pub(super) use self::nodes::examine_cluster;

/// What is known of a server that lets nobody in: it may answer even the first question with what it is short of.
pub(super) fn examine_refusal(failure: Failure) -> Result<Vec<Finding>, Failure> {
    let found = match &failure {
        Failure::Server(error) => server::judge(None, Some(error), 0),
        _ => Vec::new(),
    };
    if found.is_empty() { Err(failure) } else { Ok(found) }
}

/// What could not be looked at, and nothing that would have followed it.
struct Unchecked {
    what: String,
    failure: Failure,
}

struct Look<'a> {
    link: &'a dyn Link,
    here: Here<'a>,
    /// They watch the server.
    sentinels: bool,
    /// It is a node of a cluster, and is asked about the groups whose keys it has.
    as_node: bool,
}

impl Look<'_> {
    async fn examine(&self) -> Result<Vec<Finding>, Failure> {
        let mut found = Vec::new();
        let info = self.info().await?;
        // First: while all else is looked at, the answers come.
        let asked = self.ask_for_twins().await;
        if let Err(Unchecked { what, failure }) = self.at_all(info, &mut found).await {
            found.push(unchecked(&what, &describe(failure)));
        }
        if let (Some(twins), Some((at, listeners))) = (self.here.twins, asked) {
            let listeners = (!self.as_node).then_some(listeners);
            found.extend(twins.judge(at, listeners, self.here.until).await);
        }
        Ok(found)
    }

    /// When that was, and how many the server has told of it.
    async fn ask_for_twins(&self) -> Option<(Instant, i64)> {
        let asked = Instant::now();
        // If it is not permitted, that is found below.
        match self.link.run(self.here.twins?.question(), self.left()?).await {
            Ok(Reply::Integer(listeners)) => Some((asked, listeners)),
            _ => None,
        }
    }

    async fn at_all(&self, info: Option<String>, found: &mut Vec<Finding>) -> Result<(), Unchecked> {
        let Here { keys, examination, deaf, .. } = self.here;
        let info = info.as_deref().map(if self.as_node { Info::of_node } else { Info::new });
        let alone = info.as_ref().is_none_or(|info| !info.is_loading() && !info.is_of_a_cluster());
        found.extend(info.as_ref().filter(|_| self.sentinels).and_then(server::without_replicas));
        let mut tried = Tried::default();
        tried.note_deafness(deaf);
        if alone && let Some(group) = examination.groups.keys().next() {
            let trying = self.try_commands(group, &mut tried).await;
            found.extend(server::judge(info.as_ref(), tried.refusal(), self.here.replicas));
            if let Some(down) = trying.as_ref().err().and_then(nodes::down) {
                found.push(down);
                return Ok(());
            }
            trying.map_err(|failure| Unchecked { what: "the permissions of the server's user".to_owned(), failure })?;
        } else {
            found.extend(server::judge(info.as_ref(), None, self.here.replicas));
        }
        let reading = if alone { self.at_clock(info.as_ref(), found).await } else { None };
        if let Some(info) = info.as_ref().filter(|_| alone) {
            self.at_settings(info, found).await;
        }
        if tried.is_lacking() {
            let user = self.ask("ACL", vec!["WHOAMI".to_owned()]).await;
            found.extend(tried.judge(if let Ok(Reply::Text(user)) = &user { Some(user) } else { None }, keys));
        }
        if alone && tried.may_run_scripts() {
            self.at_leases(reading.map(|reading| reading.server()), found).await?;
        }
        Ok(())
    }

    /// Nothing if it is not permitted, which is found elsewhere.
    async fn at_clock(&self, info: Option<&Info<'_>>, found: &mut Vec<Finding>) -> Option<Reading> {
        let start = Start::now();
        let reading = start.end(&self.ask("TIME", Vec::new()).await.ok()?)?;
        let jobs = self.here.examination.groups.values().any(|lines| has_jobs(lines));
        found.extend(reading.judge(jobs));
        if let (Some(memory), Some(server)) = (self.here.memory, info.and_then(Info::run_id)) {
            found.extend(memory.clocks.judge(server, reading));
        }
        Some(reading)
    }

    /// What only `CONFIG GET` tells, where it matters. Many users may not call it, and many services have it not.
    async fn at_settings(&self, info: &Info<'_>, found: &mut Vec<Finding>) {
        let denied_before = self.here.memory.map(|memory| &memory.reads_no_settings);
        for setting in Settings::that_matter(info, self.as_node) {
            if denied_before.is_some_and(|denied| denied.load(Ordering::Relaxed)) {
                return;
            }
            let reply = self.ask("CONFIG", vec!["GET".to_owned(), setting.name().to_owned()]).await;
            if let (Some(denied_before), Err(Failure::Server(error))) = (denied_before, &reply) {
                denied_before.fetch_or(denied(error).is_some(), Ordering::Relaxed);
            }
            found.extend(setting.judge(reply, self.here.examination.ttl));
        }
    }

    /// Nothing if it is not permitted.
    async fn info(&self) -> Result<Option<String>, Failure> {
        match self.ask("INFO", Vec::new()).await {
            Ok(Reply::Text(info)) => Ok(Some(info)),
            Ok(_) => Ok(None),
            Err(Failure::Server(error)) if denied(&error).is_some() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Tries the three ways to run a script, all that the store's script does, and to wait for replicas where that is asked for.
    async fn try_commands(&self, group: &GroupName, tried: &mut Tried) -> Result<(), Failure> {
        let script = permissions::SCRIPT;
        let arguments = |script: &str| {
            let keys = self.here.keys;
            let key = keys.lease(group);
            let nobodys = [format!("{}:doctor", keys.record(group)), format!("{key}:doctor")];
            let mut all = vec![script.to_owned(), "2".to_owned(), key, keys.record(group)];
            all.extend(nobodys);
            all
        };
        let loaded = self.ask("SCRIPT", vec!["LOAD".to_owned(), script.to_owned()]).await;
        let digest = match tried.note("script|load", loaded)? {
            Some(Reply::Text(digest)) => digest,
            // Which no script has: it is unknown, unless EVALSHA is not permitted.
            _ => "0".repeat(40),
        };
        let by_digest = match self.ask("EVALSHA", arguments(&digest)).await {
            Err(Failure::Server(error)) if is_unknown_script(&error) => None,
            reply => tried.note("evalsha", reply)?,
        };
        let by_text = tried.note("eval", self.ask("EVAL", arguments(script)).await)?;
        if let Some(reply) = by_text.or(by_digest) {
            tried.take(reply);
        }
        if self.here.replicas > 0 {
            // For none: it waits for nothing.
            match tried.note("wait", self.ask("WAIT", vec!["0".to_owned(), "1".to_owned()]).await) {
                // A replica's refusal: that is found otherwise.
                Ok(_) | Err(Failure::Server(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        if self.sentinels {
            match tried.note("role", self.ask("ROLE", Vec::new()).await) {
                // Its answer was looked at when the link was opened. One that has no such command, or loads, is found otherwise.
                Ok(_) | Err(Failure::Server(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    async fn at_leases(&self, now: Option<Duration>, found: &mut Vec<Finding>) -> Result<(), Unchecked> {
        let Here { keys, examination, shortest_quarantine, .. } = self.here;
        let mut survey = Survey::new(examination, keys, shortest_quarantine, now);
        let mut failed = None;
        let mut all: Vec<&GroupName> = examination.groups.keys().collect();
        let mut left = all.len();
        let slot = |group: &GroupName| slot::of(keys.lease(group).as_bytes());
        if self.as_node {
            all.sort_by_key(|group| slot(group));
        }
        // A script may touch the keys of one slot of a cluster only.
        let together = |a: &&GroupName, b: &&GroupName| !self.as_node || slot(a) == slot(b);
        for groups in all.chunk_by(together).flat_map(|groups| groups.chunks(AT_ONCE)) {
            let mut arguments = vec![leases::SCRIPT.to_owned(), (2 * groups.len()).to_string()];
            arguments.extend(groups.iter().flat_map(|group| [keys.lease(group), keys.record(group)]));
            match self.ask("EVAL", arguments).await {
                Ok(reply) => survey.take(groups, reply),
                Err(failure) => {
                    failed = Some(Unchecked { what: format!("the keys of {left} group(s)"), failure });
                    break;
                }
            }
            left -= groups.len();
        }
        found.extend(survey.judge());
        failed.map_or(Ok(()), Err)
    }

    async fn ask(&self, name: &'static str, arguments: Vec<String>) -> Result<Reply, Failure> {
        let left = self.left().ok_or(Failure::TimedOut)?;
        self.link.run(Request::new(name, arguments), left).await
    }

    fn left(&self) -> Option<Duration> {
        let left = self.here.until.saturating_duration_since(Instant::now());
        (left >= Duration::from_millis(1)).then_some(left)
    }
}

fn describe(failure: Failure) -> String {
    match failure {
        Failure::Unreachable(cause) | Failure::Server(cause) | Failure::Impossible { cause, .. } => cause,
        Failure::TimedOut | Failure::Unconfirmed { .. } => "it took too long".to_owned(),
    }
}

fn unchecked(what: &str, cause: &str) -> Finding {
    Finding::warning(
        format!("{what} could not be checked ({cause})"),
        "what may be wrong there stays unknown",
        "ask again by Elector::doctor",
    )
    .coded("unchecked")
}
