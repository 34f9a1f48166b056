//! Examines a cluster: what it is short of, and each node that has keys of our groups.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::address::Server;
use super::super::cluster::{Map, Slots};
use super::super::connection::Failure;
use super::super::failure::code;
use super::super::keys::Keys;
use super::super::slot;
use super::super::tie::all;
use super::{Here, Look, describe, examine_refusal, unchecked};
use crate::doctor::{Finding, some_of};
use crate::group::GroupName;
use crate::store::Examination;

/// Looks at everything that can be looked at until then. A failure: nothing could be looked at.
pub(in super::super) async fn examine_cluster(map: &Map, here: Here<'_>) -> Result<Vec<Finding>, Failure> {
    let Here { keys, examination, deaf, until, .. } = here;
    let slots = map.asked_anew(until).await?;
    let mut found = judge(&slots, examination.groups.keys(), keys);
    let mut nodes: BTreeMap<String, (Server, Examination)> = BTreeMap::new();
    for (group, functions) in &examination.groups {
        if let Some(owner) = slots.owner(slot::of(keys.lease(group).as_bytes())) {
            let none = || (owner.clone(), Examination { groups: BTreeMap::new(), ..examination.clone() });
            let (_, of_node) = nodes.entry(owner.to_string()).or_insert_with(none);
            of_node.groups.insert(group.clone(), functions.clone());
        }
    }
    let examined = all(nodes.values().enumerate().map(|(number, (server, of_node))| {
        // What is said to one node is heard on all.
        let twins = here.twins.filter(|_| number == 0);
        // That is of the elector, not of a node: it listens on one of them.
        examine_node(map, server, Here { examination: of_node, deaf: None, twins, ..here })
    }))
    .await;
    found.extend(once(examined.into_iter().flatten().collect()));
    if let Some(error) = deaf {
        let mut tried = super::Tried::default();
        tried.note_deafness(Some(error));
        found.extend(tried.judge(None, keys));
    }
    Ok(found)
}

async fn examine_node(map: &Map, server: &Server, here: Here<'_>) -> Vec<Finding> {
    let connected = map.client_of(server.clone()).connect(left(here.until)).await;
    let found = match connected {
        Ok(link) => Look { link: &*link, here, sentinels: false, as_node: true }.examine().await,
        Err(failure) => examine_refusal(failure),
    };
    let found = found.unwrap_or_else(|failure| vec![unchecked("the node", &describe(failure))]);
    let named = |finding: Finding| match finding.code {
        "same-id" => finding,
        _ => finding.at_node(&server.to_string()),
    };
    found.into_iter().map(named).collect()
}

/// A setting of the whole cluster is one finding, and not one for each node.
fn once(found: Vec<Finding>) -> Vec<Finding> {
    let (mut of_all, mut found): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|finding| finding.code == "full-coverage");
    of_all.truncate(1);
    found.append(&mut of_all);
    found
}

/// What the cluster as a whole is short of.
fn judge<'a>(slots: &Slots, groups: impl Iterator<Item = &'a GroupName>, keys: &Keys) -> Vec<Finding> {
    let is_lost = |group: &&GroupName| slots.owner(slot::of(keys.lease(group).as_bytes())).is_none();
    let lost: Vec<String> = groups.filter(is_lost).map(|group| format!("`{group}`")).collect();
    let lost = (!lost.is_empty()).then(|| {
        Finding::error(
            format!("no node of the cluster has the slots of these groups: {}", some_of(&lost)),
            "nobody leads them",
            "give the slots to a node (redis-cli --cluster fix), or bring back the one that had them",
        )
        .coded("slots-lost")
    });
    let uncovered = slots.uncovered();
    let uncovered = (lost.is_none() && uncovered > 0).then(|| {
        Finding::warning(
            format!("{uncovered} slots of the cluster have no node"),
            "unless it is set not to require all of them, the cluster takes no commands at all",
            "give the slots to a node (redis-cli --cluster fix), or bring back the one that had them",
        )
        .coded("slots-uncovered")
    });
    [lost, uncovered].into_iter().flatten().collect()
}

/// The cluster takes no commands.
pub(super) fn down(failure: &Failure) -> Option<Finding> {
    let Failure::Server(error) = failure else { return None };
    (code(error) == "CLUSTERDOWN").then(|| {
        Finding::error(
            format!("the cluster is down ({error})"),
            "it takes no commands, so nobody leads",
            "see that most of its primaries run and reach each other, and that all slots have a node; with \
             cluster-require-full-coverage no, a slot that has none does not stop the others",
        )
        .coded("cluster-down")
    })
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
