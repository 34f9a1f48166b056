//! Examines a server: what it is set to, what its user may do, what lies under the keys of our groups.
//!
//! Here is what it is asked, on a link of its own, so that no batch waits behind it. What the answers mean is judged in the
//! files below, without I/O.

pub(super) mod leases;
mod nodes;
mod permissions;
pub(super) mod server;

use std::time::{Duration, Instant};

use self::leases::Survey;
use self::permissions::Tried;
use self::server::Info;
use super::connection::{Failure, Link, Reply, Request};
use super::failure::{denied, is_unknown_script};
use super::keys::Keys;
use super::slot;
use crate::doctor::Finding;
use crate::group::GroupName;
use crate::store::Examination;

/// So many groups are looked at in one call: a longer one would keep other clients of the server waiting.
const AT_ONCE: usize = 50;

/// So many keys are named in one finding; of the others there is only the number.
const NAMED: usize = 3;

/// Looks at everything that can be looked at until then. `deaf`: why nobody listens to releases, if nobody does; `sentinels`:
/// whether they watch the server; `replicas`: so many have to confirm. A failure: nothing could be looked at.
pub(super) async fn examine(
    link: &dyn Link,
    keys: &Keys,
    examination: &Examination,
    deaf: Option<&str>,
    sentinels: bool,
    replicas: u8,
    until: Instant,
) -> Result<Vec<Finding>, Failure> {
    Look { link, keys, sentinels, replicas, until, as_node: false }.examine(examination, deaf).await
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
    keys: &'a Keys,
    /// They watch the server.
    sentinels: bool,
    /// So many have to confirm.
    replicas: u8,
    until: Instant,
    /// It is a node of a cluster, and is asked about the groups whose keys it has.
    as_node: bool,
}

impl Look<'_> {
    async fn examine(&self, examination: &Examination, deaf: Option<&str>) -> Result<Vec<Finding>, Failure> {
        let mut found = Vec::new();
        let info = self.info().await?;
        if let Err(Unchecked { what, failure }) = self.at_all(info, examination, deaf, &mut found).await {
            found.push(unchecked(&what, &describe(failure)));
        }
        Ok(found)
    }

    async fn at_all(
        &self,
        info: Option<String>,
        examination: &Examination,
        deaf: Option<&str>,
        found: &mut Vec<Finding>,
    ) -> Result<(), Unchecked> {
        let info = info.as_deref().map(if self.as_node { Info::of_node } else { Info::new });
        let alone = info.as_ref().is_none_or(|info| !info.is_loading() && !info.is_of_a_cluster());
        found.extend(info.as_ref().filter(|_| self.sentinels).and_then(server::without_replicas));
        let mut tried = Tried::default();
        tried.note_deafness(deaf);
        if alone && let Some(group) = examination.groups.keys().next() {
            let trying = self.try_commands(group, &mut tried).await;
            found.extend(server::judge(info.as_ref(), tried.refusal(), self.replicas));
            if let Some(down) = trying.as_ref().err().and_then(nodes::down) {
                found.push(down);
                return Ok(());
            }
            trying.map_err(|failure| Unchecked { what: "the permissions of the server's user".to_owned(), failure })?;
        } else {
            found.extend(server::judge(info.as_ref(), None, self.replicas));
        }
        if tried.is_lacking() {
            let user = self.ask("ACL", vec!["WHOAMI".to_owned()]).await;
            found.extend(tried.judge(if let Ok(Reply::Text(user)) = &user { Some(user) } else { None }, self.keys));
        }
        if alone && tried.may_run_scripts() {
            self.at_leases(examination, found).await?;
        }
        Ok(())
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
            let key = self.keys.lease(group);
            let nobodys = [format!("{}:doctor", self.keys.record(group)), format!("{key}:doctor")];
            let mut all = vec![script.to_owned(), "2".to_owned(), key, self.keys.record(group)];
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
        if self.replicas > 0 {
            // For none: it waits for nothing.
            match tried.note("wait", self.ask("WAIT", vec!["0".to_owned(), "1".to_owned()]).await) {
                // A replica's refusal: that is found otherwise.
                Ok(_) | Err(Failure::Server(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    async fn at_leases(&self, examination: &Examination, found: &mut Vec<Finding>) -> Result<(), Unchecked> {
        let mut survey = Survey::new(examination, self.keys);
        let mut failed = None;
        let mut all: Vec<&GroupName> = examination.groups.keys().collect();
        let mut left = all.len();
        let slot = |group: &GroupName| slot::of(self.keys.lease(group).as_bytes());
        if self.as_node {
            all.sort_by_key(|group| slot(group));
        }
        // A script may touch the keys of one slot of a cluster only.
        let together = |a: &&GroupName, b: &&GroupName| !self.as_node || slot(a) == slot(b);
        for groups in all.chunk_by(together).flat_map(|groups| groups.chunks(AT_ONCE)) {
            let mut arguments = vec![leases::SCRIPT.to_owned(), (2 * groups.len()).to_string()];
            arguments.extend(groups.iter().flat_map(|group| [self.keys.lease(group), self.keys.record(group)]));
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
        let left = self.until.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(Failure::TimedOut);
        }
        self.link.run(Request::new(name, arguments), left).await
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
}

/// `a, b, c and 9997 more`
fn some_of(all: &[String]) -> String {
    let named = all[..all.len().min(NAMED)].join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::connection::Pending;
    use super::*;
    use crate::doctor::Severity;
    use crate::identity::{Candidate, Incarnation, InstanceId};

    /// A server whose answers a test writes, and what it was asked.
    struct Scripted<F> {
        answer: F,
        asked: Mutex<Vec<Request>>,
    }

    impl<F: Fn(&Request) -> Result<Reply, Failure> + Send + Sync + 'static> Link for Scripted<F> {
        fn run(&self, request: Request, _: Duration) -> Pending<'_, Reply> {
            let answer = (self.answer)(&request);
            self.asked.lock().unwrap().push(request);
            Box::pin(async { answer })
        }

        fn is_over(&self) -> bool {
            false
        }
    }

    fn denied_command(name: &str) -> Failure {
        Failure::Server(format!("NOPERM this user has no permissions to run the '{name}' command"))
    }

    fn is_of_leases(request: &Request) -> bool {
        request.arguments.first().is_some_and(|script| script == leases::SCRIPT.as_bytes())
    }

    /// Of a server that is healthy, and has another one's lease under the key of each group.
    fn healthy(request: &Request) -> Result<Reply, Failure> {
        let text = |text: &str| Reply::Text(text.to_owned());
        Ok(match request.name {
            "INFO" => text(
                "redis_version:7.0.15\r\nrun_id:1f\r\nrole:master\r\nmaster_replid:2e\r\ncluster_enabled:0\r\nloading:0\r\n",
            ),
            "SCRIPT" => text("5ca1ab1e"),
            "ACL" => text("app"),
            "EVALSHA" | "EVAL" if !is_of_leases(request) => Reply::List(vec![]),
            "EVAL" => {
                let groups = std::str::from_utf8(&request.arguments[1]).unwrap().parse::<usize>().unwrap() / 2;
                let [ours, nothing] = [text("ours"), text("")];
                let one = vec![ours.clone(), text("other"), Reply::Integer(9), ours, nothing.clone(), nothing];
                let one = Reply::List(one);
                Reply::List(vec![one; groups])
            }
            name => panic!("{name} is none of the doctor's commands"),
        })
    }

    async fn examined(
        groups: usize,
        until: Instant,
        answer: impl Fn(&Request) -> Result<Reply, Failure> + Send + Sync + 'static,
    ) -> (Vec<Finding>, Vec<Request>) {
        let link = Scripted { answer, asked: Mutex::default() };
        let examination = Examination {
            candidate: Candidate { id: InstanceId::new("me").unwrap(), incarnation: Incarnation::from_u128(1) },
            groups: (0..groups).map(|n| (GroupName::new(format!("g{n}")).unwrap(), Vec::new())).collect(),
            program: "billing".to_owned(),
            ttl: Duration::from_secs(10),
            timeout: Duration::from_secs(10),
        };
        let found = examine(&link, &Keys::new("leader:"), &examination, None, false, 0, until).await;
        let found = found.unwrap_or_else(|failure| vec![unchecked("all", &describe(failure))]);
        (found, link.asked.into_inner().unwrap())
    }

    fn in_time() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    #[tokio::test]
    async fn very_many_groups_are_asked_about_in_calls_of_few_and_found_in_one_finding() {
        let (found, asked) = examined(10_000, in_time(), healthy).await;
        assert_eq!(asked.iter().filter(|request| is_of_leases(request)).count(), 10_000 / AT_ONCE);
        assert!(found.len() == 1 && found[0].what.contains("and 9997 more"), "{found:?}");
    }

    #[tokio::test]
    async fn nothing_more_is_asked_on_a_link_that_has_failed_and_what_was_found_is_told() {
        let asked_about_leases = Mutex::new(0);
        let (found, asked) = examined(200, in_time(), move |request| {
            *asked_about_leases.lock().unwrap() += usize::from(is_of_leases(request));
            if *asked_about_leases.lock().unwrap() == 2 { Err(Failure::TimedOut) } else { healthy(request) }
        })
        .await;
        assert!(is_of_leases(&asked[asked.len() - 1]) && asked.iter().filter(|r| is_of_leases(r)).count() == 2);
        let [foreign, unchecked] = &found[..] else { panic!("{found:?}") };
        assert!(foreign.what.contains("and 47 more"), "{foreign}");
        assert_eq!(unchecked.severity, Severity::Warning);
        assert!(unchecked.what.contains("the keys of 150 group(s) could not be checked"), "{unchecked}");
    }

    #[tokio::test]
    async fn when_the_time_is_over_nothing_is_asked() {
        let (found, asked) = examined(1, Instant::now(), healthy).await;
        assert!(
            asked.is_empty() && found.len() == 1 && found[0].what.contains("all could not be checked"),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn where_info_is_not_permitted_all_else_is_looked_at() {
        let (found, asked) = examined(1, in_time(), |request| match request.name {
            "INFO" => Err(denied_command("info")),
            "EVAL" | "EVALSHA" if !is_of_leases(request) => {
                let texts = ["info", "ERR The user executing the script can't run this command or subcommand"];
                Ok(Reply::List(vec![Reply::List(texts.map(|text| Reply::Text(text.to_owned())).into())]))
            }
            _ => healthy(request),
        })
        .await;
        assert!(asked.iter().any(is_of_leases));
        assert!(found.iter().any(|finding| finding.to_string().contains("ACL SETUSER app +info")), "{found:?}");
    }

    #[tokio::test]
    async fn who_may_call_no_script_is_told_so_and_not_what_scripts_would_have_found() {
        let (found, asked) = examined(1, in_time(), |request| match request.name {
            "EVAL" => Err(denied_command("eval")),
            "EVALSHA" => Err(denied_command("evalsha")),
            // Nor may it ask who it is.
            "ACL" => Err(denied_command("acl|whoami")),
            _ => healthy(request),
        })
        .await;
        assert!(!asked.iter().any(is_of_leases));
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.severity == Severity::Error && finding.advice.ends_with("ACL SETUSER <user> +evalsha +eval"));
    }

    #[tokio::test]
    async fn a_server_of_a_cluster_or_one_that_loads_is_asked_no_more() {
        for line in ["cluster_enabled:1", "loading:1"] {
            let (found, asked) = examined(1, in_time(), move |_| {
                Ok(Reply::Text(format!("run_id:1f\r\nrole:master\r\nmaster_replid:2e\r\n{line}\r\n")))
            })
            .await;
            assert_eq!((found.len(), asked.len()), (1, 1), "{line}: {found:?}");
        }
    }
}
