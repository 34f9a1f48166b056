//! What is read of the bytes of servers and of other programs, for tests that hand in any.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::address::{Access, Place, Server};
use super::super::client::failure::of_server;
use super::super::cluster::{Redirect, Slots};
use super::super::connection::{Failure, Reply};
use super::super::doctor::leases::Survey;
use super::super::doctor::server::{self, Info};
use super::super::keys::Keys;
use super::super::sentinel::answer::{self, Told};
use super::super::{failure, fence};
use crate::doctor::{self, Finding};
use crate::error::StoreError;
use crate::fence::GuardedAnswer;
use crate::group::GroupName;
use crate::identity::{Candidate, Incarnation, InstanceId};
use crate::store::Examination;

/// A host, and a port on it.
pub type Named = (String, u16);

fn group() -> GroupName {
    GroupName::new(GroupName::DEFAULT).expect("it is a name")
}

fn named(server: &Server) -> Named {
    (server.host.clone(), server.port)
}

/// Who is asked.
fn asked() -> Server {
    Server { host: "asked".to_owned(), port: 6379 }
}

/// User and password that a URL names, of the servers and of the sentinels; nothing, if it is refused.
#[must_use]
pub fn credentials(url: &str) -> Option<Vec<(Option<String>, Option<String>)>> {
    let who = |access: Access| (access.user, access.password);
    Some(match Place::parse(url).ok()? {
        Place::Server(address) => vec![who(address.access)],
        Place::Sentinels(sentinels) => vec![who(sentinels.watched), who(sentinels.access)],
        Place::Cluster(cluster) => vec![who(cluster.access)],
    })
}

/// Whom an error of a node of a cluster names in place of an answer.
#[must_use]
pub fn redirected(error: &str) -> Option<Named> {
    match Redirect::of(&Failure::Server(error.to_owned()), &asked())? {
        Redirect::Moved(server) | Redirect::Ask(server) => Some(named(&server)),
    }
}

/// The nodes that an answer to `CLUSTER SLOTS` names, and whether each has slots; and how many slots have no node.
#[must_use]
pub fn owners(reply: &Reply) -> Option<(Vec<(Named, bool)>, usize)> {
    let slots = Slots::read(reply, &asked())?;
    Some((slots.nodes().map(|node| (named(node), slots.has_slots(node))).collect(), slots.uncovered()))
}

/// The primary that a sentinel names by its two answers; or why it names none.
///
/// # Errors
/// See above.
pub fn primary(place: Reply, rest: Reply) -> Result<Named, String> {
    match answer::read(&asked(), Ok(place), Ok(rest)) {
        Told::Primary(found) => Ok(named(&found.server)),
        Told::Unknown => Err("unknown".to_owned()),
        Told::Nothing(cause) | Told::Refused { cause, .. } => Err(cause),
    }
}

/// What a record says about a program and what it does for a group: its functions and jobs, one line each.
#[must_use]
pub fn described(program: &str, lines: &[String]) -> String {
    doctor::describe(program, lines)
}

/// What is said of a leader that is described so, where `program` does this: what it lacks of that. `led`: for how long it has
/// led.
#[must_use]
pub fn lack(description: &str, program: &str, lines: &[String], led: Option<Duration>) -> Option<String> {
    doctor::lack(description, program, lines, led).map(|lack| lack.text)
}

/// What a server's error means.
#[must_use]
pub fn error(error: &str) -> StoreError {
    let failure = of_server(error);
    failure::store_error(failure, "a test".to_owned(), Duration::from_secs(1), &Keys::new("leader:"))
}

/// The answer to a guarded write.
///
/// # Errors
/// What went wrong in the body of a script.
pub fn guarded(reply: Reply) -> Result<GuardedAnswer, String> {
    fence::script::answer(reply)
}

/// What is unsafe about a server with this `INFO`, so many of whose replicas have to confirm, which refuses a write in these
/// words, and has this under the keys of one group, which gates one function.
#[must_use]
pub fn findings(info: &str, replicas: u8, refusal: &str, leases: Reply) -> Vec<Finding> {
    let group = group();
    let examination = Examination {
        candidate: Candidate { id: InstanceId::with_random_suffix("test"), incarnation: Incarnation::from_u128(1) },
        groups: BTreeMap::from([(group.clone(), vec!["some::function".to_owned()])]),
        program: "ours".to_owned(),
        ttl: Duration::from_secs(10),
        timeout: Duration::from_secs(1),
    };
    let keys = Keys::new("leader:");
    let mut survey = Survey::new(&examination, &keys, Duration::ZERO, Some(Duration::from_secs(1_700_000_000)));
    survey.take(&[&group], Reply::List(vec![leases]));
    let mut found = server::judge(Some(&Info::new(info)), Some(refusal), replicas);
    found.extend(survey.judge());
    found
}
